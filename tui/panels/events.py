"""Events as rows, the newest first: when, how grave in a word and a glyph, what; repeated ones folded into one."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.text import clean
from store.clock import parse_utc
from store.records import EventLevel, EventRecord
from tui.format import local_clock
from tui.panels.row import ERROR, MUTED, PLAIN, WARNING, Piece, Row, fit, outside

LEVELS: tuple[EventLevel, ...] = ("info", "warning", "error")
GLYPHS = {"info": "·", "warning": "▲", "error": "✗"}
KINDS = {"info": PLAIN, "warning": WARNING, "error": ERROR}

MOST = 10_000  # of one server: what is older is left out
LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class Told:
    """Equal events, one directly after the other: how many, when the first and the last of them was."""

    level: EventLevel
    text: str
    count: int
    first: str
    last: str


def fold(events: Sequence[EventRecord]) -> list[Told]:
    """Events in time order as told, the newest first."""
    told: list[Told] = []
    count = 0
    for at in range(len(events) - 1, -1, -1):
        one = events[at]
        count += 1
        before = events[at - 1] if at else None
        if before is None or before.text != one.text or before.level != one.level:
            newest = events[at + count - 1]
            told.append(Told(one.level, one.text, count, one.at, newest.at))
            count = 0
    return told


def joined(*sources: Sequence[EventRecord]) -> list[EventRecord]:
    """Events of several sources in time order, each once, the newest MOST of them."""
    known = {(one.at, one.level, one.text): one for source in sources for one in source}
    return sorted(known.values(), key=lambda one: one.at)[-MOST:]


def matching(told: Sequence[Told], words: str, least: EventLevel = "info") -> list[Told]:
    """Those at least so grave that have all of the words."""
    wanted = words.lower().split()
    grave = LEVELS[LEVELS.index(least) :]
    if not wanted and least == "info":
        return list(told)
    return [one for one in told if one.level in grave and all(word in one.text.lower() for word in wanted)]


def event_rows(told: Sequence[Told], width: int, lines: int, day: bool = False) -> list[Row]:
    """The first `lines` of them, a row each; `day` says the date too."""
    return [_row(one, width, day) for one in told[:lines]]


def _row(one: Told, width: int, day: bool) -> Row:
    kind = KINDS.get(one.level, PLAIN)
    pieces: list[Piece] = [
        (f"{_when(one.last, day)}  ", MUTED),
        (f"{GLYPHS.get(one.level, '·')} {one.level if one.level != 'info' else '':<9}", kind),
    ]
    repeated = f"  x{one.count:,} since {_when(one.first, day)}" if one.count > 1 else ""
    left = max(0, width - sum(len(text) for text, _ in pieces) - len(repeated))
    return fit((*pieces, (outside(one.text, left).rstrip(), PLAIN), (repeated, MUTED)), width)


def said(one: Told) -> str:
    """The event whole, as it is copied or read in full."""
    times = f"{_when(one.last, True)}"
    if one.count > 1:
        times += f"  x{one.count:,} since {_when(one.first, True)}"
    return f"{times}  {one.level}  {clean(one.text, LONGEST)}"


def _when(at: str, day: bool) -> str:
    try:
        return f"{parse_utc(at).astimezone():%m-%d %H:%M:%S}" if day else local_clock(at)
    except ValueError:  # a row that another program wrote
        return f"{'–':<{14 if day else 8}}"
