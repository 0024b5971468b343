"""What the screens say of a session around its table, a line each. Pure; no widgets here."""

from engine.text import clean
from tui.format import local_clock
from tui.metric_text import metric_name, money
from tui.tune.grid_text import settings_text
from tui.tune.tune_view import LIVE_STATES, TuneView, launch_name, state_word
from tuning.figures import duration_text
from tuning.limited_by import agreed, example, finding

NOT_READY = "before it was ready: "  # what a failed launch says before its cause; "did not start" says it here


def session_line(view: TuneView, width: int) -> str:
    """Session, state with its glyph, block, launch, time left; the name takes what room they leave."""
    session, result = view.session, view.result
    words = [state_word(session.state, view.keeper_alive)]
    if session.state in LIVE_STATES:
        block = min(result.blocks_done + 1, result.blocks_planned)
        words += [f"block {block} of {result.blocks_planned}"]
        words += [f"launch {min(result.launches_done + 1, result.launches_planned)} of {result.launches_planned}"]
        if result.seconds_left is not None and view.keeper_alive:
            words += [f"about {duration_text(result.seconds_left)} left"]
    else:
        words += [f"{result.blocks_done} of {result.blocks_planned} blocks", f"{result.runs_done} runs"]
    rest = "  ".join(words)
    room = width - len(rest) - len(f'Session {session.id} ""  ')
    name = f' "{clean(session.name, room)}"' if room >= 4 else ""
    return f"Session {session.id}{name}  {rest}"


def decide_line(view: TuneView) -> str:
    """What the session decides by."""
    if view.plan is None:
        return "decide by " + ", ".join(sorted({metric_name(name) for name in view.result.metric.values()}))
    decide = view.plan.decide
    by = (
        metric_name(decide.metric)
        if isinstance(decide.metric, str)
        else ", ".join(f"{clean(one, 16)}: {metric_name(name)}" for one, name in decide.metric.items())
    )
    parts = [f"decide by {by}", *(clean(limit, 40) for limit in decide.limits)]
    parts += [f"smallest effect {100 * decide.smallest_effect:g} %", f"error {100 * decide.error:g} %"]
    return ", ".join(parts)


def now_line(view: TuneView) -> str:
    """What happens at this moment, or why nothing does."""
    session = view.session
    if session.state in LIVE_STATES and not view.keeper_alive:
        return "its keeper is gone, nothing runs: R resumes"
    if session.state == "paused":
        return f"paused: {clean(session.message or 'p goes on', 60)}"
    if session.state not in LIVE_STATES:
        at = f" at {local_clock(session.finished_at)}" if session.finished_at else ""
        return clean(session.message or f"{session.state}{at}", 70)
    if view.launch is None:
        return "between launches"
    where = launch_name(view, view.launch.candidate)
    if view.run is None:
        return f"starting {where}" if view.launch.state == "starting" else f"ready: {where}"
    workload = clean(view.run.workload, 20)
    if view.run.kind == "warmup":
        return f"warm-up of {workload} on {where}"
    repeats = next(
        (one.repeats for one in (view.plan.workloads if view.plan else ()) if one.name == view.run.workload), 0
    )
    of = f" of {repeats}" if repeats else ""
    return f"run {view.run.repeat + 1}{of} {workload} on {where}"


def failure_lines(view: TuneView) -> list[str]:
    """One line a candidate that did not start, with the reason as far as it is known and what would start instead, or
    that was not tried; one line for rejected runs."""
    lines = [
        f"{launch_name(view, candidate)} did not start: {clean(why.rpartition(NOT_READY)[2], 240)}"
        for candidate, why in view.failures
    ]
    lines += [
        f"{launch_name(view, candidate)} may start as {clean(settings_text(settings), 120)} (a on its row adds that)"
        for candidate, settings in view.offers
    ]
    lines += [f"{launch_name(view, candidate)} {clean(why, 160)}" for candidate, why in view.foregone]
    rejected: dict[int, int] = {}
    for one in view.result.results:
        rejected[one.candidate.index] = rejected.get(one.candidate.index, 0) + one.rejected
    counts = [f"{launch_name(view, index)} {count}" for index, count in sorted(rejected.items()) if count]
    return [*lines, *([f"rejected runs (the events say why): {', '.join(counts)}"] if counts else [])]


def limited_line(view: TuneView, workload: str, candidate: int) -> str:
    """What limited the server in a candidate's runs, and in how many of them where they disagree."""
    said = next(
        (one.limited_by for one in view.result.results if (one.workload, one.candidate.index) == (workload, candidate)),
        (),
    )
    if not said:
        return ""
    who, sentence = agreed(said), example(said)
    words = sentence if who == finding(sentence) else f"{who}: {sentence.partition(': ')[2]}"
    return f"{launch_name(view, candidate)}: {clean(words, 300)}"


def cost_line(view: TuneView) -> str:
    """Spent so far and still to go."""
    result = view.result
    words = [f"{result.runs_done} of {result.runs_planned} runs", f"spent {duration_text(result.seconds_used)}"]
    if result.money_used is not None:
        words[-1] += f" = {money(result.money_used)}"
    if view.session.state in LIVE_STATES and result.seconds_left is not None:
        to_go = f"about {duration_text(result.seconds_left)}"
        if result.money_used is not None and result.seconds_used > 0:
            to_go += f" = {money(result.money_used / result.seconds_used * result.seconds_left)}"
        words.append(f"{to_go} to go")
    return ", ".join(words)


def progress(view: TuneView) -> float:
    """The share of planned runs that are done, 0 to 1."""
    planned = view.result.runs_planned
    return min(1.0, view.result.runs_done / planned) if planned > 0 else 0.0
