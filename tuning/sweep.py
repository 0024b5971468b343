"""The rules of a sweep: block after block, a fresh launch for each configuration, on from the first missing run."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from engine.keeper.journal import Journal
from engine.records import EngineError, LaunchFailed
from engine.text import clean
from store.records import LaunchRecord, RunRecord, SessionRecord
from tuning.controls import Controls, Interrupted
from tuning.foregone import Failed, why_foregone
from tuning.grid import candidate_label
from tuning.records import Candidate, Cell, Plan, PlannedRun
from tuning.schedule import block_cells, launch_runs

BASELINE = 0
# Where the reason lies in the configuration or what is installed, a second start would fail in the same way.
CERTAIN_FAILURES = frozenset(
    {
        "kv_cache_too_small",
        "no_kv_memory",
        "batched_tokens_invalid",
        "model_len_invalid",
        "unknown_flag",
        "quantization_unsupported",
        "dtype_unsupported",
        "checkpoint_invalid",
        "lora_rank",
        "lora_refused",
        "kernel_missing",
        "missing_tool",
        "missing_library",
        "driver_too_old",
        "version_mismatch",
    }
)
# Here it lies in something that struck the server from outside: another program that took the port, a signal.
FROM_OUTSIDE = frozenset({"port_in_use", "interrupted", "host_oom"})
DID_NOT_START = "did not start"  # why a candidate left, at the head of the reason
STRUCK_BEFORE_LEAVING = 4  # launches of one cell; then it is more than a coincidence
STARTS_BEFORE_LEAVING = 2  # of one cell, for all other reasons: some pass, such as memory that another still held
RUN_BREAKS = 4  # of one run: its benchmark process ended or timed out

Launch = Callable[[Cell, Candidate, int, list[PlannedRun]], Awaitable[None]]


class BaselineFailed(EngineError):
    """Without a baseline nothing can be compared, so the sweep ends."""


class Sweep:
    """One session's blocks. `session.raw` is written to and kept: it holds the order of the blocks and who has left.

    `launch` makes one launch and raises LaunchFailed or Interrupted; `gate` holds while paused
    and raises Interrupted when the sweep is to end.
    """

    def __init__(
        self,
        session: SessionRecord,
        plan: Plan,
        candidates: list[Candidate],
        journal: Journal,
        controls: Controls,
        launch: Launch,
        gate: Callable[[], Awaitable[None]],
        reload: Callable[[], tuple[list[LaunchRecord], list[RunRecord]]],
    ) -> None:
        assert session.id is not None
        self._session_id: int = session.id
        self._seed = session.seed
        self._plan = plan
        self._candidates = candidates
        self._raw = session.raw
        self._block = 0
        self._journal = journal
        self._controls = controls
        self._launch = launch
        self._gate = gate
        self._reload = reload
        self._earlier = max((each.id or 0 for each in reload()[0]), default=0)
        self._out: dict[int, str] = {int(key): why for key, why in self._raw.get("out", {}).items()}
        controls.skipped.update(self._out)

    async def run(self) -> None:
        """Until all blocks are done. Raises Interrupted("stop"), BaselineFailed."""
        for block in range(self._plan.decide.blocks):
            self._block = block
            cells = await self._draw(block)
            position = 0
            while position < len(cells):  # it grows when a candidate is added
                await self._one(Cell(**cells[position]))
                position += 1

    async def add(self, settings: dict[str, Any]) -> int:
        """A further candidate: launched last in the block that runs, drawn like the others in the next. Returns its
        index."""
        candidate = Candidate(len(self._candidates), candidate_label(settings), settings)
        self._candidates.append(candidate)
        if self._block < len(self._blocks):
            cells = self._blocks[self._block]
            cells.append(asdict(Cell(self._block, len(cells), candidate.index, 0)))
        await self._journal.update(
            SessionRecord, self._session_id, candidates=[asdict(each) for each in self._candidates], raw=self._raw
        )
        await self._journal.event(f"candidate {candidate.index} added: {clean(candidate.label)}")
        return candidate.index

    async def leave(self, candidate: int, why: str) -> None:
        """This candidate is launched no more; what it has measured stays."""
        self._out[candidate] = why
        self._raw["out"] = {str(key): value for key, value in self._out.items()}
        await self._keep_raw()
        await self._journal.event(f"candidate {candidate} leaves: {why}", "warning")

    @property
    def _blocks(self) -> list[list[dict[str, int]]]:
        """The cells of each block begun so far, kept in the session so that a resumed one goes on in the same order."""
        blocks: list[list[dict[str, int]]] = self._raw.setdefault("blocks", [])
        return blocks

    async def _draw(self, block: int) -> list[dict[str, int]]:
        if block >= len(self._blocks):
            in_play = [each.index for each in self._candidates if each.index not in self._out]
            self._blocks.append([asdict(cell) for cell in block_cells(self._seed, block, in_play)])
            await self._keep_raw()
        return self._blocks[block]

    async def _one(self, cell: Cell) -> None:
        candidate = self._candidates[cell.candidate]
        while True:
            launches, runs = self._reload()
            missing = self._missing(cell, launches, runs)
            if not missing or cell.candidate in self._out:
                return
            if (reason := self._foregone(candidate, launches)) is not None:
                await self.leave(cell.candidate, reason)
                return
            self._controls.begin(cell.candidate)
            try:
                await self._gate()
                attempt = 1 + sum(_is_of(cell, each) for each in launches)
                await self._launch(cell, candidate, attempt, missing)
            except Interrupted as error:
                if error.what == "stop":
                    raise
                return
            except LaunchFailed as error:
                await self._journal.event(f"{candidate.label} did not serve: {error}", "warning")
                if not await self._again(cell, error):
                    return
            finally:
                self._controls.begin(None)

    async def _again(self, cell: Cell, error: LaunchFailed) -> bool:
        """Whether to start this cell once more; where not, its candidate has left. Raises BaselineFailed."""
        failed = [each for each in self._failed() if _is_of(cell, each)]
        allowed = STRUCK_BEFORE_LEAVING if _struck(failed[-1]) else STARTS_BEFORE_LEAVING
        if error.failure_class not in CERTAIN_FAILURES and len(failed) < allowed:
            return True
        if cell.candidate == BASELINE:
            raise BaselineFailed(f"the baseline does not start, so nothing can be compared: {error}")
        await self.leave(cell.candidate, f"{DID_NOT_START}: {error}")
        return False

    def _foregone(self, candidate: Candidate, launches: list[LaunchRecord]) -> str | None:
        """Why this candidate would fail as one that was given up did; None for the baseline and for one that served."""
        if candidate.index == BASELINE or any(
            each.candidate == candidate.index and each.ready_at is not None for each in launches
        ):
            return None
        classes = {
            each.candidate: each.failure_class or "unknown"
            for each in launches
            if each.state == "failed" and not _struck(each)
        }
        given_up = [index for index, why in self._out.items() if why.startswith(DID_NOT_START) and index in classes]
        failed = [Failed(self._candidates[index], classes[index]) for index in given_up]
        return why_foregone(candidate, self._plan.server, failed)

    def _failed(self) -> list[LaunchRecord]:
        """The launches that failed under this keeper: to resume a session gives each candidate its chances again."""
        launches, _ = self._reload()
        return [each for each in launches if each.state == "failed" and (each.id or 0) > self._earlier]

    def _missing(self, cell: Cell, launches: list[LaunchRecord], runs: list[RunRecord]) -> list[PlannedRun]:
        """The cell's runs without a result. A workload with any left is warmed up again: the launch will be fresh.

        A run that was rejected twice has had its chance and is not missing; nor is one that broke too often.
        """
        broken = {launch.id for launch in launches if launch.state != "done"}
        tried: dict[tuple[str, int], list[str]] = {}
        for run in runs:
            if run.state == "rejected" and run.launch_id in broken:
                continue  # by what broke the launch, as likely as not
            if (run.block, run.candidate, run.slot, run.kind) == (cell.block, cell.candidate, cell.slot, "measured"):
                tried.setdefault((run.workload, run.repeat), []).append(run.state)
        settled = {
            key
            for key, states in tried.items()
            if "done" in states or states.count("rejected") >= 2 or states.count("failed") >= RUN_BREAKS
        }
        planned = launch_runs(self._plan, self._seed, cell.block)
        open_workloads = {
            run.workload for run in planned if run.kind == "measured" and (run.workload, run.repeat) not in settled
        }
        return [
            run
            for run in planned
            if run.workload in open_workloads and (run.kind == "warmup" or (run.workload, run.repeat) not in settled)
        ]

    async def _keep_raw(self) -> None:
        await self._journal.update(SessionRecord, self._session_id, raw=self._raw)


def _is_of(cell: Cell, launch: LaunchRecord) -> bool:
    return (launch.block, launch.candidate, launch.slot) == (cell.block, cell.candidate, cell.slot)


def _struck(launch: LaunchRecord) -> bool:
    """Whether a failed launch says little about its configuration: it had served, or something outside ended it."""
    return launch.ready_at is not None or launch.failure_class in FROM_OUTSIDE
