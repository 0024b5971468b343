"""What the Tune screen says of a session, as pure functions from records to lines and rows. No widgets here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from engine.text import clean
from store.records import EventRecord, LaunchRecord, RunRecord, SessionRecord
from tui.format import ABSENT, local_clock
from tui.metric_text import (
    effect_text,
    higher_is_better,
    metric_name,
    metric_value,
    money,
    ratio,
)
from tui.plan_form import DEFAULT, settings_text
from tuning.figures import duration_text
from tuning.grid import shown_setting
from tuning.limited_by import agreed, example, finding
from tuning.records import Candidate, CandidateResult, Plan, SessionResult
from tuning.report import serve_command

STATE_GLYPHS = {"waiting": "○", "running": "▶", "paused": "‖", "done": "✓", "stopped": "■", "failed": "✗"}
VERDICT_GLYPHS = {
    "better": "✓ better",
    "worse": "✗ worse",
    "equivalent": "≈ equivalent",
    "undecided": "? undecided",
    "infeasible": "✗ infeasible",
    "failed": "! failed",
    "dropped": "– dropped",
}
SHORT_FLAGS = {
    "max-num-batched-tokens": "batched",
    "gpu-memory-utilization": "util",
    "max-num-seqs": "seqs",
    "max-model-len": "len",
    "kv-cache-dtype": "kv dtype",
    "tensor-parallel-size": "tp",
}
WIDE_METRICS = ("mean_ttft_ms", "mean_itl_ms", "p99_itl_ms", "kv_peak_perc", "preemptions")
LOWER_IS_BETTER = frozenset({"error_rate", "preemptions", "requests_failed", "energy_j_per_token", "duration_s"})
NOT_READY = "before it was ready: "  # what a failed launch says before its cause; "did not start" says it here
LIVE_STATES = frozenset({"waiting", "running", "paused"})


@dataclass(frozen=True, slots=True)
class TuneView:
    """One session as the screen shows it, read at one moment. `dropped` are candidates that a person skipped."""

    session: SessionRecord
    plan: Plan | None
    result: SessionResult
    launch: LaunchRecord | None = None  # the one that runs now
    run: RunRecord | None = None
    keeper_alive: bool = False
    dropped: frozenset[int] = frozenset()
    failures: tuple[tuple[int, str], ...] = ()  # (candidate, why its last launch did not start)
    foregone: tuple[tuple[int, str], ...] = ()  # (candidate, why it was not tried)
    offers: tuple[tuple[int, dict[str, Any]], ...] = ()  # (candidate that did not start, settings that would)
    events: tuple[EventRecord, ...] = ()

    @property
    def workloads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.workload for one in self.result.results)) or tuple(self.result.metric)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return tuple({one.candidate.index: one.candidate for one in self.result.results}.values())


@dataclass(frozen=True, slots=True)
class Column:
    key: str
    title: str
    right: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate: its index, and a cell of the table for each column."""

    candidate: int
    cells: tuple[Text, ...]


def short_flag(flag: str) -> str:
    """A column title for a setting: the usual ones by a word, any other by its last words."""
    return SHORT_FLAGS.get(flag) or clean(flag).replace("max-num-", "").replace("-", " ")[-14:]


def setting_flags(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Every flag that some candidate sets, in the order of first use."""
    return tuple(dict.fromkeys(flag for one in candidates for flag in one.settings))


def columns(candidates: Sequence[Candidate], metric: str, *, wide: bool) -> tuple[Column, ...]:
    """The table's columns; a wide table has more metrics between the deciding one and the state."""
    settings = tuple(Column(f"set:{flag}", short_flag(flag)) for flag in setting_flags(candidates))
    tail = [Column("metric", metric_name(metric)), Column("effect", "vs default", right=False)]
    others = ["p99_ttft_ms", *(WIDE_METRICS if wide else ())]
    tail += [Column(f"m:{name}", metric_name(name)) for name in others if name != metric]
    first = settings or (Column("label", "candidate", right=False),)
    return (*first, Column("n", "n"), *tail, Column("state", "state", right=False))


def rows(view: TuneView, workload: str, metric: str, *, wide: bool) -> tuple[Row, ...]:
    """One row a candidate, in the order of its index, for one workload."""
    shown = columns(view.candidates, metric, wide=wide)
    return tuple(
        Row(one.candidate.index, tuple(_cell(view, one, column, metric) for column in shown))
        for one in sorted(view.result.results, key=lambda one: one.candidate.index)
        if one.workload == workload
    )


def setting_text(candidate: Candidate, flag: str, baseline: Mapping[str, Any]) -> str:
    """A candidate's value for a flag; where it sets none, the baseline's own, or the server's default."""
    if flag in candidate.settings:
        return clean(shown_setting(flag, candidate.settings[flag]), 16)
    return clean(shown_setting(flag, baseline[flag]), 16) if flag in baseline else DEFAULT


def state_text(view: TuneView, one: CandidateResult) -> Text:
    """Where a candidate stands, as a glyph with a word; the verdict once there is one."""
    index, workload = one.candidate.index, one.workload
    effect = one.effects.get(view.result.metric.get(workload, ""))
    summary = one.summaries.get(view.result.metric.get(workload, ""))
    measured = summary.n if summary else 0
    rejected = f", {one.rejected} rejected" if one.rejected else ""
    launch = view.launch
    if launch is not None and launch.candidate == index and view.session.state == "running" and view.keeper_alive:
        return Text("▶ measuring" if launch.state == "ready" else "▶ starting", style="bold")
    if index == 0:
        return Text("baseline")
    if effect is not None and effect.verdict:
        return Text(_verdict(effect.verdict, effect.more_blocks) + rejected)
    if any(index == candidate for candidate, _ in view.foregone):
        return Text("– not tried", style="dim")
    if index in view.dropped:
        return Text("– dropped", style="dim")
    if one.failures and not measured:
        return Text("! no start", style="bold")
    if not measured:
        still = "waiting" if view.session.state in LIVE_STATES else "not measured"
        return Text(f"· {still}{rejected}", style="dim")
    return Text(f"· {rejected.removeprefix(', ') or 'measured'}")


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


def state_word(state: str, keeper_alive: bool) -> str:
    """The state as glyph and word. A running session whose keeper is gone says so."""
    if state in LIVE_STATES and not keeper_alive:
        return "! interrupted"
    return f"{STATE_GLYPHS.get(state, '·')} {state}"


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


def launch_name(view: TuneView, candidate: int) -> str:
    """`[2048, 0.9, 256]` where it sets every flag of the table, else its label (`util 0.98`), or `default`."""
    if candidate == 0:
        return DEFAULT
    found = next((one for one in view.candidates if one.index == candidate), None)
    if found is None:
        return f"candidate {candidate}"
    if len(found.settings) < len(setting_flags(view.candidates)):
        return clean(found.label, 60)
    return f"[{', '.join(clean(shown_setting(flag, value), 16) for flag, value in found.settings.items())}]"


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


def serve_line(plan: Plan, candidate: Candidate) -> str:
    """The command that serves this candidate by hand, ready for a shell."""
    return clean(serve_command(plan, candidate))


def outcome(result: SessionResult) -> str:
    """One line for the list of sessions: the best effect measured, said as what it is."""
    best = max(
        (
            (abs(effect.effect), one, effect)
            for one in result.results
            if (effect := one.effects.get(result.metric.get(one.workload, ""))) is not None
            and effect.effect is not None
            and one.candidate.index != 0
        ),
        key=lambda found: found[0],
        default=None,
    )
    if best is None:
        return "no candidate measured against the default yet"
    _, one, effect = best
    return f"largest: {clean(one.candidate.label, 24)} {ratio(effect.effect)} in {clean(one.workload, 16)}"


def _verdict(verdict: str, more_blocks: int | None) -> str:
    if verdict == "undecided" and more_blocks:
        return f"? {more_blocks} more"
    return VERDICT_GLYPHS.get(verdict, clean(verdict, 16))


def _cell(view: TuneView, one: CandidateResult, column: Column, metric: str) -> Text:
    kind, _, name = column.key.partition(":")
    if kind == "state":
        return state_text(view, one)
    if kind == "set":
        baseline: Mapping[str, Any] = view.plan.server if view.plan else {}
        words = setting_text(one.candidate, name, baseline)
    elif kind == "label":
        words = DEFAULT if one.candidate.index == 0 else clean(one.candidate.label, 24)
    elif kind == "n":
        summary = one.summaries.get(metric)
        words = str(summary.n) if summary and summary.n else ABSENT
    elif kind == "effect":
        words = "" if one.candidate.index == 0 else effect_text(one.effects.get(metric))
    else:
        wanted = metric if kind == "metric" else name
        summary = one.summaries.get(wanted)
        words = metric_value(wanted, summary.mean if summary else None)
    return Text(words, no_wrap=True)


def table_title(view: TuneView, workload: str, metric: str) -> str:
    """Which workload and metric a table shows, and whether that metric decides."""
    names = view.workloads
    place = f" ({names.index(workload) + 1} of {len(names)}, w next)" if workload in names and len(names) > 1 else ""
    decides = view.result.metric.get(workload) == metric
    role = "decides" if decides else "does not decide"
    return f"── {clean(workload, 24)}{place} · {metric_name(metric)}{_direction(metric)}, {role}"


def _direction(metric: str) -> str:
    if higher_is_better(metric):
        return ", higher is better"
    return ", lower is better" if metric.endswith("_ms") or metric in LOWER_IS_BETTER else ""
