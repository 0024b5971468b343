"""Which launches a block has, in which order, and which runs each launch makes."""

from collections.abc import Iterable

from tuning.records import Cell, Plan, PlannedRun
from tuning.scheduling.seeds import RUNS_PER_LAUNCH, run_seed, uniform
from tuning.verdict.design import baseline_launches as launches_for

BASELINE = 0


def baseline_launches(candidates_in_play: int) -> int:
    """How often a block launches the baseline when so many candidates are compared with it; once where there is none,
    in a session that only measures the baseline."""
    return launches_for(candidates_in_play) if candidates_in_play else 1


def block_cells(seed: int, block: int, candidates_in_play: Iterable[int], baseline_launches: int = 1) -> list[Cell]:
    """The launches of `block` in random order: the baseline, listed or not, so many times, each candidate listed once.

    Each candidate draws u in [0, 1); launch i of r of the baseline gets (i + u) / r, so that the baseline is spread
    over the block and drift within it averages out; with r = 1 the order is plainly random. A draw hangs on the
    session's seed, the block and the candidate only: adding or dropping one leaves the order of the others.
    """
    if baseline_launches < 1:
        raise ValueError("a block without its baseline compares nothing")
    places = [
        ((slot + uniform(seed, "order", block, BASELINE)) / baseline_launches, BASELINE, slot)
        for slot in range(baseline_launches)
    ]
    places += [(uniform(seed, "order", block, index), index, 0) for index in set(candidates_in_play) - {BASELINE}]
    return [Cell(block, position, index, slot) for position, (_, index, slot) in enumerate(sorted(places))]


def launch_runs(plan: Plan, seed: int, block: int) -> list[PlannedRun]:
    """The runs of each launch of `block`, in order: the warm-ups of every workload, then the measured runs of each.

    Each run has a seed of its own, so that no two on a server send the same prompts; every launch of the block has the
    same list, so that all configurations meet the same prompts.
    """
    wanted = [(workload.name, "warmup", repeat) for workload in plan.workloads for repeat in range(workload.warmup)]
    wanted += [(workload.name, "measured", repeat) for workload in plan.workloads for repeat in range(workload.repeats)]
    if len(wanted) > RUNS_PER_LAUNCH:
        raise ValueError(f"a launch makes at most {RUNS_PER_LAUNCH} runs, not {len(wanted)}")
    return [
        PlannedRun(workload, kind, repeat, run_seed(seed, block, index))
        for index, (workload, kind, repeat) in enumerate(wanted)
    ]
