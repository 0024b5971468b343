"""Why a candidate is launched no more, as a session keeps it in `raw["out"]`: one line, told apart by how it begins."""

from typing import Literal

from tuning.figures import effect_text, metric_title
from tuning.foregone import NOT_TRIED
from tuning.judged import CandidateJudgement, Judgement
from tuning.records import Effect

DID_NOT_START = "did not start"
JUDGED = "judged"  # by a look: a verdict or a limit, no failure

Reason = Literal["judged", "did not start", "not tried", "skipped"]


def reason_of(why: str) -> Reason:
    """Which of the four it was. What a person asked for has words of its own."""
    if why.startswith(JUDGED):
        return "judged"
    if why.startswith(DID_NOT_START):
        return "did not start"
    return "not tried" if why.startswith(NOT_TRIED) else "skipped"


def judged_line(judgement: Judgement, candidate: int, why: str) -> str:
    """What a look found of a candidate that leaves: `worse, total tok/s −3.1 % [−5.0, −1.2] in chat`, for each deciding
    workload, then `why` where the words do not say it."""
    parts = [
        _found(one.candidates[candidate], one.metric, workload)
        for workload, one in judgement.workloads.items()
        if candidate in one.candidates
    ]
    said = "; ".join(parts)
    return said if not why or why in said else f"{said} ({why})" if said else why


def _found(judged: CandidateJudgement, metric: str, workload: str) -> str:
    found = judged.found
    effect = ""
    if found is not None and found.effect is not None:
        shown = effect_text(Effect(found.launches, found.effect, found.low, found.high))
        effect = f", {metric_title(metric)} {shown}"
    return f"{judged.verdict}{effect} in {workload}" + (f": {judged.why}" if judged.why else "")
