"""What happened, the newest first: on a short screen the oldest fall off."""

from collections.abc import Sequence

from rich.cells import cell_len

from store.records import EventRecord
from tui.format import local_clock
from tui.panels.row import ERROR, MUTED, PLAIN, WARNING, Row, fit, outside

COLOURS = {"info": PLAIN, "warning": WARNING, "error": ERROR}


def event_rows(events: Sequence[EventRecord], width: int, lines: int) -> list[Row]:
    """A line each, as many as there are lines."""
    rows = []
    for event in list(events)[: -lines - 1 : -1]:
        clock = f"{local_clock(event.at)}  "
        rows.append(
            fit(((clock, MUTED), (outside(event.text, max(1, width - cell_len(clock))), COLOURS[event.level])), width)
        )
    return rows
