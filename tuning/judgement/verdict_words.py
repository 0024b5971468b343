"""The verdict of a candidate in a word with its glyph: the same in a report and on a screen."""

from tuning.judged import CandidateJudgement
from tuning.verdict.records import Rules

GLYPHS = {
    "better": "✓",
    "worse": "✗",
    "equivalent": "≈",
    "undecided": "?",
    "infeasible": "⊘",
    "failed": "!",
    "dropped": "–",
}
_FIRST_LOOK = 2  # blocks before which nothing is decided


def verdict_text(judged: CandidateJudgement | None, rules: Rules, blocks: int) -> str:
    """`✓ better`, `≈ equivalent`, `? 2 more` (about so many blocks decide it), `? more than 4 blocks`, `? implausible`.

    `blocks` are the complete ones so far. `?` alone says that nothing has been looked at yet.
    """
    if judged is None:
        return GLYPHS["undecided"]
    if judged.verdict != "undecided":
        return f"{GLYPHS[judged.verdict]} {judged.verdict}"
    found = judged.found
    if found is not None and found.state == "implausible":
        return "? gain implausible"
    if found is None or blocks < _FIRST_LOOK:
        return GLYPHS["undecided"]
    if found.more_blocks is not None:
        return f"? {found.more_blocks} more"
    return f"? more than {rules.blocks} blocks"
