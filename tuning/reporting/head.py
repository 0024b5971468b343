"""How a report begins: the verdict in a sentence, what was measured where, and what to run now."""

from engine.text import clean
from tuning.document import Code, Heading, Paragraph, Part, Points
from tuning.figures import duration_text, effect_text, metric_title
from tuning.judgement.costs import cost_per_million
from tuning.records import CandidateResult
from tuning.reporting.commands import serve_command
from tuning.reporting.environment import machine, machine_changes
from tuning.reporting.material import Material
from tuning.reporting.price import cost_text
from tuning.scheduling.launch_counts import launch_counts
from tuning.scheduling.schedule import BASELINE
from tuning.verdict.boundary import FIRST_LOOK

_NOTHING_DECIDES = (
    "No metric decides this session, so no verdict is given: levels and differences are shown with intervals."
)
_ENDED = ("done", "stopped", "failed")
_NO_VERDICT = "No verdict yet."
_BIASED = (
    "The estimate is too good on average, since it was the best of several and launched no more once it was good "
    "enough: expect rather less."
)


def head(material: Material) -> list[Part]:
    result, session = material.result, material.session
    return [
        Heading(f"Session {result.session_id}: {clean(result.name)}", 1),
        Paragraph(sentence(material), strong=True),
        Points(tuple(f"{name}: {text}" for name, text in _facts(material) if text)),
        *([Paragraph(f"The session says: {session.message}")] if session.message else []),
        *_to_run(material),
        *_notes(material),
    ]


def sentence(material: Material) -> str:
    """The session in one sentence."""
    judgement = material.judgement
    if judgement is None or not judgement.workloads:
        return _NOTHING_DECIDES
    return judgement.sentence or _NO_VERDICT


def _facts(material: Material) -> list[tuple[str, str]]:
    result, session, plan = material.result, material.session, material.plan
    counts = launch_counts(material.launches, plan.decide.blocks, len(material.candidates) - 1)
    launches = f"{counts.used} of {counts.full} launches" if material.launches else ""
    state = ", ".join(
        each
        for each in (
            result.state,
            f"{result.blocks_done} of {result.blocks_planned} blocks",
            launches or f"{result.launches_done} of {result.launches_planned} launches",
            f"{result.runs_done} of {result.runs_planned} runs",
            f"about {duration_text(result.seconds_left)} left" if result.seconds_left else "",
        )
        if each
    )
    cost = "" if result.money_used is None else f", cost ${result.money_used:,.2f}"
    return [
        ("Decided by", _decided_by(material)),
        ("Model", plan.model),
        ("Measured on", machine(result.environment)),
        ("State", state),
        ("Took", f"{duration_text(result.seconds_used)} of launches{cost}"),
        ("When", _when(session.started_at or session.created_at, session.finished_at)),
    ]


def _decided_by(material: Material) -> str:
    if not material.result.metric:
        return ""
    decide = material.plan.decide
    found = ", ".join(f"{metric_title(metric)} in {name}" for name, metric in material.result.metric.items())
    limits = f"; limits {', '.join(decide.limits)}" if decide.limits else ""
    return f"{found}; smallest effect {100 * decide.smallest_effect:g} %, error {100 * decide.error:g} %{limits}"


def _when(began: str | None, ended: str | None) -> str:
    def minute(at: str) -> str:
        return at[:16].replace("T", " ")

    if began is None:
        return ""
    return f"since {minute(began)} UTC" if ended is None else f"{minute(began)} to {minute(ended)} UTC"


def _to_run(material: Material) -> list[Part]:
    judgement = material.judgement
    if judgement is None or material.calibration:
        return []
    looked = any(judged.blocks >= FIRST_LOOK for judged in judgement.workloads.values())
    if judgement.winner is None and not (looked and material.session.state in _ENDED):
        return []
    winner = BASELINE if judgement.winner is None else judgement.winner
    candidate = next((each for each in material.candidates if each.index == winner), None)
    if candidate is None:
        return []
    if judgement.winner is None:
        intro = "Nothing was found to be better than the default. The default:"
    else:
        intro = f"{candidate.label}:"
    parts: list[Part] = [Heading("What to run"), Paragraph(intro), Code(serve_command(material.plan, candidate))]
    if judgement.winner is not None:
        won = (_won(material, each) for each in material.result.results if each.candidate.index == winner)
        parts += [Paragraph("Against the default:"), Points(tuple(filter(None, won))), Paragraph(_BIASED)]
    return [*parts, Paragraph("In llmtune, S on this session serves it.")]


def _won(material: Material, each: CandidateResult) -> str:
    if each.workload not in material.result.metric:
        return ""
    metric = material.metric(each.workload)
    told = f"{each.workload}: {metric_title(metric)} {effect_text(material.deciding_effect(each))}"
    price = material.plan.budget.gpu_price_per_hour
    if price is None:
        return told
    default = next((other for other in material.results(each.workload) if other.candidate.index == BASELINE), None)
    costs = [cost_per_million(price, of.summaries.get("output_tok_per_s")) for of in (each, default) if of is not None]
    if len(costs) < 2 or None in costs:
        return told
    return f"{told}, {cost_text(costs[0])} for a million output tokens instead of {cost_text(costs[1])}"


def _notes(material: Material) -> list[Part]:
    notes = [*machine_changes(material.session), *(material.judgement.notes if material.judgement else ())]
    return [Heading("Before you rely on it"), Points(tuple(notes))] if notes else []
