"""Throughput against latency: each configuration with its intervals, and the front that none beats in both."""

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from tuning.figures import figure, metric_title, summary_text
from tuning.judgement.pareto import ParetoPoint
from tuning.records import Summary
from tuning.reporting.svg import WIDTH, Scale, element, line, path, picture, shortened, text, ticks, told, width_of

_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 400.0, 78.0, 20.0, 26.0, 54.0
_LABEL = 150.0  # px at most
_BEYOND = 0.6  # of what the means span: intervals may reach so far, those of two launches reach anywhere


def trade(name: str, points: Sequence[ParetoPoint], throughput: str, latency: str) -> Element | None:
    """None where there is nothing to weigh: fewer than two configurations."""
    if len(points) < 2:
        return None
    x = Scale(*_range([point.latency for point in points]), _LEFT, WIDTH - _RIGHT)
    y = Scale(*_range([point.throughput for point in points]), _HEIGHT - _BOTTOM, _TOP)
    front = [(x(_mean(point.latency)), y(_mean(point.throughput))) for point in points if point.optimal]
    inside = [
        *_axes(x, y),
        text((x.start + x.end) / 2, _HEIGHT - 10, f"{metric_title(latency)} (less is better)", "note", "middle"),
        text(8, 14, f"{metric_title(throughput)} (more is better)", "note"),
        path(list(_stairs(front)), "front"),
    ]
    for point in points:
        inside += _bars(point, x, y)
    for point in points:
        inside.append(_mark(point, x, y))
    inside += _labels(points, x, y)
    said = " ".join(
        f"{point.label}: {summary_text(point.throughput)} at {summary_text(point.latency)}"
        f"{', on the front' if point.optimal else ''}."
        for point in points
    )
    title = f"{metric_title(throughput)} against {metric_title(latency)}"
    return picture(name, _HEIGHT, title, said, inside)


def _mean(summary: Summary) -> float:
    return summary.mean or 0.0


def _range(summaries: Sequence[Summary]) -> tuple[float, float]:
    means = [_mean(each) for each in summaries]
    span = max(max(means) - min(means), 0.05 * abs(max(means)), 1e-9)
    low, high = min(means) - 0.12 * span, max(means) + 0.12 * span
    for each in summaries:
        if each.low is not None and each.high is not None:
            low = min(low, max(each.low, min(means) - _BEYOND * span))
            high = max(high, min(each.high, max(means) + _BEYOND * span))
    return (max(low, 0.0) if min(means) >= 0 else low), high


def _axes(x: Scale, y: Scale) -> Iterator[Element]:
    yield line(x.start, y.start, x.end, y.start, "axis")
    yield line(x.start, y.start, x.start, y.end, "axis")
    for tick in ticks(x.low, x.high, 7):
        yield line(x(tick), y.start, x(tick), y.end, "grid")
        yield text(x(tick), y.start + 18, figure(tick), "tick", "middle")
    for tick in ticks(y.low, y.high, 6):
        yield line(x.start, y(tick), x.end, y(tick), "grid")
        yield text(x.start - 8, y(tick) + 4, figure(tick), "tick", "end")


def _stairs(front: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Between two of the front, the one of less latency is what can be had."""
    for at, (x, y) in enumerate(front):
        if at:
            yield x, front[at - 1][1]
        yield x, y


def _bars(point: ParetoPoint, x: Scale, y: Scale) -> Iterator[Element]:
    across, up = x(_mean(point.latency)), y(_mean(point.throughput))
    if point.latency.low is not None and point.latency.high is not None:
        yield line(x(x.inside(point.latency.low)), up, x(x.inside(point.latency.high)), up, "bars")
    if point.throughput.low is not None and point.throughput.high is not None:
        yield line(across, y(y.inside(point.throughput.low)), across, y(y.inside(point.throughput.high)), "bars")


def _mark(point: ParetoPoint, x: Scale, y: Scale) -> Element:
    across, up = x(_mean(point.latency)), y(_mean(point.throughput))
    kind = f"mark{' optimal' if point.optimal else ''}"
    if point.candidate == 0:
        mark = element("rect", x=across - 5, y=up - 5, width=10, height=10, class_=kind)
    else:
        mark = element("circle", cx=across, cy=up, r=5, class_=kind)
    return told(mark, f"{point.label}: {summary_text(point.throughput)} at {summary_text(point.latency)}")


def _labels(points: Sequence[ParetoPoint], x: Scale, y: Scale) -> Iterator[Element]:
    """Each beside its mark, where it covers no mark and no other label; where all places are taken, the first."""
    taken = [(x(_mean(p.latency)) - 6, y(_mean(p.throughput)) - 6, 12.0, 12.0) for p in points]
    for point in points:
        words = shortened(point.label, _LABEL)
        width, across, up = width_of(words), x(_mean(point.latency)), y(_mean(point.throughput))
        places = [(across + 9, up + dy) for dy in (-10, 2, 14, 26)] + [
            (across - 9 - width, up + dy) for dy in (-10, 2, 14, 26)
        ]
        fits = [(left, top) for left, top in places if left >= x.start and left + width <= WIDTH]
        free = [
            (left, top) for left, top in fits if not any(_overlap((left, top - 9, width, 12), box) for box in taken)
        ]
        left, top = (free or fits or places)[0]
        taken.append((left, top - 9, width, 12))
        yield told(text(left, top, words, "label on-front" if point.optimal else "label"), point.label)


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]
