"""The LoRA adapters that requests use now, of those that fit at once."""

from collections.abc import Mapping
from typing import Any

from engine.numbers import finite
from engine.samples.window import Window
from store.records import SampleRecord
from tui.panels.reading import MOST_LABELS, last_answer
from tui.panels.row import GOOD, MUTED, PLAIN, WARNING, Row, brief, fit, group, outside, title


def adapter_rows(window: Window, answers: bool, width: int) -> list[Row]:
    """The panel, `width` cells wide; no rows where the server serves no adapters.

    Always of the same height: adapters come and go with each request.
    """
    known = _use(last_answer(window))
    if known is None:
        return []
    now = _use(window.newest) if answers else None
    running, waiting = _names(now, "running"), _names(now, "waiting")
    most = finite(now.get("most")) if now is not None else None
    count = None if now is None else float(len(running))
    queue = None if now is None else float(len(waiting))
    cells = [("in use", f"{brief(count)} of {brief(most)}", PLAIN), ("waiting", brief(queue), WARNING if queue else "")]
    rows = [title("LoRA adapters", width), *group("adapters", cells, width)]
    listed = [("●", name, GOOD) for name in running]
    listed += [("○", name, WARNING) for name in waiting if name not in running]
    most_told = finite(known.get("most"))
    room = max(2, min(MOST_LABELS, round(most_told))) if most_told is not None and most_told < 1e6 else MOST_LABELS
    for glyph, name, kind in listed[: room if len(listed) <= room else room - 1]:
        state = "waiting" if glyph == "○" else "running, waiting" if name in waiting else "running"
        rows.append(((f"{glyph} ", kind), (f"{state:<17} ", MUTED), (outside(name, max(0, width - 20)), PLAIN)))
    if len(listed) > room:
        rows.append(((f"  … {len(listed) - room + 1} more", MUTED),))
    rows += [((" ", PLAIN),)] * (room + 2 - len(rows))
    return [fit(row, width) for row in rows]


def _use(sample: SampleRecord | None) -> Mapping[str, Any] | None:
    found = sample.raw.get("lora") if sample is not None else None
    return found if isinstance(found, Mapping) else None


def _names(use: Mapping[str, Any] | None, which: str) -> list[str]:
    names = use.get(which) if use is not None else None
    return [str(name) for name in names] if isinstance(names, list | tuple) else []
