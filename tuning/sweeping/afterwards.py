"""Runs that turn out to be no measurement only when a later one is made."""

from engine.keeper.journal import Journal
from store.records import RunRecord
from tuning.checks.finding import KEY, Answers
from tuning.checks.requests import answers_of, far_from
from tuning.plans.workload_args import forces_eos
from tuning.records import Workload
from tuning.sweeping.block_runs import BlockRuns


async def reject_far(
    journal: Journal, past: BlockRuns, launch_id: int, block: int, workload: Workload, answers: Answers
) -> None:
    """Of the runs that were made before the default's with their prompts, those whose answers are far from its: they
    count no more, and the sweep makes them again on a launch of their own. `answers` are the default's, of the launch
    with this id."""
    if forces_eos(workload):
        return
    for run in past.awaiting(block, workload.name, answers.seed, but_not=launch_id):
        theirs = answers_of(run.id, run.seed, run.metrics)
        finding = None if theirs is None else far_from(workload, theirs, [answers])
        if finding is None or run.id is None:
            continue
        raw = past.reader.run(run.id).raw
        kept = {**raw, KEY: [finding.to_json(), *raw.get(KEY, [])]}
        await journal.update(RunRecord, run.id, state="rejected", reason=finding.reason, raw=kept)
        which = f"block {run.block + 1}, candidate {run.candidate}, {run.workload} measured {run.repeat + 1}"
        await journal.event(f"{which} rejected afterwards: {finding.reason}", "warning")
