"""Each candidate's effect with its interval, beside the band in which a difference does not matter."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from tuning.reporting.svg import WIDTH, Scale, element, line, path, picture, shortened, text, ticks, told, width_of

_ROW, _TOP, _BOTTOM = 26.0, 34.0, 46.0
_RIGHT = 290.0  # px for the words
_WIDEST_LABEL = 180.0
_FAR = 5.0  # margins; what lies beyond would press the others together, and is an arrow
_LEAST = 1.5


@dataclass(frozen=True, slots=True)
class Effected:
    """A row: ratios − 1 as a verdict has them. `words` stand at the right. `with_all`: the interval with the launches
    that were set aside put back."""

    label: str
    effect: float
    low: float | None
    high: float | None
    kind: str
    words: str
    with_all: tuple[float, float] | None = None


def forest(name: str, metric: str, rows: Sequence[Effected], margin: float, larger_is_better: bool) -> Element | None:
    """None without a row. `metric` is as a person reads it, `margin` a ratio."""
    if not rows:
        return None
    left = min(max(width_of(row.label) for row in rows), _WIDEST_LABEL) + 16
    height = _TOP + _ROW * len(rows) + _BOTTOM
    bottom = height - _BOTTOM
    x = Scale(*_range(rows, margin), left, WIDTH - _RIGHT)
    better, worse = ("better →", "← worse") if larger_is_better else ("worse →", "← better")
    inside = [
        element(
            "rect", x=x(-margin), y=_TOP - 8, width=x(margin) - x(-margin), height=bottom - _TOP + 8, class_="band"
        ),
        *_axis(x, bottom),
        line(x(0), _TOP - 8, x(0), bottom, "zero"),
        text(x.start, 16, worse, "note"),
        text(x.end, 16, better, "note", "end"),
        text(
            (x.start + x.end) / 2,
            height - 8,
            f"{metric} against the default, ±{100 * margin:g} % shaded",
            "note",
            "middle",
        ),
    ]
    for at, row in enumerate(rows):
        inside += _row(row, x, _TOP + _ROW * (at + 0.5), left)
    said = ". ".join(f"{row.label}: {row.words}" for row in rows)
    return picture(name, height, f"Effect of each candidate on {metric}, with its interval", f"{said}.", inside)


def _range(rows: Sequence[Effected], margin: float) -> tuple[float, float]:
    """Around zero, as far as the intervals of near effects reach, and no farther than half as far again as allowed."""
    ends = [0.0]
    for row in rows:
        if abs(row.effect) <= _FAR * margin:
            ends += [row.effect, *(end for end in (row.low, row.high) if end is not None)]
    least, most = _LEAST * margin, 2 * _FAR * margin
    low, high = max(min(*ends, -least), -most), min(max(*ends, least), most)
    room = 0.06 * (high - low)
    return low - room, high + room


def _axis(x: Scale, bottom: float) -> list[Element]:
    inside = []
    for tick in ticks(x.low, x.high, 7):
        inside.append(line(x(tick), bottom, x(tick), bottom + 5, "axis"))
        inside.append(text(x(tick), bottom + 19, _tick(tick), "tick", "middle"))
    return [line(x.start, bottom, x.end, bottom, "axis"), *inside]


def _tick(ratio: float) -> str:
    return f"{100 * ratio:+g} %".replace("-", "−") if abs(ratio) > 1e-12 else "0"


def _row(row: Effected, x: Scale, y: float, left: float) -> list[Element]:
    label = told(text(left - 12, y + 4, shortened(row.label, left - 14), "label", "end"), row.label)
    drawn = [label, text(WIDTH - _RIGHT + 14, y + 4, shortened(row.words, _RIGHT - 8), f"words v-{row.kind}")]
    if row.with_all is not None:
        low, high = map(x.inside, row.with_all)
        drawn.append(told(line(x(low), y + 8, x(high), y + 8, "whole"), f"{row.label}, with every launch"))
    if row.low is not None and row.high is not None and row.high >= x.low and row.low <= x.high:
        low, high = x.inside(row.low), x.inside(row.high)
        drawn.append(told(line(x(low), y, x(high), y, f"interval v-{row.kind}"), f"{row.label}: {row.words}"))
        drawn += [
            line(x(end), y - 4, x(end), y + 4, f"interval v-{row.kind}")
            for end in (row.low, row.high)
            if x.inside(end) == end
        ]
    if x.inside(row.effect) == row.effect:
        mark = element("circle", cx=x(row.effect), cy=y, r=4.5, class_=f"point v-{row.kind}")
    else:
        tip, way = (x.end, -1) if row.effect > 0 else (x.start, 1)
        mark = path([(tip, y), (tip + way * 9, y - 5), (tip + way * 9, y + 5), (tip, y)], f"point v-{row.kind}")
    return [*drawn, told(mark, f"{row.label}: {row.words}")]
