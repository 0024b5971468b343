"""vLLM's /metrics as one typed sample.

What the page does not have is None, never 0. Counts are summed over engines (data-parallel ranks); the use of the KV
cache is that of the fullest engine, since a sum or mean of shares would hide the one that preempts.
"""

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from engine import metric_names as names
from engine.records import EngineError, EngineSample, Histogram, LoraUse, ServerSample
from engine.text import clean

_KEPT = ("vllm:", names.PROCESS_START)
_SERIES_LINE = re.compile(r"^[A-Za-z_:][\w:]*(?:\{.*\})? +[-+0-9NI]", re.MULTILINE)

Series = dict[str, list[Sample]]


def parse_metrics(text: str, at: str, clock: float) -> ServerSample:
    """One sample of a scrape: `at` UTC ISO 8601, `clock` the monotonic seconds of the same moment.

    A page without any `vllm:` series is a sample of None's (so is a server's with --disable-log-stats). Raises
    EngineError for what is no metrics page.
    """
    series = _series(text)
    kv_by_engine = _by_label(_first(series, names.KV_USAGE), "engine", max)
    running = _by_label(_first(series, names.RUNNING), "engine")
    waiting = _by_label(_first(series, names.WAITING), "engine")
    totals = {
        wanted: _by_label(_first(series, wire), "engine")
        for wanted, wire in (
            ("preemptions", names.PREEMPTIONS),
            ("prompt_tokens", names.PROMPT_TOKENS),
            ("generation_tokens", names.GENERATION_TOKENS),
        )
    }
    return ServerSample(
        at=at,
        clock=clock,
        model_name=_model_name(series),
        running=_total(_first(series, names.RUNNING)),
        waiting=_total(_first(series, names.WAITING)),
        waiting_by_reason=_by_label(_first(series, names.WAITING_BY_REASON), "reason"),
        kv_perc=100 * max(kv_by_engine.values()) if kv_by_engine else None,
        preemptions=_total(_first(series, names.PREEMPTIONS)),
        prompt_tokens=_total(_first(series, names.PROMPT_TOKENS)),
        generation_tokens=_total(_first(series, names.GENERATION_TOKENS)),
        prefix_queries=_total(_first(series, names.PREFIX_QUERIES)),
        prefix_hits=_total(_first(series, names.PREFIX_HITS)),
        requests_finished=_by_label(_first(series, names.REQUESTS_FINISHED), "finished_reason"),
        kv_cache_tokens=_config(series, "kv_cache_size_tokens", sum),
        num_gpu_blocks=_config(series, "num_gpu_blocks", sum),
        block_size=_config(series, "block_size", max),
        gpu_memory_utilization=_config(series, "gpu_memory_utilization", max),
        process_start=_total(series.get(names.PROCESS_START, [])),
        histograms={key: found for key, wire in names.HISTOGRAMS.items() if (found := _histogram(series, wire))},
        counters={
            key: total for key, wire in names.COUNTERS.items() if (total := _total(_first(series, wire))) is not None
        },
        prompt_by_source=_by_label(_first(series, names.PROMPT_BY_SOURCE), "source"),
        rejections=_by_label(_first(series, names.REJECTIONS), "reason"),
        spec_accepted_by_position=_by_label(_first(series, names.SPEC_ACCEPTED_BY_POSITION), "position"),
        lora=_lora(series),
        sleep_state=_sleep_state(series),
        engines=tuple(
            EngineSample(
                engine,
                running.get(engine),
                waiting.get(engine),
                100 * kv_by_engine[engine] if engine in kv_by_engine else None,
                **{wanted: by_engine.get(engine) for wanted, by_engine in totals.items()},
            )
            for engine in sorted(running.keys() | waiting.keys() | kv_by_engine.keys(), key=_engine_order)
        ),
        unknown=tuple(sorted(name for name in series if name.startswith("vllm:") and name not in names.KNOWN_SERIES)),
    )


def _series(text: str) -> Series:
    """Samples by exact name; those of other exporters and those that are not finite are left out."""
    if not _SERIES_LINE.search(text):
        raise EngineError("The answer of /metrics holds no metrics; is this the address of a vLLM server?")
    # Without the comments each series stands under its own name and no type can change how it is read.
    ours = "\n".join(line for line in text.split("\n") if line.startswith(_KEPT)) + "\n"
    series: Series = {}
    for sample in _samples(ours):
        if math.isfinite(sample.value):
            series.setdefault(sample.name, []).append(sample)
    return series


def _samples(text: str) -> list[Sample]:
    try:
        return [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    except (ValueError, IndexError, KeyError) as error:
        broken = str(error)
    try:  # exemplars, which only OpenMetrics has (vLLM's Rust front end)
        families = openmetrics.text_string_to_metric_families(text + "# EOF\n")  # type: ignore[no-untyped-call]
        return [sample for family in families for sample in family.samples]
    except (ValueError, IndexError, KeyError):
        raise EngineError(f"The answer of /metrics cannot be read: {clean(broken, 120)}") from None


def _first(series: Series, wire_names: Iterable[str]) -> list[Sample]:
    return next((series[name] for name in wire_names if name in series), [])


def _total(samples: list[Sample]) -> float | None:
    return _finite(math.fsum(sample.value for sample in samples)) if samples else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _by_label(
    samples: list[Sample], label: str, combine: Callable[[Iterable[float]], float] = math.fsum
) -> dict[str, float]:
    """Values by label; engines without the label (vLLM's V0) are engine 0."""
    groups: dict[str, list[float]] = {}
    for sample in samples:
        groups.setdefault(clean(sample.labels.get(label, "0")), []).append(sample.value)
    return {name: combine(values) for name, values in groups.items()}


def _engine_order(engine: str) -> tuple[int, str]:
    return (int(engine) if engine.isdecimal() and len(engine) < 10 else 1 << 31, engine)


def _model_name(series: Series) -> str | None:
    for samples in series.values():
        if name := samples[0].labels.get("model_name"):
            return clean(name)
    return None


def _lora(series: Series) -> LoraUse | None:
    """The newest of the label sets: vLLM leaves the earlier ones standing with the time at which they held."""
    samples = series.get(names.LORA, [])
    if not samples:
        return None
    labels = max(samples, key=lambda sample: sample.value).labels

    def adapters(label: str) -> tuple[str, ...]:
        return tuple(clean(name) for part in labels.get(label, "").split(",") if (name := part.strip()))

    try:
        most = _finite(float(labels.get("max_lora", "")))
    except ValueError:
        most = None
    return LoraUse(most, adapters("running_lora_adapters"), adapters("waiting_lora_adapters"))


def _sleep_state(series: Series) -> str | None:
    for sample in series.get(names.SLEEP_STATE, []):
        if sample.value == 1 and (state := sample.labels.get("sleep_state")):
            return clean(state)
    return None


def _config(series: Series, label: str, combine: Callable[[list[float]], Any]) -> float | None:
    values = []
    for sample in series.get(names.CACHE_CONFIG, []):
        try:
            values.append(float(sample.labels.get(label, "")))
        except ValueError:  # absent in this version, or "None"
            continue
    return _finite(float(combine(values))) if values else None


def _histogram(series: Series, wire_names: Iterable[str]) -> Histogram | None:
    """A histogram summed over engines; None where it is absent or incomplete."""
    for name in wire_names:
        buckets: dict[float, float] = {}
        for sample in series.get(name + "_bucket", []):
            try:
                bound = float(sample.labels["le"])
            except (KeyError, ValueError):
                continue
            if not math.isnan(bound):
                buckets[bound] = buckets.get(bound, 0.0) + sample.value
        total, count = _total(series.get(name + "_sum", [])), _total(series.get(name + "_count", []))
        if buckets and total is not None and count is not None:
            return Histogram(tuple(sorted(buckets.items())), total, count)
    return None
