"""From the samples of a run, or of a server's whole life, to panels on one time axis, and what happened. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.numbers import sum_of_all
from engine.samples.sample_record import kept_gpus, requests_finished
from store.records import SampleRecord
from store.thinning import peak
from tui.chart import MARKERS, Point, finite, round_top
from tui.format import number
from tui.monitor.happenings import QUIET_S
from tui.monitor.liveness import answered
from tui.runs.run_series import Read, Track, gauge, over, percentile_over, percentiles, rate, track

GROUPS = ("scheduler", "load", "GPU")
FAR = 3.0  # a limit is drawn where the line comes within a third of it; else it would press the line flat


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel, told from another by marker and label. `summary` is what it comes to over the run, `short`
    the same where there is little room, `signs` the moments at which its value is only a bound (`<`, `>`)."""

    label: str
    points: tuple[Point, ...]
    marker: str = MARKERS[0]
    summary: str = ""
    short: str = ""
    signs: Mapping[float, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limit:
    """A horizontal line: the value beyond which nothing goes, and what it is."""

    value: float
    words: str


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines in one unit, from 0 up to what they reach, or to `full` where they come near it. `flags` are moments that
    are marked at the lower edge."""

    key: str
    group: str
    title: str
    unit: str
    lines: tuple[Line, ...]
    decimals: int = 0
    full: float | None = None
    limit: Limit | None = None
    flags: tuple[float, ...] = ()
    flag_words: str = ""

    @property
    def top(self) -> float:
        """Where the axis ends. A limit is within it where it is near."""
        highest = max((y for line in self.lines for _, y in line.points if y is not None), default=0.0)
        if self.full is not None and highest > self.full / FAR:
            return self.full
        near = self.limit is not None and self.limit.value <= FAR * highest
        return round_top(max(highest, self.limit.value) if self.limit is not None and near else highest)


@dataclass(frozen=True, slots=True)
class Mark:
    """What happened at a moment: a character for the time axis, words; `through` draws it through all panels."""

    at: float
    glyph: str
    words: str
    through: bool = False


@dataclass(frozen=True, slots=True)
class Charts:
    """All that is drawn. Times are seconds from `zero` (unix seconds); `span` is what the axis shows, `own` the part of
    it that the figures are of (the load of a run)."""

    zero: float
    span: tuple[float, float]
    own: tuple[float, float]
    panels: tuple[Panel, ...]
    marks: tuple[Mark, ...] = ()
    samples: int = 0

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that have a panel."""
        return tuple(group for group in GROUPS if any(panel.group == group for panel in self.panels))


def charts(
    samples: Sequence[SampleRecord],
    zero: float,
    span: tuple[float, float],
    own: tuple[float, float],
    marks: Sequence[Mark] = (),
    max_num_seqs: float | None = None,
) -> Charts:
    """The charts of samples in time order, all of one server. What none of them has gets no panel."""
    found = track(samples, zero)
    made = (*_scheduler(found, own, finite(max_num_seqs)), *_load(found, own), *_gpu(found, own))
    panels = tuple(panel for panel in made if any(y is not None for line in panel.lines for _, y in line.points))
    happened = sorted((*marks, *_seen(found)), key=lambda mark: mark.at)
    return Charts(zero, span, own, panels, tuple(mark for mark in happened if _shown(mark, span)), len(found.samples))


def _shown(mark: Mark, span: tuple[float, float]) -> bool:
    return span[0] <= mark.at <= span[1]


def _line(points: tuple[Point, ...], own: tuple[float, float], label: str = "", at: int = 0, decimals: int = 0) -> Line:
    mean, highest = over(points, own)
    short = "–" if mean is None else f"mean {number(mean, decimals)}"
    summary = short if highest is None else f"{short} max {number(highest, decimals)}"
    return Line(label, points, MARKERS[at], summary, short)


def _peak(name: str) -> Read:
    """The quantity as it stood, or its peak in the time that a thinned sample stands for."""
    return lambda sample: peak(sample, name)


def _scheduler(found: Track, own: tuple[float, float], max_num_seqs: float | None) -> tuple[Panel, ...]:
    kv = _line(gauge(found, _peak("kv_perc")), own, decimals=1)
    running = _line(gauge(found, _peak("running")), own, "running", 0)
    waiting = _line(gauge(found, _peak("waiting")), own, "waiting", 1)
    thrown = _line(rate(found, lambda sample: sample.preemptions), own, decimals=1)
    limit = Limit(max_num_seqs, f"max-num-seqs {number(max_num_seqs)}") if max_num_seqs else None
    return (
        Panel("kv", "scheduler", "KV cache", " %", (kv,), 1, full=100.0),
        Panel("requests", "scheduler", "requests", "", (running, waiting), limit=limit),
        Panel("preemptions", "scheduler", "preemptions", " /s", (thrown,), 1),
    )


def _load(found: Track, own: tuple[float, float]) -> tuple[Panel, ...]:
    output = _line(rate(found, lambda sample: sample.generation_tokens), own, "output", 0)
    prompt = _line(rate(found, lambda sample: sample.prompt_tokens), own, "prompt", 1)
    finished = _line(rate(found, requests_finished), own, decimals=1)
    ttft = []
    for at, perc in enumerate((50, 90)):
        one = percentiles(found, "ttft", perc)
        all_of_it = percentile_over(found, "ttft", perc, own)
        ttft.append(Line(f"p{perc}", one.points, MARKERS[at], all_of_it, all_of_it, one.signs))
    return (
        Panel("tokens", "load", "tokens", " /s", (output, prompt)),
        Panel("finished", "load", "finished", " requests/s", (finished,), 1),
        Panel("ttft", "load", "TTFT", " ms", tuple(ttft)),
    )


def _gpu(found: Track, own: tuple[float, float]) -> tuple[Panel, ...]:
    memory = _line(gauge(found, _peak("gpu_mem_used_gib")), own, decimals=1)
    power = _line(gauge(found, lambda sample: sample.gpu_power_w), own)
    clock = _line(gauge(found, lambda sample: _least(sample, "sm_clock_mhz")), own)
    several = max((len(kept_gpus(sample)) for sample in found.samples[-1:]), default=0) > 1
    flags, why = _throttled(found)
    return (
        Panel("memory", "GPU", "GPU memory", " GiB", (memory,), 1, limit=_budget(found)),
        Panel("util", "GPU", "GPU utilization", " %", _utilization(found, own, several), full=100.0),
        Panel("power", "GPU", "GPU power", " W", (power,), limit=_power_limit(found)),
        Panel(
            "clock", "GPU", f"GPU clock{' (slowest)' if several else ''}", " MHz", (clock,), flags=flags, flag_words=why
        ),
    )


def _utilization(found: Track, own: tuple[float, float], several: bool) -> tuple[Line, ...]:
    """The mean over the GPUs; of several the least busy too, which a mean hides."""
    mean = _line(gauge(found, lambda sample: sample.gpu_util_perc), own, "mean" if several else "")
    if not several:
        return (mean,)
    least = _line(gauge(found, lambda sample: _least(sample, "util_perc")), own, "least busy", 1)
    return (mean, least)


def _least(sample: SampleRecord, name: str) -> float | None:
    return min((value for gpu in kept_gpus(sample) if (value := finite(gpu.get(name))) is not None), default=None)


def _sum(sample: SampleRecord, name: str) -> float | None:
    """Over all GPUs of the sample; None where one of them does not tell it."""
    return sum_of_all(finite(gpu.get(name)) for gpu in kept_gpus(sample))


def _budget(found: Track) -> Limit | None:
    """What gpu-memory-utilization allows the server of its GPUs, as it told last."""
    for sample in reversed(found.samples):
        share, total = finite(sample.raw.get("gpu_memory_utilization")), _sum(sample, "mem_total_gib")
        if share is not None and total is not None:
            return Limit(share * total, f"budget {share:g}: {share * total:,.1f} GiB")
    return None


def _power_limit(found: Track) -> Limit | None:
    limits = (_sum(sample, "power_limit_w") for sample in reversed(found.samples))
    limit = next((value for value in limits if value is not None), None)
    return None if limit is None else Limit(limit, f"limit {limit:,.0f} W")


def _throttled(found: Track) -> tuple[tuple[float, ...], str]:
    """When some GPU was held back, and by what."""
    moments, reasons = [], dict[str, None]()
    for at, sample in zip(found.times, found.samples, strict=True):
        told = [gpu.get("throttle_reasons") for gpu in kept_gpus(sample)]
        given = [one for each in told if isinstance(each, list) for one in each if isinstance(one, str) and one]
        if given:
            moments.append(at)
            reasons |= dict.fromkeys(given)
    return tuple(moments), ", ".join(reasons)


def _seen(found: Track) -> list[Mark]:
    """What the samples themselves tell: another life of the server, preemptions that begin, no answer."""
    marks = [Mark(found.times[at], "x", "the server started anew", True) for at in sorted(found.anew)]
    silent, thrown, quiet_since = False, None, None
    for at, sample in zip(found.times, found.samples, strict=True):
        answers = answered(sample)
        if not answers and not silent and "error" in sample.raw:
            marks.append(Mark(at, "?", "no answer from the server"))
        silent = not answers
        if sample.preemptions is None:
            continue
        if thrown is not None and sample.preemptions > thrown:
            if quiet_since is None or at - quiet_since >= QUIET_S:
                marks.append(Mark(at, "p", "preemptions began"))
            quiet_since = at
        thrown = sample.preemptions
    return marks
