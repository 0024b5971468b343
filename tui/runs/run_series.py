"""Samples as lines over time: gauges, rates per second and percentiles, unbroken only where the samples are. Pure.

The samples may be 1 s apart or, where the store has thinned them, 10 s or a minute: a rate is per second whatever lies
between two samples, and a gap is what is long against the steps around it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from engine.records import Histogram
from engine.samples.sample_record import histogram_of
from engine.samples.window import started_anew
from engine.scrape.histograms import between, percentile
from store.clock import unix_seconds
from store.records import SampleRecord
from tui.chart import Point, finite

SLOTS = 240  # a counter is read at no more moments than this: more are no picture, and shorter ones flicker
LEAST_S = 0.75  # a run's first and last sample lie a moment beside another one: no rate comes from so little
MS = 1000.0  # in a second
PERCENTILE_SLOTS, PERCENTILE_S = 60, 2.0  # a percentile wants some values to come from
GAP, SHORTEST_GAP_S, NEIGHBOURS = 3.0, 3.0, 4

Read = Callable[[SampleRecord], float | None]


@dataclass(frozen=True, slots=True)
class Track:
    """One server's samples, oldest first, at seconds from the axis' zero. `cut` are those before which there is a gap,
    `anew` those that are the first of another life of the server; indices into both."""

    samples: tuple[SampleRecord, ...]
    times: tuple[float, ...]
    cut: frozenset[int]
    anew: frozenset[int]

    @property
    def span(self) -> float:
        """Seconds from the first sample to the last."""
        return self.times[-1] - self.times[0] if self.times else 0.0


@dataclass(frozen=True, slots=True)
class Bounded:
    """A percentile over time. `signs` has `<` or `>` for those moments at which a histogram's buckets do not resolve
    it: the point is then the bound."""

    points: tuple[Point, ...]
    signs: Mapping[float, str] = field(default_factory=dict)


def track(samples: Sequence[SampleRecord], zero: float) -> Track:
    """The samples in time order; `zero` in unix seconds. One at the time of the one before is left out."""
    times: list[float] = []
    kept: list[SampleRecord] = []
    for sample in samples:
        at = unix_seconds(sample.at) - zero
        if not times or at > times[-1]:
            times.append(at)
            kept.append(sample)
    return Track(tuple(kept), tuple(times), _gaps(times), _lives(kept))


def _gaps(times: Sequence[float]) -> frozenset[int]:
    """The samples that come after a longer pause than those around them, on either side."""
    steps = [later - earlier for earlier, later in pairwise(times)]
    found = []
    for at, step in enumerate(steps):
        if step <= SHORTEST_GAP_S:
            continue
        sides = steps[max(0, at - NEIGHBOURS) : at], steps[at + 1 : at + 1 + NEIGHBOURS]
        usual = max((median(side) for side in sides if side), default=1.0)
        if step > GAP * usual:
            found.append(at + 1)
    return frozenset(found)


def _lives(samples: Sequence[SampleRecord]) -> frozenset[int]:
    answered = [at for at, sample in enumerate(samples) if sample.generation_tokens is not None]
    return frozenset(now for before, now in pairwise(answered) if _another(samples[before], samples[now]))


def _another(before: SampleRecord, after: SampleRecord) -> bool:
    """Whether a new life of the server began in between. One that says that it did not is believed: to look at all
    totals of a long history costs as much as to read it."""
    told = after.raw.get("process_start")
    return (told is None or told != before.raw.get("process_start")) and started_anew(before, after)


def gauge(found: Track, read: Read) -> tuple[Point, ...]:
    """A quantity as it stood; where it could not be read, or nothing was sampled, the line ends."""
    return _joined(piece for piece in _pieces(found, read, lives=False))


def rate(found: Track, read: Read) -> tuple[Point, ...]:
    """A counter's growth per second between two samples, at the later one. No line leads through a restart."""
    least = max(LEAST_S, found.span / SLOTS)
    grown: list[list[tuple[float, float]]] = []
    for piece in _pieces(found, read, lives=True):
        picks = _spaced(piece, least)
        grown.append([])
        for (earlier, before), (later, now) in pairwise(picks):
            if now < before:  # counts that fell without the server's saying that it started anew
                grown.append([])
            else:
                grown[-1].append((later, (now - before) / (later - earlier)))
    return _joined(grown)


def percentiles(found: Track, name: str, perc: float) -> Bounded:
    """A percentile of what came into a histogram of seconds between two moments, in ms."""
    least = max(PERCENTILE_S, found.span / PERCENTILE_SLOTS)
    index = {at: number for number, at in enumerate(found.times)}
    signs: dict[float, str] = {}
    pieces: list[list[tuple[float, float]]] = []
    for piece in _pieces(found, lambda sample: 0.0 if name in _histograms(sample) else None, lives=True):
        pieces.append([])
        for (earlier, _), (later, _) in pairwise(_spaced(piece, least)):
            before, now = (histogram_of(found.samples[index[at]], name) for at in (earlier, later))
            come = between(before, now) if before is not None else None
            value, sign = _value(come, perc)
            if value is None:
                pieces.append([])
            else:
                pieces[-1].append((later, MS * value))
                if sign:
                    signs[later] = sign
    return Bounded(_joined(pieces), signs)


def percentile_over(found: Track, name: str, perc: float, own: tuple[float, float]) -> str:
    """The percentile of all that came in within `own`, as `41 ms`'s number with its sign (`<10`); `–` without."""
    inside = [
        found.samples[at]
        for at in range(len(found.times))
        if own[0] - LEAST_S <= found.times[at] <= own[1] + LEAST_S and name in _histograms(found.samples[at])
    ]
    if len(inside) < 2:
        return "–"
    before, now = histogram_of(inside[0], name), histogram_of(inside[-1], name)
    value, sign = _value(between(before, now) if before is not None else None, perc)
    return "–" if value is None else f"{sign}{MS * value:,.0f}"


def _value(come: Histogram | None, perc: float) -> tuple[float | None, str]:
    """The percentile, or the bound that it lies below or above with its sign."""
    found = percentile(come, perc)
    if found is None:
        return None, ""
    if found.value is not None:
        return finite(found.value), ""
    return (finite(found.upper), "<") if found.upper is not None else (finite(found.lower), ">")


def _histograms(sample: SampleRecord) -> Mapping[str, object]:
    kept = sample.raw.get("histograms")
    return kept if isinstance(kept, Mapping) else {}


def _pieces(found: Track, read: Read, lives: bool) -> Iterator[list[tuple[float, float]]]:
    """The stretches in which every sample was read; with `lives`, a stretch lies within one life of the server."""
    piece: list[tuple[float, float]] = []
    for number, (at, sample) in enumerate(zip(found.times, found.samples, strict=True)):
        value = finite(read(sample))
        if piece and (value is None or number in found.cut or (lives and number in found.anew)):
            yield piece
            piece = []
        if value is not None:
            piece.append((at, value))
    if piece:
        yield piece


def _spaced(piece: Sequence[tuple[float, float]], least: float) -> list[tuple[float, float]]:
    """Points at least `least` seconds apart; the first and the last are among them."""
    kept = [piece[0]]
    for point in piece[1:]:
        if point[0] - kept[-1][0] >= least:
            kept.append(point)
    if kept[-1] != piece[-1]:
        if len(kept) > 1:
            kept[-1] = piece[-1]
        elif piece[-1][0] - piece[0][0] >= LEAST_S:
            kept.append(piece[-1])
    return kept


def _joined(pieces: Iterator[list[tuple[float, float]]] | Sequence[list[tuple[float, float]]]) -> tuple[Point, ...]:
    """The pieces one after the other, a point without a value between two of them."""
    points: list[Point] = []
    for piece in pieces:
        if points and piece:
            points.append((((points[-1][0] or 0.0) + piece[0][0]) / 2, None))
        points += piece
    return tuple(points)


def nearest(points: Sequence[Point], moment: float, within: float) -> tuple[float, float] | None:
    """The point nearest to the moment; None in a break of the line, and beyond its ends by more than `within`."""
    at = bisect_left(points, moment, key=lambda point: point[0] if point[0] is not None else 0.0)
    around = points[max(0, at - 1) : at + 1]
    known = [(x, y) for x, y in around if x is not None and y is not None]
    if not known:
        return None
    best = min(known, key=lambda point: abs(point[0] - moment))
    return best if len(known) == 2 or abs(best[0] - moment) <= within else None


def over(points: Sequence[Point], own: tuple[float, float]) -> tuple[float | None, float | None]:
    """Mean over time, and peak, of a line within the moments `own`. None where there is nothing."""
    inside = [(x, y) for x, y in points if x is not None and own[0] - LEAST_S <= x <= own[1] + LEAST_S]
    known = [y for _, y in inside if y is not None]
    if not known:
        return None, None
    area = seconds = 0.0
    for (x0, y0), (x1, y1) in pairwise(inside):
        if y0 is not None and y1 is not None:
            area, seconds = area + (y0 + y1) / 2 * (x1 - x0), seconds + x1 - x0
    return (area / seconds if seconds > 0 else sum(known) / len(known)), max(known)
