"""What panels take from samples: only finite numbers, and only as many labels as a panel has room for."""

from collections.abc import Mapping

from engine.numbers import finite
from engine.samples.window import Window
from store.records import SampleRecord
from tui.monitor.liveness import answered

MOST_LABELS = 6  # of one group: reasons, sources, adapters. Their number is the server's, and may be anything


def numbers(sample: SampleRecord | None, group: str) -> dict[str, float]:
    """The finite numbers of a group of `raw`, in its own order; empty where there is none."""
    values = sample.raw.get(group) if sample is not None else None
    if not isinstance(values, Mapping):
        return {}
    return {str(key): found for key, value in values.items() if (found := finite(value)) is not None}


def last_answer(window: Window) -> SampleRecord | None:
    """The newest sample in which the server answered, from which labels are known also while it does not."""
    newest = window.newest
    if newest is None or answered(newest):
        return newest
    return next((one for one in reversed(window.samples) if answered(one)), None)


def growths(window: Window, group: str) -> dict[str, float | None]:
    """How much each total of a group grew over the window, the first MOST_LABELS of them."""
    names = list(numbers(last_answer(window), group))[:MOST_LABELS]
    return {name: window.total(group, name) for name in names}


def share_perc(part: float | None, whole: float | None) -> float | None:
    """A part in percent of a whole, None while the whole is 0."""
    if part is None or whole is None or whole <= 0:
        return None
    return min(100.0, max(0.0, 100.0 * part / whole))


def a_second(grown: float | None, window: Window) -> float | None:
    """A growth over the window as a rate."""
    seconds = window.seen()
    return None if grown is None or seconds <= 0 else grown / seconds
