"""The launches in their order, block by block: what drifts shows, and so do those that were set aside."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal
from xml.etree.ElementTree import Element

from tuning.figures import percent
from tuning.reporting.svg import (
    WIDTH,
    Scale,
    cross,
    element,
    line,
    path,
    picture,
    shortened,
    text,
    ticks,
    told,
    width_of,
)

_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 300.0, 64.0, 12.0, 30.0, 44.0
_LEAST = 0.01  # of the scale: noise smaller than a percent is not drawn as if it were a storm

Fate = Literal["counts", "set aside", "does not count"]


@dataclass(frozen=True, slots=True)
class Launched:
    """`value`: the mean log of the launch. `block` counts from 1."""

    block: int
    position: int
    candidate: int
    label: str
    value: float
    fate: Fate = "counts"


def course(name: str, metric: str, launched: Sequence[Launched], levels: dict[int, float]) -> Element | None:
    """Each launch against the mean of those of its own configuration that count, a configuration launched once left
    out: it has nothing to be held against. `levels`: block, from 1, → its level against all, as ratio − 1."""
    shown = _against_own(launched)
    if not shown:
        return None
    order = sorted(shown, key=lambda each: (each[0].block, each[0].position, each[0].candidate))
    reach = 1.15 * max(_LEAST, *(abs(ratio) for _, ratio in order), *(abs(level) for level in levels.values()))
    x = Scale(-0.5, len(order) - 0.5, _LEFT, WIDTH - _RIGHT)
    y = Scale(-reach, reach, _HEIGHT - _BOTTOM, _TOP)
    inside = [text(8, 14, f"{metric}: each launch against the mean of its configuration", "note"), *_axis(x, y)]
    at = 0
    for block, group in groupby(order, lambda each: each[0].block):
        count = len(list(group))
        inside += _block(block, at, count, levels.get(block), x, y)
        at += count
    for place, (one, ratio) in enumerate(order):
        inside += _mark(one, ratio, x(place), y(ratio))
    aside = [f"{one.label} in block {one.block}, {percent(ratio)}" for one, ratio in order if one.fate == "set aside"]
    said = f"{len(order)} launches in {order[-1][0].block} blocks. "
    said += f"Set aside: {'; '.join(aside)}." if aside else "None was set aside."
    return picture(name, _HEIGHT, f"Launches by block on {metric}", said, inside)


def _against_own(launched: Sequence[Launched]) -> list[tuple[Launched, float]]:
    own: dict[int, list[float]] = {}
    for each in launched:
        if each.fate == "counts":
            own.setdefault(each.candidate, []).append(each.value)
    means = {candidate: math.fsum(values) / len(values) for candidate, values in own.items()}
    several = {each.candidate for each in launched if sum(other.candidate == each.candidate for other in launched) > 1}
    return [
        (each, math.expm1(each.value - means[each.candidate]))
        for each in launched
        if each.candidate in means and each.candidate in several
    ]


def _axis(x: Scale, y: Scale) -> Iterator[Element]:
    for tick in ticks(y.low, y.high, 6):
        yield line(x.start, y(tick), x.end, y(tick), "zero" if abs(tick) < 1e-12 else "grid")
        yield text(x.start - 8, y(tick) + 4, percent(tick), "tick", "end")


def _block(block: int, at: int, count: int, level: float | None, x: Scale, y: Scale) -> Iterator[Element]:
    left, right = x(at - 0.5), x(at + count - 0.5)
    if at:
        yield line(left, y.start, left, y.end, "axis")
    yield text((left + right) / 2, y.start + 18, f"block {block}", "tick", "middle")
    if level is not None:
        words = f"block {block}: {percent(level)} against the mean of all blocks"
        yield told(path([(left + 3, y(level)), (right - 3, y(level))], "level"), words)
        yield text((left + right) / 2, y.start + 34, percent(level), "tick", "middle")


def _mark(one: Launched, ratio: float, x: float, y: float) -> Iterator[Element]:
    words = f"{one.label}, block {one.block}: {percent(ratio)}" + ("" if one.fate == "counts" else f", {one.fate}")
    if one.fate == "set aside":
        yield told(cross(x, y, 5, "aside"), words)
        label = shortened(one.label, 140)
        anchor = "end" if x + width_of(label) + 10 > WIDTH else "start"
        yield text(x - 9 if anchor == "end" else x + 9, y + 4, label, "label", anchor)
        return
    kind = "mark" + (" optimal" if one.candidate == 0 else "") + ("" if one.fate == "counts" else " uncounted")
    if one.candidate == 0:
        yield told(element("rect", x=x - 4.5, y=y - 4.5, width=9, height=9, class_=kind), words)
    else:
        yield told(element("circle", cx=x, cy=y, r=4, class_=kind), words)
