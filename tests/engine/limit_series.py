"""Scripted samples of a server, one a second unless said, for tests of what limits it."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from engine.limiting.knobs import Knob, Knobs
from engine.samples.window import Window
from store.clock import format_utc
from store.records import SampleRecord

BEGIN = datetime(2026, 11, 30, 10, 0, tzinfo=UTC).timestamp()
KNOBS = Knobs(Knob(2048, "log"), Knob(0.92, "metrics"), Knob(256, "flag"))
UNKNOWN = Knobs()
STEP_BOUNDS = (1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0)


def gpu(util: float = 98.0, power: float = 612.0, **more: Any) -> dict[str, Any]:
    return {
        "index": 0,
        "name": "NVIDIA H200",
        "mem_total_gib": 140.4,
        "util_perc": util,
        "power_w": power,
        "power_limit_w": 700.0,
        "throttle_reasons": [],
        "sm_clock_mhz": 1980.0,
        "processes": [{"pid": 7, "used_gib": 130.0, "name": "VLLM::EngineCore"}],
    } | more


def sample(
    second: float,
    running: float | None = 0.0,
    waiting: float | None = 0.0,
    kv: float | None = 10.0,
    preemptions: float | None = 0.0,
    **raw: Any,
) -> SampleRecord:
    return SampleRecord(
        at=format_utc(datetime.fromtimestamp(BEGIN + second, UTC)),
        running=running,
        waiting=waiting,
        kv_perc=kv,
        preemptions=preemptions,
        generation_tokens=1000.0 * second if running is not None else None,
        raw={"gpus": [gpu()], **raw},
    )


def series(count: int, each: Callable[[int], dict[str, Any]], every: float = 1.0) -> list[SampleRecord]:
    """`count` readings and the one before them; `each` gives the arguments of `sample` by number."""
    return [sample(every * at, **each(at)) for at in range(count + 1)]


def steady(count: int = 60, **shown: Any) -> list[SampleRecord]:
    return series(count, lambda at: shown)


def live(samples: Iterable[SampleRecord]) -> Window:
    return Window(60.0, samples)


def steps(*tokens: tuple[float, float]) -> dict[str, Any]:
    """`histograms` of a sample in which so many steps of so many tokens were made: `(count, tokens)`."""
    corners: list[list[float | None]] = []
    for bound in STEP_BOUNDS:
        corners.append([bound, sum(count for count, size in tokens if size <= bound)])
    total = sum(count for count, _ in tokens)
    corners.append([None, total])
    return {"step_tokens": {"sum": sum(count * size for count, size in tokens), "count": total, "corners": corners}}


def growing_steps(*per_second: tuple[float, float]) -> Callable[[int], dict[str, Any]]:
    return lambda at: steps(*((count * at, size) for count, size in per_second))


def joined(*parts: Sequence[SampleRecord]) -> list[SampleRecord]:
    """One after the other, a second between them; counters go on as they stand in each."""
    out: list[SampleRecord] = []
    for part in parts:
        for one in part:
            shown = {"running": one.running, "waiting": one.waiting, "kv": one.kv_perc, "preemptions": one.preemptions}
            out.append(sample(float(len(out)), **shown, **one.raw))
    return out
