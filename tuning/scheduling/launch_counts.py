"""How many launches a session made, against what the whole grid would have taken."""

from collections.abc import Sequence
from dataclasses import dataclass

from store.records import LaunchRecord
from tuning.verdict.design import launches_in_block


@dataclass(frozen=True, slots=True)
class LaunchCounts:
    """`used`: launches in their places (a candidate in a block), however often each was started; `starts`: all starts,
    of which `failed` failed. `full`: what all blocks take where nobody leaves; `grid`: each configuration once a block.
    """

    used: int
    starts: int
    failed: int
    full: int
    grid: int

    @property
    def spared(self) -> float:
        """The share of `full` that was not needed, from 0 on."""
        return max(1 - self.used / self.full, 0.0) if self.full else 0.0


def launch_counts(launches: Sequence[LaunchRecord], blocks: int, candidates: int) -> LaunchCounts:
    """`candidates` are those of the session, without the baseline; `blocks` as many as it may have."""
    return LaunchCounts(
        used=len({(launch.block, launch.candidate, launch.slot) for launch in launches}),
        starts=len(launches),
        failed=sum(launch.state == "failed" for launch in launches),
        full=blocks * (launches_in_block(candidates) if candidates else 1),
        grid=blocks * (candidates + 1),
    )
