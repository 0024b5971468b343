"""Whether the clock can be right: samples, budgets and sessions are ordered by it."""

from datetime import datetime, timedelta
from pathlib import Path

from engine.preflight.check import Check

# Our own files were not written in the future; clocks of the machine they came from may differ by so much.
_TOLERATED = timedelta(days=1)
_SLACK = timedelta(seconds=5)


def installed_at(now: datetime, file: Path = Path(__file__)) -> datetime:
    """When this very file was written: a clock that is behind it by more than a day is wrong."""
    return datetime.fromtimestamp(file.stat().st_mtime, now.tzinfo)


def clock_check(now: datetime, installed: datetime, newest: datetime | None) -> Check:
    """`newest` is the moment of the latest event in the database, None without one."""
    shown = now.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z").strip()
    if now < installed - _TOLERATED:
        found = f"{shown}, before llmtune itself was installed ({installed:%Y-%m-%d})"
        return Check("clock", "problem", found, "set the machine's clock: budgets and the order of results go by it")
    if newest is not None and now < newest - _SLACK:
        found = f"{shown}, before the newest event that is kept here ({newest.astimezone():%Y-%m-%d %H:%M:%S})"
        return Check("clock", "warning", found, "set the clock, or times of this data directory will overlap")
    return Check("clock", "ok", shown)
