"""One line of `llmtune doctor`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "problem"]

GIB = 2**30
_BY_WEIGHT: tuple[State, ...] = ("ok", "warning", "problem")


@dataclass(frozen=True, slots=True)
class Check:
    """`found` is what was found, `advice` what to do about it, "" where there is nothing to do. One line each."""

    name: str
    state: State
    found: str
    advice: str = ""


def together(name: str, findings: Iterable[tuple[State, str, str]]) -> Check:
    """Several findings (state, found, advice) about one thing as one check: the worst state, and all that is said."""
    kept = list(findings)
    return Check(
        name,
        max((state for state, _, _ in kept), key=_BY_WEIGHT.index, default="ok"),
        "; ".join(found for _, found, _ in kept if found),
        "; ".join(advice for _, _, advice in kept if advice),
    )


def gib(size: float) -> str:
    """Bytes as `1.5 GiB`; below a tenth of one as `12 MiB`."""
    return f"{size / GIB:.1f} GiB" if size >= GIB / 10 else f"{size / 2**20:.0f} MiB"
