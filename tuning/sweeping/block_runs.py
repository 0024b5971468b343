"""What has been measured in a block so far: what a run's answers are held against."""

from dataclasses import dataclass

from store.reader import Reader
from store.records import RunRecord
from tuning.checks.finding import Answers
from tuning.checks.requests import answers_of
from tuning.scheduling.schedule import BASELINE
from tuning.scheduling.seeds import retry_seed


@dataclass(frozen=True, slots=True)
class BlockRuns:
    """The accepted measured runs of one session, read anew each time."""

    reader: Reader
    session_id: int

    def counted(self, block: int, workload: str) -> list[RunRecord]:
        """Those of one workload in one block, without their raw results, in the order they were made."""
        return [
            run
            for run in self.reader.runs(self.session_id, kind="measured")
            if run.state == "done" and run.block == block and run.workload == workload
        ]

    def of_baseline(self, block: int, workload: str, but_not: int) -> list[Answers]:
        """What the default's launches answered, all but this one."""
        runs = [run for run in self.counted(block, workload) if run.candidate == BASELINE and run.launch_id != but_not]
        found = [answers_of(run.id, run.seed, run.metrics) for run in runs]
        return [each for each in found if each is not None]

    def awaiting(self, block: int, workload: str, seed: int, but_not: int) -> list[RunRecord]:
        """The runs of `seed`, or made again in its place, that no run of the default with that seed came before: to
        be held against its first, which launch `but_not` has just made."""
        runs = [
            run
            for run in self.counted(block, workload)
            if retry_seed(run.seed) == retry_seed(seed) and run.launch_id != but_not
        ]
        return [] if any(run.candidate == BASELINE for run in runs) else runs
