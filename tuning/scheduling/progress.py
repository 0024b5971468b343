"""How far a session is: which launches its plan comes to, which are made, and how long the rest will take."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from store.clock import parse_utc
from store.records import LaunchRecord, RunRecord, SessionRecord
from tuning.records import Plan
from tuning.scheduling.schedule import BASELINE, baseline_launches
from tuning.scheduling.settling import CellKey, candidates_out, cell_of, drawn_cells, settled_cells

_MADE = ("done", "rejected", "failed")


@dataclass(frozen=True)
class Progress:
    """A session with its launches and runs. `now` is UTC in ISO 8601."""

    session: SessionRecord
    plan: Plan
    launches: Sequence[LaunchRecord]
    runs: Sequence[RunRecord]
    now: str

    @cached_property
    def cells(self) -> frozenset[CellKey]:
        """The launches that the plan comes to. Blocks are counted from 0.

        A block that has begun has the cells that were drawn for it, a later one each candidate still in play and the
        baseline as often as they need; it is not made where candidates were compared and none is left. Cells of a
        candidate that has left count only where they were launched.
        """
        left = candidates_out(self.session)
        drawn = len(self.session.raw.get("blocks", []))
        cells = {cell_of(launch) for launch in self.launches}
        compared = {item["index"] for item in self.session.candidates} - {BASELINE}
        in_play = compared - left
        for block in range(self.plan.decide.blocks):
            if block < drawn:
                wanted = set(drawn_cells(self.session, block))
            elif compared and not in_play:
                break
            else:
                wanted = {(block, index, 0) for index in in_play}
                wanted |= {(block, BASELINE, slot) for slot in range(baseline_launches(len(in_play)))}
            cells |= {cell for cell in wanted if cell[1] not in left}
        return frozenset(cells)

    @cached_property
    def settled(self) -> frozenset[CellKey]:
        """The cells of which nothing more will come: launched to the end, or given up."""
        left = candidates_out(self.session)
        settled = settled_cells(self.plan, self.launches, self.runs)
        return frozenset(settled | {cell for cell in self.cells if cell[1] in left})

    @cached_property
    def blocks_done(self) -> int:
        blocks = {cell[0] for cell in self.cells}
        return len(blocks - {cell[0] for cell in self.cells - self.settled})

    @cached_property
    def runs_made(self) -> int:
        """Planned runs that were made, with whatever result; a second try counts with its first."""
        return len({_planned(run) for run in self.runs if run.state in _MADE})

    @cached_property
    def runs_planned(self) -> int:
        """Runs made, and those to come in the cells that are not settled."""
        return self.runs_made + sum(self._runs_to_come.values())

    @cached_property
    def _runs_to_come(self) -> dict[str, int]:
        """How many runs of each workload are still to be made."""
        made = {_planned(run) for run in self.runs if run.state in _MADE}
        to_come: dict[str, int] = {}
        for workload in self.plan.workloads:
            kinds = (("warmup", workload.warmup), ("measured", workload.repeats))
            to_come[workload.name] = sum(
                (*cell, workload.name, kind, repeat) not in made
                for cell in self.cells - self.settled
                for kind, count in kinds
                for repeat in range(count)
            )
        return to_come

    @cached_property
    def seconds_left(self) -> float | None:
        """From what launches and runs of this session have taken so far; None before there is anything to go by."""
        if self.session.state == "done":
            return 0.0
        if not any(self._runs_to_come.values()):
            return 0.0
        launch_s, run_s = self._launch_seconds(), self._run_seconds()
        if launch_s is None or not run_s:
            return None
        usual = sum(run_s.values()) / len(run_s)
        runs = sum(count * run_s.get(name, usual) for name, count in self._runs_to_come.items())
        running = {cell_of(launch) for launch in self.launches if launch.state == "ready"}
        return len(self.cells - self.settled - running) * launch_s + runs

    def _launch_seconds(self) -> float | None:
        """What a launch takes beside its runs; from the start alone while none has ended."""
        in_runs: dict[int, float] = {}
        for run in self.runs:
            in_runs[run.launch_id] = in_runs.get(run.launch_id, 0.0) + (_span(run.started_at, run.finished_at) or 0.0)
        ended = [
            max(span - in_runs.get(launch.id or 0, 0.0), 0.0)
            for launch in self.launches
            if launch.state == "done" and (span := _span(launch.started_at, launch.finished_at)) is not None
        ]
        starts = [span for launch in self.launches if (span := _span(launch.started_at, launch.ready_at)) is not None]
        seconds = ended or starts
        return sum(seconds) / len(seconds) if seconds else None

    def _run_seconds(self) -> dict[str, float]:
        spans: dict[str, list[float]] = {}
        for run in self.runs:
            if run.state in _MADE and (span := _span(run.started_at, run.finished_at)) is not None:
                spans.setdefault(run.workload, []).append(span)
        return {name: sum(each) / len(each) for name, each in spans.items()}


def seconds_used(launches: Sequence[LaunchRecord], now: str) -> float:
    """What the launches have taken, one still open counted to `now`: the time in which the session held the machine."""
    return sum(_span(launch.started_at, launch.finished_at or now) or 0.0 for launch in launches)


def _span(start: str | None, end: str | None) -> float | None:
    if start is None or end is None:
        return None
    return max((parse_utc(end) - parse_utc(start)).total_seconds(), 0.0)


def _planned(run: RunRecord) -> tuple[int, int, int, str, str, int]:
    return (*cell_of(run), run.workload, run.kind, run.repeat)
