"""Why a candidate is launched no more, as a session keeps it in `raw["out"]`: one line, told apart by how it begins."""

from typing import Literal

from tuning.plans.foregone import NOT_TRIED

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
