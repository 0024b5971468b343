"""One `[[workload]]` of a plan: its keys by kind of dataset, and the dataset file behind it."""

import json
import math
from pathlib import Path
from typing import Any

from tuning.plans.plan_check import Section, beside, exists, is_number, shown_value
from tuning.records import Workload

# Kind of dataset → its own keys with their defaults, those of `vllm bench serve`; None: decided by the file.
SHAPES: dict[str, dict[str, int | float | None]] = {
    "random": {"input_len": 1024, "output_len": 128, "range_ratio": 0.0, "prefix_len": 0},
    "sharegpt": {"output_len": None},
    "prefix_repetition": {"prefix_len": 256, "suffix_len": 256, "num_prefixes": 10, "output_len": 128},
}
_LATER = ("custom", "trace")
_COMMON = (
    *("name", "dataset", "requests", "request_rate", "max_concurrency", "burstiness", "temperature", "ignore_eos"),
    *("warmup", "repeats", "goodput", "extra_args", "adapters"),
)
_GOODPUT_METRICS = ("ttft", "tpot", "e2el")
_HEAD_ENTRIES = 20
_MOST_REPEATS = 100


def read_workload(section: Section, folder: Path) -> Workload | None:
    """The workload in `section`, or None when its name or dataset is unusable; every mistake is noted on the section.

    A relative `path` is looked up from `folder`, the plan's own, and comes back absolute.
    """
    name, dataset = section.text("name"), section.text("dataset")
    if name is None:
        section.wrong(None, 'needs a name, as in name = "chat"')
    elif not all(char.isalnum() or char in "-_" for char in name):
        section.wrong("name", f"may hold letters, digits, - and _ only, not {shown_value(name)}")
    if dataset in _LATER:
        section.wrong("dataset", f'"{dataset}" cannot be run yet; use {" or ".join(SHAPES)}')
        return None
    if dataset not in SHAPES:
        said = "is missing" if dataset is None else f"{shown_value(dataset)} is not known"
        section.wrong("dataset" if dataset is not None else None, f"dataset {said}; use one of {', '.join(SHAPES)}")
        return None
    path = section.text("path")
    if dataset == "sharegpt":
        path = _dataset_file(section, path, folder)
    elif path is not None:
        section.wrong("path", f"{dataset} makes its prompts itself and takes no file; delete the line")
    known = {"path"} | set(SHAPES[dataset])
    section.only((*_COMMON, *sorted(known)))
    requests = section.whole("requests", None, low=1)
    if requests is None and "requests" not in section.data:
        section.wrong(None, "needs the number of requests, as in requests = 200")
    shape = _shape(section, dataset)
    if requests is not None and shape.get("num_prefixes", 1) > requests:
        section.wrong("num_prefixes", f"is more than requests ({requests}); each prefix needs at least one request")
    return Workload(
        name=name or "",
        dataset=dataset,
        requests=requests or 1,
        path=path,
        request_rate=_rate(section),
        max_concurrency=section.whole("max_concurrency", None, low=1),
        burstiness=section.number("burstiness", 1.0, above=0.0) or 1.0,
        temperature=_temperature(section),
        ignore_eos=section.flag("ignore_eos", False),
        warmup=_count(section, "warmup", 1, low=0),
        repeats=_count(section, "repeats", 3, low=1),
        goodput=_goodput(section),
        shape=shape,
        extra_args=section.texts("extra_args"),
        adapters=section.texts("adapters"),
    )


def workload_toml(workload: Workload) -> dict[str, Any]:
    """The table that `read_workload` reads back as an equal workload."""
    table: dict[str, Any] = {"name": workload.name, "dataset": workload.dataset, "path": workload.path}
    table |= {"requests": workload.requests, **workload.shape}
    table["request_rate"] = "inf" if workload.request_rate is None else workload.request_rate
    table["max_concurrency"] = workload.max_concurrency
    table["burstiness"] = workload.burstiness
    table["temperature"] = "server" if workload.temperature is None else workload.temperature
    table |= {"ignore_eos": workload.ignore_eos, "warmup": workload.warmup, "repeats": workload.repeats}
    table |= {"goodput": list(workload.goodput), "extra_args": list(workload.extra_args)}
    table["adapters"] = list(workload.adapters)
    return {key: value for key, value in table.items() if value is not None and value != []}


def _count(section: Section, key: str, default: int, low: int) -> int:
    value = section.whole(key, default, low=low, high=_MOST_REPEATS)
    return default if value is None else value


def _rate(section: Section) -> float | None:
    value = section.data.get("request_rate", "inf")
    if value == "inf" or value == math.inf:
        return None
    if not is_number(value) or value <= 0:
        section.wrong("request_rate", f'must be requests per second above 0, or "inf", not {shown_value(value)}')
        return None
    return float(value)


def _temperature(section: Section) -> float | None:
    """None, written "server", leaves the temperature to the server's own default."""
    value = section.data.get("temperature", 0.0)
    if value == "server":
        return None
    if not is_number(value) or value < 0:
        section.wrong("temperature", f'must be a number of at least 0, or "server", not {shown_value(value)}')
        return 0.0
    return float(value)


def _goodput(section: Section) -> tuple[str, ...]:
    wanted = section.texts("goodput")
    for index, text in enumerate(wanted):
        metric, _, limit = text.partition(":")
        if metric not in _GOODPUT_METRICS or not _positive(limit):
            allowed = ", ".join(_GOODPUT_METRICS)
            section.wrong(
                "goodput", f'{shown_value(text)} must be METRIC:MILLISECONDS with {allowed}, as "ttft:500"', index
            )
    return wanted


def _positive(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def _shape(section: Section, dataset: str) -> dict[str, Any]:
    shape: dict[str, Any] = {}
    for key, default in SHAPES[dataset].items():
        if key == "range_ratio":
            shape[key] = section.number(key, 0.0, low=0.0, below=1.0)
        elif (value := section.whole(key, default, low=0 if key == "prefix_len" else 1)) is not None:  # type: ignore[arg-type]
            shape[key] = value
    return shape


def _dataset_file(section: Section, path: str | None, folder: Path) -> str | None:
    if path is None:
        section.wrong(None, 'sharegpt needs a file, as in path = "ShareGPT_V3_unfiltered_cleaned_split.json"')
        return None
    file = beside(folder, path)
    if mistake := sharegpt_mistake(file):
        section.wrong("path", mistake)
    return str(file)


def sharegpt_mistake(file: Path) -> str | None:
    """Why `file` cannot serve as a ShareGPT dataset, or None: a JSON list of `{"conversations": [{"value": …}, …]}`.

    Only the first entries are looked at, since such files are hundreds of megabytes; entries with one turn are allowed
    because vLLM leaves them out itself, unless all that were seen are so.
    """
    if not exists(file):
        return f"there is no file {file}; download the dataset or correct the path"
    try:
        with file.open(encoding="utf-8") as stream:
            entries = _first_entries(stream.read(1 << 20), whole=file.stat().st_size <= 1 << 20)
    except (OSError, UnicodeDecodeError) as error:
        return f"cannot read {file}: {error.strerror if isinstance(error, OSError) else 'it is not UTF-8 text'}"
    except ValueError:
        return f"{file} is not JSON in ShareGPT's form (a list of objects with conversations)"
    usable = 0
    for entry in entries:
        turns = entry.get("conversations") if isinstance(entry, dict) else None
        if not isinstance(turns, list) or not all(
            isinstance(turn, dict) and isinstance(turn.get("value"), str) for turn in turns
        ):
            return f"{file} is not in ShareGPT's form: an entry has no conversations with a value in each turn"
        usable += len(turns) >= 2
    return None if usable else f"{file} holds no conversation of two turns or more"


def _first_entries(text: str, *, whole: bool) -> list[Any]:
    """The first entries of the JSON list that begins in `text`; ValueError when it is no list."""
    start = len(text) - len(text.lstrip("\ufeff \t\r\n"))
    if not text.startswith("[", start):
        raise ValueError("not a list")
    decoder = json.JSONDecoder()
    entries: list[Any] = []
    position = start + 1
    while len(entries) < _HEAD_ENTRIES:
        position += len(text[position:]) - len(text[position:].lstrip(" \t\r\n,"))
        if text.startswith("]", position):
            break
        try:
            entry, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError:
            if entries and not whole:
                break  # the entry goes on beyond what was read
            raise
        entries.append(entry)
    return entries
