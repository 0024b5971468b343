"""Pictures as trees of SVG elements, which escape whatever text they are given. Colours are classes of the page."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, tostring

from engine.text import clean
from tuning.reporting.look import look

WIDTH = 760.0
_CHAR = 6.6  # px: the mean width of a character of the page's font at 12 px, rather too wide


@dataclass(frozen=True, slots=True)
class Scale:
    """`low` to `high` of a quantity, drawn from `start` to `end` (px; y grows downwards, so `end` may be less)."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def inside(self, value: float) -> float:
        """`value`, or the end of the scale that it lies beyond."""
        return min(max(value, self.low), self.high)


def element(tag: str, *inside: Element | str, **attributes: str | float) -> Element:
    """`text_anchor=` becomes `text-anchor`, `class_=` `class`, with its look; numbers have one decimal."""
    made = Element(tag, look(str(attributes.get("class_", ""))))
    made.attrib |= {_name(key): _value(value) for key, value in attributes.items()}
    for each in inside:
        if isinstance(each, str):
            made.text = (made.text or "") + clean(each)
        else:
            made.append(each)
    return made


def picture(name: str, height: float, title: str, description: str, inside: Sequence[Element]) -> Element:
    """A picture as wide as the page, said in words for who does not see it. `name` is its own within the page."""
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-desc"),
        *inside,
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        role="img",
        font_family="system-ui, 'DejaVu Sans', sans-serif",
        font_size=12,
        aria_labelledby=f"{name}-title",
        aria_describedby=f"{name}-desc",
    )


def text(x: float, y: float, words: str, kind: str = "label", anchor: str = "start") -> Element:
    return element("text", words, x=x, y=y, class_=kind, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Element:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def path(points: Sequence[tuple[float, float]], kind: str) -> Element:
    return element("path", d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), class_=kind)


def cross(x: float, y: float, size: float, kind: str) -> Element:
    return element(
        "path",
        d=f"M{x - size:.1f} {y - size:.1f}L{x + size:.1f} {y + size:.1f}"
        f"M{x - size:.1f} {y + size:.1f}L{x + size:.1f} {y - size:.1f}",
        class_=kind,
    )


def told(mark: Element, words: str) -> Element:
    """The mark with words that a browser shows when it is pointed at."""
    mark.append(element("title", words))
    return mark


def width_of(words: str) -> float:
    return _CHAR * len(words)


def shortened(words: str, width: float) -> str:
    return clean(words, max(int(width / _CHAR), 1))


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers from `low` to `high`: steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / about
    if not rough > 0 or not math.isfinite(rough):
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((factor * power for factor in (1, 2, 5) if factor * power >= rough), 10 * power)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def as_text(svg: Element) -> str:
    return tostring(svg, encoding="unicode")


def _name(key: str) -> str:
    return "viewBox" if key == "viewBox" else key.rstrip("_").replace("_", "-")


def _value(value: str | float) -> str:
    if isinstance(value, str):
        return clean(value)
    if not math.isfinite(value):
        raise ValueError("a picture's numbers are finite")
    return f"{value:.1f}".removesuffix(".0")
