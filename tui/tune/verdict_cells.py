"""What a session found of its candidates, as cells and lines of a screen. Pure; no widgets here."""

import math

from engine.text import clean
from tui.metric_text import effect_text, metric_name
from tui.tune.tune_view import TuneView, launch_name
from tuning.judged import CandidateJudgement, LimitJudgement, WorkloadJudgement
from tuning.judgement.candidate_words import level_text
from tuning.judgement.limit_judging import limit_title
from tuning.judgement.verdict_words import GLYPHS, verdict_text
from tuning.records import Effect

LEFT = ", left"
BIASED = "too good on average, being selected and stopped early"
_SHORT = {"? gain implausible": "? implausible"}


def judged_workload(view: TuneView, workload: str) -> WorkloadJudgement | None:
    """What was found in a workload; None where it decides nothing, or nothing is judged."""
    judgement = view.result.judgement
    return None if judgement is None else judgement.workloads.get(workload)


def judged_candidate(view: TuneView, workload: str, candidate: int) -> CandidateJudgement | None:
    """What was found of a candidate in a workload that decides."""
    found = judged_workload(view, workload)
    return None if found is None else found.candidates.get(candidate)


def verdict_words(view: TuneView, workload: str, candidate: int, *, short: bool = False) -> str:
    """`✓ better`, `✗ worse, left`, `? 2 more`; "" where there is no word yet. `short` fits a table of 80 columns."""
    found, judged = judged_workload(view, workload), judged_candidate(view, workload, candidate)
    if found is None or judged is None:
        return ""
    if judged.verdict == "failed":
        return f"{GLYPHS['failed']} no start"
    words = verdict_text(judged, found.rules, found.blocks)
    if words == GLYPHS["undecided"]:
        return ""
    if words == f"? more than {found.rules.blocks} blocks" and short:
        words = f"? > {found.rules.blocks} blocks"
    words = _SHORT.get(words, words) if short else words
    leaves = view.result.judgement.leaves if view.result.judgement is not None else {}
    return words + LEFT if candidate in leaves and judged.verdict in ("worse", "infeasible") else words


def limits_word(judged: CandidateJudgement | None) -> str:
    """All limits of a candidate in a word: what is worst of them."""
    states = [None if each.verdict is None else each.verdict.state for each in judged.limits] if judged else []
    known = [state for state in states if state is not None]
    if not known:
        return "·" if states else ""
    if "broken" in known:
        return "✗ broken"
    if "implausible" in known:
        return "✗ hardly"
    return "✓ kept" if len(known) == len(states) and set(known) == {"holds"} else "? open"


def candidate_line(view: TuneView, workload: str, candidate: int) -> str:
    """The chosen candidate's verdict with its interval, after which block, why, and each of its limits; "" where
    nothing is judged."""
    found, judged = judged_workload(view, workload), judged_candidate(view, workload, candidate)
    if found is None or judged is None:
        return ""
    parts = []
    words = verdict_words(view, workload, candidate)
    if words and candidate:
        seen = judged.found
        effect = Effect(0, seen.effect, seen.low, seen.high) if seen is not None else None
        after = f" after block {judged.block}" if judged.block is not None else ""
        parts.append(f"{words}{after} {effect_text(effect)}".rstrip())
    if judged.why and judged.verdict != "failed":
        parts.append(clean(judged.why, 240))
    if judged.verdict == "better":
        parts.append(BIASED)
    settled = [each for each in judged.limits if each.verdict is not None and each.verdict.state == "holds"]
    parts += [limit_line(each) for each in judged.limits if each not in settled]
    parts += [limit_line(each) for each in settled]
    return f"{launch_name(view, candidate)}: {'; '.join(parts)}" if parts else ""


def limit_line(each: LimitJudgement) -> str:
    """`p99 TTFT ms ≤ 500 in chat: kept (489.1 [450.3, 531.2])`."""
    words = {"holds": "kept", "broken": "broken", "implausible": "hardly kept", "undecided": "open"}
    title = clean(limit_title(each.limit, each.workload), 80)
    if each.verdict is None:
        return f"{title}: not measured"
    return f"{title}: {words[each.verdict.state]} ({clean(level_text(each), 80)})"


def noise_line(view: TuneView, workload: str) -> str:
    """`noise: run 0.9 %, launch 0.4 %, no drift seen`, of the workload that the table shows; "" before there is any."""
    found = judged_workload(view, workload)
    if found is None or not found.blocks:
        return ""
    noise = found.noise
    parts = [f"{name} {_percent(sd)}" for name, sd in (("run", noise.run_sd), ("launch", noise.launch_sd)) if _is(sd)]
    if not parts:
        return "noise: not known before the second block"
    parts.append("no drift seen" if noise.drift is None else "drift (below)")
    return f"noise of {metric_name(found.metric)}: {', '.join(parts)}"


def note_lines(view: TuneView) -> list[str]:
    """What must be said beside the verdicts."""
    judgement = view.result.judgement
    return [] if judgement is None else [clean(note, 400) for note in judgement.notes]


def sentence(view: TuneView) -> str:
    """The session in one sentence."""
    judgement = view.result.judgement
    return "" if judgement is None else clean(judgement.sentence, 400)


def _is(sd: float | None) -> bool:
    return sd is not None and math.isfinite(sd)


def _percent(sd: float | None) -> str:
    percent = 100 * (sd or 0.0)
    return "< 0.1 %" if percent < 0.05 else f"{percent:.1f} %" if percent < 9.95 else f"{percent:.0f} %"
