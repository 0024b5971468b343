"""What file names say of a configuration: people call their files after what they changed, and number the runs.

A name is taken apart at `-`, `_`, `.` and spaces. Dates and the numbers of runs are left out, the rest is the name. A
number at the end is that of a run if a word says so (`run3`, `rep-2`), or if the files of that name are numbered
without a gap from 0 or 1, unless a parameter stands before it (`tp-2`). Where that is wrong, a person gives a
pattern.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from os.path import commonpath
from pathlib import PurePath

_SEPARATORS = re.compile(r"[-_. ]+")
_REPEATED = re.compile(r"([-_. ])[-_. ]+")
_MOST_STARS = 3  # each multiplies the ways in which a name may be read
_RUN_WORD = r"(?:run|rep|repeat|iter|iteration|trial|attempt|try|sample|round|take)"
_NUMBERED = re.compile(rf"{_RUN_WORD}=?\d{{1,4}}", re.IGNORECASE)
_WORD = re.compile(_RUN_WORD, re.IGNORECASE)
_PARAMETER = re.compile(
    r"(?:tp|pp|dp|ep|seqs?|bs|batch|tokens|batched|conc|concurrency|c|qps|rps|rate|gpus?|util|mem|len|np|prompts|size|users?|v|mns|mnbt)",
    re.IGNORECASE,
)
_WHOLE_DATE = re.compile(r"20\d{2}[-_]?[01]\d[-_]?[0-3]\d(?:[-_T ]?[0-2]\d[-_:]?[0-5]\d(?:[-_:]?[0-5]\d)?)?Z?")
# compute_result_filename of vllm/benchmarks/serve.py: {label}-{rate}qps[-concurrency{n}]-{model}-{date}.json
_VLLM_OWN = re.compile(r".*-(?:[\d.]+|inf)qps(?:-concurrency\d+)?-.*\d{8}-\d{6}")


def name_labels(paths: Sequence[str]) -> dict[str, str]:
    """Path → what its name says, "" where it says nothing. Folders that all share are left out."""
    found: dict[str, str] = {}
    unnumbered: dict[str, tuple[str, int | None]] = {}
    shared = _shared_folder(paths)
    for path in paths:
        pure = PurePath(path)
        folders = pure.parent.parts[len(shared) :]
        kept = [part for folder in folders if (part := _without_dates(folder))]
        stem = "" if _VLLM_OWN.fullmatch(pure.stem) else _without_dates(pure.stem)
        base, number = _unnumbered(stem)
        unnumbered[path] = ("/".join([*kept, base]) if base else "/".join(kept), number)
        found[path] = "/".join([*kept, stem]) if stem else "/".join(kept)
    numbers: dict[str, set[int]] = defaultdict(set)
    for base, number in unnumbered.values():
        if number is not None:
            numbers[base].add(number)
    for path, (base, number) in unnumbered.items():
        if number is None or _counts(numbers[base]):
            found[path] = base
    return found


def from_pattern(pattern: str, path: str) -> dict[str, str] | None:
    """What a person's pattern finds in the name: `{configuration}-{launch}-{run}` over `A-1-0.json` gives A, 1 and 0;
    None where it does not fit. `*` stands for anything. Raises ValueError for a pattern without {configuration}."""
    return _found(compiled(pattern), PurePath(path).stem)


def compiled(pattern: str) -> re.Pattern[str]:
    """The regular expression of a pattern; launch and run are digits or a word without separators."""
    parts = re.split(r"(\{[^{}]*\}|\*)", pattern)
    seen: set[str] = set()
    text = ""
    for part in parts:
        if part == "*":
            text += ".*"
        elif part.startswith("{"):
            name = part[1:-1]
            if name not in ("configuration", "launch", "run", "workload") or name in seen:
                raise ValueError(f"{part} is not one of {{configuration}} {{launch}} {{run}} {{workload}}, each once")
            seen.add(name)
            text += f"(?P<{name}>{r'[0-9]+' if name in ('launch', 'run') else '.+?'})"
        else:
            text += re.escape(part)
    if parts.count("*") > _MOST_STARS:
        raise ValueError(f"it has more than {_MOST_STARS} *")
    if "configuration" not in seen:
        raise ValueError("it must hold {configuration}, as in 'restart-{configuration}{launch}-{run}'")
    return re.compile(text)


def _found(expression: re.Pattern[str], stem: str) -> dict[str, str] | None:
    match = expression.fullmatch(stem)
    return None if match is None else {name: text for name, text in match.groupdict().items() if text}


def _shared_folder(paths: Sequence[str]) -> tuple[str, ...]:
    folders = [str(PurePath(path).parent) for path in paths]
    try:
        return PurePath(commonpath(folders)).parts
    except ValueError:  # none at all, or absolute beside relative ones
        return ()


def _without_dates(name: str) -> str:
    return _without_ends(_REPEATED.sub(r"\1", _WHOLE_DATE.sub("", name)))


def _without_ends(name: str) -> str:
    return name.strip("-_. ")


def _unnumbered(name: str) -> tuple[str, int | None]:
    """`a-run-3` and `a_run3` → (a, None); `a-3` → (a, 3), perhaps a run's number; anything else as it is, None."""
    tokens = _SEPARATORS.split(name)
    last, before = tokens[-1], tokens[-2] if len(tokens) > 1 else ""
    shorter = _without_ends(name[: len(name) - len(last)])
    if _NUMBERED.fullmatch(last):
        return shorter, None
    if not re.fullmatch(r"[0-9]{1,2}", last) or _PARAMETER.fullmatch(before):
        return name, None
    if _WORD.fullmatch(before):
        return _without_ends(shorter[: len(shorter) - len(before)]), None
    return shorter, int(last)


def _counts(numbers: set[int]) -> bool:
    first = min(numbers)
    return first in (0, 1) and len(numbers) > 1 and numbers == set(range(first, first + len(numbers)))
