"""Numbers as the gauges show them: with their unit, in a fixed width so that they stand still, `–` for None."""

import math
from datetime import datetime

from store.clock import parse_utc
from store.records import ServerRecord

ABSENT = "–"


def number(value: float | None, decimals: int = 0, unit: str = "") -> str:
    """`27,245 tokens`; what cannot be read is `–`, without a unit and never 0."""
    if value is None or not math.isfinite(value):
        return ABSENT
    return f"{value:,.{decimals}f}{unit}"


def rate(value: float | None) -> str:
    """A rate per second: one decimal below 100, none above."""
    return number(value, 1 if value is not None and abs(value) < 99.95 else 0, "/s")


def span(seconds: float | None) -> str:
    """A duration as a clock shows it: `0:42`, `1:12:40`, `3 d 04:10`."""
    if seconds is None or not math.isfinite(seconds):
        return ABSENT
    whole = max(0, int(seconds))
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days} d {hour:02d}:{minute:02d}"
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def local_clock(at: str | None) -> str:
    """A stored UTC time as the wall clock here shows it: `14:01:37`."""
    return ABSENT if at is None else parse_utc(at).astimezone().strftime("%H:%M:%S")


def local_minute(at: str | None) -> str:
    """A stored UTC time with its day, as the wall clock here shows it: `2026-11-30 14:01`."""
    return ABSENT if at is None else parse_utc(at).astimezone().strftime("%Y-%m-%d %H:%M")


def since(at: str | None, now: datetime) -> float | None:
    """Seconds from a stored time until `now` (aware), never negative."""
    return None if at is None else max(0.0, (now - parse_utc(at)).total_seconds())


def called(name: str, width: int) -> str:
    """A model's name for a place of `width` characters: of a path or hub name that has no room there its last part,
    which tells it apart."""
    return name if len(name) <= width else name.rstrip("/").rpartition("/")[2] or name


def started_by(server: ServerRecord) -> str:
    """Who started it; of one that is not ours only the samples are kept."""
    if "foreign" in server.raw:
        return "others"
    return "hand" if server.session_id is None else f"session {server.session_id}"
