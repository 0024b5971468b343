"""The rules of a sweep: block after block, a fresh launch for each configuration in play, on from the first missing
run; after each block a look, and who is decided is launched no more."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from engine.keeper.journal import Journal
from engine.records import EngineError, LaunchFailed
from engine.text import clean
from store.records import EventLevel, LaunchRecord, RunRecord, SessionRecord
from tuning.judged import Judgement
from tuning.judgement.deciding import deciding_metrics
from tuning.judgement.leaving import DID_NOT_START, JUDGED, reason_of
from tuning.plans.foregone import Failed, why_foregone
from tuning.plans.grid import candidate_label
from tuning.records import Candidate, Cell, Plan, PlannedRun
from tuning.scheduling.schedule import BASELINE, baseline_launches, block_cells
from tuning.scheduling.settling import missing_runs
from tuning.sweeping.controls import Controls, Interrupted

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
STRUCK_BEFORE_LEAVING = 4  # launches of one cell; then it is more than a coincidence
STARTS_BEFORE_LEAVING = 2  # of one cell, for all other reasons: some pass, such as memory that another still held

Launch = Callable[[Cell, Candidate, int, list[PlannedRun]], Awaitable[None]]
Judge = Callable[[list[LaunchRecord], list[RunRecord]], Judgement]


class BaselineFailed(EngineError):
    """Without a baseline nothing can be compared, so the sweep ends."""


class Sweep:
    """One session's blocks. `session.raw` is written to and kept: it holds the order of the blocks and who has left.

    `launch` makes one launch and raises LaunchFailed or Interrupted; `gate` holds while paused
    and raises Interrupted when the sweep is to end. `judge` is asked after each block, with all rows so far, and says
    who is launched no more; nothing of its answer but that is kept, so that a resumed session decides as before.
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
        judge: Judge,
    ) -> None:
        assert session.id is not None
        self._session_id: int = session.id
        self._seed = session.seed
        self._plan = plan
        self._candidates = candidates
        self._raw = session.raw
        self._block = max(len(self._blocks) - 1, 0)  # the one that what is added joins
        self._journal = journal
        self._controls = controls
        self._launch = launch
        self._gate = gate
        self._reload = reload
        self._judge = judge
        self._earlier = max((each.id or 0 for each in reload()[0]), default=0)
        self._out: dict[int, str] = {int(key): why for key, why in self._raw.get("out", {}).items()}
        controls.skipped.update(self._out)

    async def run(self) -> None:
        """Until all blocks are done or no candidate is left. Raises Interrupted("stop"), BaselineFailed."""
        for block in range(self._plan.decide.blocks):
            self._block = max(block, self._block)
            if not await self._draw(block):
                self._block = self._plan.decide.blocks  # nothing can be added from here on
                await self._journal.event(f"no candidate is left after {block} of {self._plan.decide.blocks} blocks")
                break
            newest = block == len(self._blocks) - 1  # those before it were looked at when it was drawn
            while True:  # asked anew each time: one may be added meanwhile, and a later run may reject an earlier one
                if open_cells := self._open(block):
                    await self._one(open_cells[0])
                elif not newest or not await self._baseline_again(block):
                    break
            self._block = max(block + 1, self._block)
            if newest:
                await self._look(block)

    async def add(self, settings: dict[str, Any]) -> int:
        """A further candidate: launched last in the block that runs, drawn like the others in the next. Returns its
        index. Raises EngineError when the last block is over."""
        if self._block >= self._plan.decide.blocks:
            raise EngineError("the sweep has ended: nothing can be added to it")
        candidate = Candidate(len(self._candidates), candidate_label(settings), settings)
        self._candidates.append(candidate)
        if self._block < len(self._blocks):
            cells = self._blocks[self._block]
            cells.append(asdict(Cell(self._block, len(cells), candidate.index, 0)))
        self._raw.setdefault("added", {})[str(candidate.index)] = self._block
        await self._journal.update(
            SessionRecord, self._session_id, candidates=[asdict(each) for each in self._candidates], raw=self._raw
        )
        await self._journal.event(f"candidate {candidate.index} added: {clean(candidate.label)}")
        return candidate.index

    async def leave(self, candidate: int, why: str, level: EventLevel = "warning") -> None:
        """This candidate is launched no more; what it has measured stays."""
        self._out[candidate] = why
        self._raw["out"] = {str(key): value for key, value in self._out.items()}
        await self._keep_raw()
        await self._journal.event(f"candidate {candidate} leaves: {why}", level)

    @property
    def _blocks(self) -> list[list[dict[str, int]]]:
        """The cells of each block begun so far, kept in the session so that a resumed one goes on in the same order."""
        blocks: list[list[dict[str, int]]] = self._raw.setdefault("blocks", [])
        return blocks

    async def _draw(self, block: int) -> bool:
        """Whether the block is to be made: not where candidates were compared and none is left."""
        if block < len(self._blocks):
            return True
        in_play = [each.index for each in self._candidates if each.index not in {BASELINE, *self._out}]
        if not in_play and len(self._candidates) > 1:
            return False
        cells = block_cells(self._seed, block, in_play, baseline_launches(len(in_play)))
        self._blocks.append([asdict(cell) for cell in cells])
        await self._keep_raw()
        return True

    def _open(self, block: int) -> list[Cell]:
        """The cells of the block that have runs to make, in their order."""
        launches, runs = self._reload()
        of_block = [run for run in runs if run.block == block]
        return [
            cell
            for cell in (Cell(**each) for each in self._blocks[block])
            if cell.candidate not in self._out
            and cell.candidate not in self._controls.skipped
            and missing_runs(self._plan, self._seed, cell, launches, of_block)
        ]

    async def _baseline_again(self, block: int) -> bool:
        """Draw one further launch of the baseline where none of the block's counts, once: without it the block's
        launches cannot be compared."""
        again: list[int] = self._raw.get("baseline_again", [])
        if block in again or len(self._candidates) == 1:
            return False
        counted = {
            run.workload
            for run in self._reload()[1]
            if (run.block, run.candidate, run.kind, run.state) == (block, BASELINE, "measured", "done")
        }
        if counted.issuperset(deciding_metrics(self._plan)):
            return False
        cells = self._blocks[block]
        slot = 1 + max(cell["slot"] for cell in cells if cell["candidate"] == BASELINE)
        cells.append(asdict(Cell(block, len(cells), BASELINE, slot)))
        self._raw["baseline_again"] = [*again, block]
        await self._keep_raw()
        await self._journal.event(
            f"block {block + 1}: no launch of the baseline counts, so there is one more", "warning"
        )
        return True

    async def _look(self, block: int) -> None:
        """Judge after the block: who is decided leaves. The sentence is kept for lists to show, and never read."""
        judgement = self._judge(*self._reload())
        self._raw["sentence"] = judgement.sentence
        await self._keep_raw()
        for candidate, why in sorted(judgement.leaves.items()):
            if candidate not in self._out:
                await self.leave(candidate, f"{JUDGED} after block {block + 1}: {why}", "info")

    async def _one(self, cell: Cell) -> None:
        candidate = self._candidates[cell.candidate]
        while True:
            launches, runs = self._reload()
            missing = missing_runs(self._plan, self._seed, cell, launches, runs)
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
        own = sum(not _struck(each) for each in failed)  # a strike tells nothing of the candidate
        chances = own < STARTS_BEFORE_LEAVING and len(failed) < STRUCK_BEFORE_LEAVING
        if error.failure_class not in CERTAIN_FAILURES and chances:
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
        given_up = [index for index, why in self._out.items() if reason_of(why) == DID_NOT_START and index in classes]
        failed = [Failed(self._candidates[index], classes[index]) for index in given_up]
        return why_foregone(candidate, self._plan.server, failed)

    def _failed(self) -> list[LaunchRecord]:
        """The launches that failed under this keeper: to resume a session gives each candidate its chances again."""
        launches, _ = self._reload()
        return [each for each in launches if each.state == "failed" and (each.id or 0) > self._earlier]

    async def _keep_raw(self) -> None:
        await self._journal.update(SessionRecord, self._session_id, raw=self._raw)


def _is_of(cell: Cell, launch: LaunchRecord) -> bool:
    return (launch.block, launch.candidate, launch.slot) == (cell.block, cell.candidate, cell.slot)


def _struck(launch: LaunchRecord) -> bool:
    """Whether a failed launch says little about its configuration: it had served, or something outside ended it."""
    return launch.ready_at is not None or launch.failure_class in FROM_OUTSIDE
