"""How long samples are kept, and how finely: which of them go, and what those that stay say of them.

A server is sampled once a second. Samples outside of runs are kept whole for six hours, then one in 10 s, after two
days one a minute, after a month one in ten minutes; those of a run are kept whole for two days, then one in 5 s, after
a month one in 10 s. `STEPS` holds these figures, docs/method.md what a week of them takes.

The sample that stays is the last of its interval that the server answered. Counters and histograms are totals since
the server's start, so what is added between two samples that stay is exact; a server that started anew within the
interval keeps the last sample of each life, and a run its very first sample, from which its differences are taken.
Gauges are not totals: `raw["thinned"]` holds the largest that was read in the interval,

    {"samples": 10, "silent": 1, "peak": {"kv_perc": 97.1, "running": 256.0, "waiting": 31.0, "gpu_mem_used_gib": 130}}

with the number of samples that it stands for, and of those in which the server did not answer.
"""

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from store.clock import format_utc, parse_utc, unix_seconds
from store.records import SampleRecord

BATCH = 300
"""Samples looked at in one transaction, which holds the store for some milliseconds."""
CLOCK_AHEAD = timedelta(hours=1)
"""A sample from further ahead than this was taken by a clock that has been set back since."""
GAUGES = ("kv_perc", "running", "waiting", "gpu_mem_used_gib")
"""Columns whose largest reading is kept."""


@dataclass(frozen=True, slots=True)
class Step:
    """Samples older than `after` are thinned to one in `every_s` seconds: those of runs, or those outside of them.

    `name` is its key in the table `thinned`, which holds the last sample it has dealt with.
    """

    name: str
    of_runs: bool
    after: timedelta
    every_s: int

    def until(self, now: datetime) -> datetime:
        """The moment before which it thins: the end of the last whole interval that is old enough."""
        seconds = (now - self.after).timestamp()
        return datetime.fromtimestamp(math.floor(seconds / self.every_s) * self.every_s, now.tzinfo)


STEPS = (
    Step("outside runs, 10 s", False, timedelta(hours=6), 10),
    Step("outside runs, 1 min", False, timedelta(days=2), 60),
    Step("outside runs, 10 min", False, timedelta(days=30), 600),
    Step("runs, 5 s", True, timedelta(days=2), 5),
    Step("runs, 10 s", True, timedelta(days=30), 10),
)


@dataclass(frozen=True, slots=True)
class Moment:
    """What thinning reads of a sample. `thinned` is what its `raw` says of the samples it stands for already."""

    id: int
    at: datetime
    server_id: int | None
    run_id: int | None
    totals: tuple[float | None, ...]
    gauges: Mapping[str, float | None]
    thinned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def silent(self) -> bool:
        """Whether the server did not answer."""
        return all(total is None for total in self.totals)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`stay` has the new `raw["thinned"]` of each sample that stands for others now; `go` is to be deleted."""

    stay: Mapping[int, dict[str, Any]]
    go: tuple[int, ...]


def judge(moments: Iterable[Moment], every_s: int, keep: frozenset[int] = frozenset()) -> Verdict:
    """Which of `moments`, in the order of their time, stay when one is kept in `every_s` seconds; those of `keep` do
    in any case. Judging what was judged before changes nothing."""
    groups: dict[tuple[Any, ...], list[Moment]] = {}
    last: dict[int | None, Moment] = {}
    lives: dict[int | None, int] = {}
    for moment in moments:
        server = moment.server_id
        if not moment.silent:
            if server in last and _fell(last[server], moment):
                lives[server] = lives.get(server, 0) + 1
            last[server] = moment
        interval = math.floor(moment.at.timestamp() / every_s)
        groups.setdefault((server, moment.run_id, lives.get(server, 0), interval), []).append(moment)
    stay: dict[int, dict[str, Any]] = {}
    go: list[int] = []
    for group in groups.values():
        free = [moment for moment in group if moment.id not in keep]
        if len(free) < 2:
            continue
        chosen = next((moment for moment in reversed(free) if not moment.silent), free[-1])
        stay[chosen.id] = _told(free)
        go += [moment.id for moment in free if moment.id != chosen.id]
    return Verdict(stay, tuple(go))


def _fell(before: Moment, after: Moment) -> bool:
    """Whether a counter fell: the server is another process."""
    return any(
        old is not None and new is not None and new < old for old, new in zip(before.totals, after.totals, strict=True)
    )


def _told(group: Sequence[Moment]) -> dict[str, Any]:
    peaks: dict[str, float] = {}
    for moment in group:
        for name in GAUGES:
            for value in (moment.gauges.get(name), moment.thinned.get("peak", {}).get(name)):
                if value is not None:
                    peaks[name] = max(value, peaks.get(name, value))
    return {
        "samples": sum(int(moment.thinned.get("samples", 1)) for moment in group),
        "silent": sum(int(moment.thinned.get("silent", moment.silent)) for moment in group),
        "peak": peaks,
    }


def peak(sample: SampleRecord, gauge: str) -> float | None:
    """The largest reading of one of GAUGES in the time that the sample stands for."""
    own: float | None = getattr(sample, gauge)
    told = sample.raw.get("thinned")
    peaks = told.get("peak") if isinstance(told, dict) else None
    kept = peaks.get(gauge) if isinstance(peaks, dict) else None
    return float(kept) if isinstance(kept, int | float) and math.isfinite(kept) else own


def thin_some(connection: sqlite3.Connection, now: datetime, at_most: int = BATCH) -> bool:
    """Thin the next old samples, whoever's they are, having looked at no more than `at_most`; whether there are more.

    To be called within a transaction (BEGIN IMMEDIATE): what is deleted, what is told of it and how far each step has
    come are committed together, so a keeper that is killed leaves all or nothing, and two that thin take turns.
    """
    for step in STEPS:
        seen, more = _thin(connection, step, now, at_most)
        at_most -= seen
        if more or at_most <= 0:
            return True
    return False


def _thin(connection: sqlite3.Connection, step: Step, now: datetime, at_most: int) -> tuple[int, bool]:
    """One step over the next samples after its mark: how many it looked at, and whether that was not all."""
    begin = (connection.execute("SELECT sample_id FROM thinned WHERE step = ?", (step.name,)).fetchone() or (0,))[0]
    until, ahead = format_utc(step.until(now)), format_utc(now + CLOCK_AHEAD)
    batch = []
    seen = 0
    for row in connection.execute(_NEXT, (begin, at_most)):
        seen += 1
        if until <= row[1] <= ahead:
            break
        if row[1] < until:
            batch.append(row)
    else:
        if seen == at_most:
            batch = _whole_intervals(batch, step)
    if not batch:
        return seen, False
    moments = [_moment(row) for row in batch if (row[3] is not None) == step.of_runs]
    verdict = judge(moments, step.every_s, _firsts(connection, moments))
    connection.executemany("DELETE FROM sample WHERE id = ?", [(id,) for id in verdict.go])
    connection.executemany(
        "UPDATE sample SET raw = json_set(raw, '$.thinned', json(?)) WHERE id = ? AND json_valid(raw)",
        [(json.dumps(told, separators=(",", ":")), id) for id, told in verdict.stay.items()],
    )
    connection.execute("INSERT OR REPLACE INTO thinned VALUES (?, ?)", (step.name, batch[-1][0]))
    hold_back(connection)
    return seen, seen == at_most


def hold_back(connection: sqlite3.Connection) -> None:
    """No mark may stand beyond the last sample: SQLite gives the number of a last row that was deleted once more."""
    connection.execute(
        "UPDATE thinned SET sample_id = (SELECT coalesce(max(id), 0) FROM sample) "
        "WHERE sample_id > (SELECT coalesce(max(id), 0) FROM sample)"
    )


_NEXT = (
    "SELECT id, at, server_id, run_id, prompt_tokens, generation_tokens, kv_perc, running, waiting, gpu_mem_used_gib, "
    """CASE WHEN instr(raw, '"thinned":') THEN raw END FROM sample WHERE id > ? ORDER BY id LIMIT ?"""
)


def _moment(row: Sequence[Any]) -> Moment:
    try:
        raw = json.loads(row[10] or "{}")
    except ValueError:  # damaged; it goes or stays like any other
        raw = {}
    told = raw.get("thinned") if isinstance(raw, dict) else None
    gauges = dict(zip(GAUGES, row[6:10], strict=True))
    return Moment(row[0], parse_utc(row[1]), row[2], row[3], tuple(row[4:6]), gauges, told or {})


def _whole_intervals(batch: list[Any], step: Step) -> list[Any]:
    """The batch without the interval that it ends in, which goes on behind it; all where it is one interval."""
    intervals = [math.floor(unix_seconds(row[1]) / step.every_s) for row in batch]
    whole = [row for row, interval in zip(batch, intervals, strict=True) if interval != intervals[-1]]
    # Where samples of several servers are not in the order of time, the rest lies about: better split than left.
    return whole if whole and whole == batch[: len(whole)] else batch


def _firsts(connection: sqlite3.Connection, moments: Iterable[Moment]) -> frozenset[int]:
    """The first sample of each of their runs."""
    first = "SELECT id FROM sample WHERE run_id = ? ORDER BY at, id LIMIT 1"
    runs = {moment.run_id for moment in moments if moment.run_id is not None}
    return frozenset(connection.execute(first, (run,)).fetchone()[0] for run in runs)
