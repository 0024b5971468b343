"""What only a later run of the block can tell: answers made before the default's are held against it when it comes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.keeper.journal import Journal, unsaid
from store.database import open_reader, open_writer
from store.reader import Reader
from store.records import LaunchRecord, RunRecord, SessionRecord
from store.writer import Writer
from tests.tuning.examples import at, sharegpt_workload
from tuning.checks.finding import Answers, evidence_of
from tuning.scheduling.seeds import retry_seed
from tuning.sweeping.afterwards import reject_far
from tuning.sweeping.block_runs import BlockRuns

TALK = sharegpt_workload(requests=300)
SEED = 5
FIRST, BASELINE_LAUNCH = 1, 2


class Block:
    """A session of which block 0 has a launch of candidate 1 and then one of the default."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self.writer, self.reader = writer, reader
        self.session = writer.insert(SessionRecord("s", "running", "", {}, [], 1, at(0)))
        for position, candidate in ((0, 1), (1, 0)):
            writer.insert(LaunchRecord(self.session, 0, position, candidate, 0, 1, "done"))
        self.past = BlockRuns(reader, self.session)

    def run(self, mean: float, candidate: int = 1, launch: int = FIRST, **changes: Any) -> int:
        fields: dict[str, Any] = {
            "session_id": self.session,
            "launch_id": launch,
            "block": 0,
            "candidate": candidate,
            "slot": 0,
            "workload": TALK.name,
            "kind": "measured",
            "repeat": 0,
            "seed": SEED,
            "state": "done",
            "metrics": {"requests_completed": 300.0, "output_tokens": 300 * mean},
            "raw": {"result": {"duration": 7.0}},
        }
        return self.writer.insert(RunRecord(**(fields | changes)))

    async def judge(self, mean: float = 200, seed: int = SEED) -> list[str]:
        """The default's run comes; then the states of all runs."""
        number = self.run(mean, candidate=0, launch=BASELINE_LAUNCH, seed=seed)
        answers = Answers(number, seed, 300, 300 * mean)
        journal = Journal(self.writer, self.session, log=unsaid)
        await reject_far(journal, self.past, BASELINE_LAUNCH, 0, TALK, answers)
        return [run.state for run in self.reader.runs(self.session)]


@pytest.fixture
def block(tmp_path: Path) -> Iterator[Block]:
    with open_writer(tmp_path / "db") as writer, open_reader(tmp_path / "db") as reader:
        yield Block(writer, reader)


async def test_far_answers_are_rejected_when_the_default_has_answered(block: Block) -> None:
    far, near = block.run(100), block.run(190, repeat=1)
    assert await block.judge() == ["rejected", "done", "done"]
    run = block.reader.run(far)
    assert run.reason == "100 tokens an answer, -50 % against the 200 of the default in this block"
    assert run.raw["result"] == {"duration": 7.0}
    (found,) = evidence_of(run)
    assert (found.reason, found.numbers["same_prompts"]) == (run.reason, True)
    (event,) = block.reader.events(session_id=block.session)
    assert event.text == f"block 1, candidate 1, talk measured 1 rejected afterwards: {run.reason}"
    assert evidence_of(block.reader.run(near)) == ()


async def test_one_that_was_made_again_is_judged_with_its_first_seed(block: Block) -> None:
    block.run(40, seed=retry_seed(SEED))
    assert await block.judge() == ["rejected", "done"]


async def test_runs_of_other_seeds_wait_for_theirs(block: Block) -> None:
    block.run(100, seed=6)
    assert await block.judge() == ["done", "done"]
    assert await block.judge(seed=6) == ["rejected", "done", "done"]


async def test_the_first_run_of_the_default_judges_alone(block: Block) -> None:
    block.run(200, candidate=0)
    block.run(100)
    assert await block.judge() == ["done", "done", "done"]


async def test_what_does_not_count_or_is_elsewhere_is_left(block: Block) -> None:
    block.run(100, state="failed")
    block.run(100, block=1)
    block.run(100, workload="other")
    block.run(100, kind="warmup")
    assert await block.judge() == ["failed", "done", "done", "done", "done"]


def test_what_the_default_has_answered(block: Block) -> None:
    number = block.run(200, candidate=0, launch=BASELINE_LAUNCH)
    block.run(200, candidate=0, launch=BASELINE_LAUNCH, state="rejected")
    assert block.past.of_baseline(0, "talk", but_not=FIRST) == [Answers(number, SEED, 300, 60_000)]
    assert block.past.of_baseline(0, "talk", but_not=BASELINE_LAUNCH) == []
    assert block.past.of_baseline(1, "talk", but_not=FIRST) == []
