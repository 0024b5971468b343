"""vLLM's /metrics as one typed sample.

What the page does not have is None, never 0. Counts are summed over engines (data-parallel ranks); the use of the KV
cache is that of the fullest engine, since a sum or mean of shares would hide the one that preempts.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from engine.numbers import finite
from engine.records import EngineSample, Histogram, LoraUse, ServerSample
from engine.scrape import metric_names as names
from engine.scrape.metrics_page import PageReader, Reading
from engine.text import clean

Series = Mapping[str, Sequence[Reading]]

# A sample is kept each second. No vLLM comes near these; a page that does must not fill the store.
LONGEST_NAME = 256
MOST_NAMES = 256  # of one label; the rest are one, "other"


def parse_metrics(text: str, at: str, clock: float, reader: PageReader | None = None) -> ServerSample:
    """One sample of a scrape: `at` UTC ISO 8601, `clock` the monotonic seconds of the same moment.

    A `reader` that is kept from look to look makes every look after the first cheap. A page without any `vllm:` series
    is a sample of None's (so is a server's with --disable-log-stats). Raises EngineError for what is no metrics page.
    """
    series, unknown = (reader or PageReader()).read(text)
    kv_by_engine = {
        engine: share
        for engine, used in _by_engine(_first(series, names.KV_USAGE), max).items()
        if (share := _percent(used)) is not None
    }
    running = _by_engine(_first(series, names.RUNNING))
    waiting = _by_engine(_first(series, names.WAITING))
    totals = {
        wanted: _by_engine(_first(series, wire))
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
        kv_perc=max(kv_by_engine.values()) if kv_by_engine else None,
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
        process_start=_total(series.get(names.PROCESS_START, ())),
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
                kv_by_engine.get(engine),
                **{wanted: by_engine.get(engine) for wanted, by_engine in totals.items()},
            )
            for engine in sorted(running.keys() | waiting.keys() | kv_by_engine.keys(), key=_engine_order)
        ),
        unknown=tuple(name[:LONGEST_NAME] for name in unknown[:MOST_NAMES]),
    )


def _first(series: Series, wire_names: Iterable[str]) -> Sequence[Reading]:
    return next((series[name] for name in wire_names if name in series), ())


def _total(readings: Sequence[Reading]) -> float | None:
    return finite(sum(reading.value for reading in readings)) if readings else None


def _percent(share: float) -> float | None:
    """0 to 100 of a share; None for what is none. Rounding may lift a full cache a little over 1."""
    return min(100.0, 100 * share) if 0 <= share <= 1.001 else None


def _by_engine(readings: Sequence[Reading], combine: Callable[[Iterable[float]], float] = sum) -> dict[str, float]:
    """Values by engine; without the label (vLLM's V0) they are those of engine 0."""
    return _by_label(readings, "engine", "0", combine)


def _by_label(
    readings: Sequence[Reading],
    label: str,
    unlabelled: str = "other",
    combine: Callable[[Iterable[float]], float] = sum,
) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for reading in readings:
        name = clean(reading.labels.get(label, unlabelled), LONGEST_NAME)
        groups.setdefault(name if name in groups or len(groups) < MOST_NAMES else "other", []).append(reading.value)
    return {name: value for name, values in groups.items() if math.isfinite(value := combine(values))}


def _engine_order(engine: str) -> tuple[int, str]:
    return (int(engine) if engine.isdecimal() and len(engine) < 10 else 1 << 31, engine)


def _model_name(series: Series) -> str | None:
    for readings in series.values():
        if name := readings[0].labels.get("model_name"):
            return clean(name, LONGEST_NAME)
    return None


def _lora(series: Series) -> LoraUse | None:
    """The newest of the label sets: vLLM leaves the earlier ones standing with the time at which they held."""
    readings = series.get(names.LORA, ())
    if not readings:
        return None
    labels = max(readings, key=lambda reading: reading.value).labels

    def adapters(label: str) -> tuple[str, ...]:
        listed = labels.get(label, "").split(",", MOST_NAMES)[:MOST_NAMES]
        return tuple(clean(name, LONGEST_NAME) for part in listed if (name := part.strip()))

    try:
        most = finite(float(labels.get("max_lora", "")))
    except ValueError:
        most = None
    return LoraUse(most, adapters("running_lora_adapters"), adapters("waiting_lora_adapters"))


def _sleep_state(series: Series) -> str | None:
    for reading in series.get(names.SLEEP_STATE, ()):
        if reading.value == 1 and (state := reading.labels.get("sleep_state")):
            return clean(state, LONGEST_NAME)
    return None


def _config(series: Series, label: str, combine: Callable[[list[float]], Any]) -> float | None:
    values = []
    for reading in series.get(names.CACHE_CONFIG, ()):
        try:
            values.append(float(reading.labels.get(label, "")))
        except ValueError:  # absent in this version, or "None"
            continue
    return finite(float(combine(values))) if values else None


def _histogram(series: Series, wire_names: Iterable[str]) -> Histogram | None:
    """A histogram summed over engines; None where it is absent or incomplete."""
    for name in wire_names:
        buckets: dict[float, float] = {}
        for reading in series.get(name + "_bucket", ()):
            try:
                bound = float(reading.labels["le"])
            except (KeyError, ValueError):
                continue
            if not math.isnan(bound):
                buckets[bound] = buckets.get(bound, 0.0) + reading.value
        total, count = _total(series.get(name + "_sum", ())), _total(series.get(name + "_count", ()))
        if buckets and total is not None and count is not None and all(map(math.isfinite, buckets.values())):
            return Histogram(tuple(sorted(buckets.items())), total, count)
    return None
