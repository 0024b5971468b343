"""What a plan in the editor will cost, and what is wrong with it, before anything starts. No widgets here."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from engine.text import clean
from store.clock import parse_utc
from store.records import LaunchRecord, RunRecord
from tui.metric_text import money
from tui.tune.plan_form import PlanForm, plan_of
from tuning.figures import duration_text
from tuning.judgement.certainty import CALIBRATION_BLOCKS, ExpectedNoise, KnownNoise, expected_noise, seconds_of_launch
from tuning.plans.grid import candidates, shown_setting
from tuning.plans.plan_file import plan_toml, read_plan
from tuning.records import Candidate, Estimate, Plan, PlanError, Skipped
from tuning.scheduling.budget import estimate

GUESSED_LAUNCH_S = 90.0
GUESSED_RUN_S = 40.0


@dataclass(frozen=True, slots=True)
class Basis:
    """Seconds of one launch (start to stop, without runs) and of one run, and where they come from; what earlier
    sessions on this machine say of the noise, the newest first."""

    seconds_per_launch: float = GUESSED_LAUNCH_S
    seconds_per_run: float = GUESSED_RUN_S
    source: str = "a guess: nothing was measured here yet"
    noise: tuple[KnownNoise, ...] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """A plan that can start (`plan`, `estimate` and `noise` set), or the mistakes that stand in the way, one a line."""

    plan: Plan | None = None
    toml: str = ""
    mistakes: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    estimate: Estimate | None = None
    noise: ExpectedNoise | None = None
    seconds_of_launch: float = 0.0  # with its runs


def measured_basis(session_id: int | None, launches: Sequence[LaunchRecord], runs: Sequence[RunRecord]) -> Basis:
    """Medians of an earlier session on this machine; guesses where it has none."""
    starts = [s for one in launches if one.ready_at and (s := _seconds(one.started_at, one.ready_at)) is not None]
    lengths = [
        s for one in runs if one.state == "done" and (s := _seconds(one.started_at, one.finished_at)) is not None
    ]
    if not starts or not lengths:
        return Basis()
    return Basis(median(starts), median(lengths), f"as in session {session_id}")


def preview(form: PlanForm, base: Plan, basis: Basis) -> Preview:
    """Check the form as a whole plan and count what it takes. Pure, a few milliseconds; safe in a thread."""
    try:
        text = plan_toml(plan_of(form, base))
        plan = read_plan(text, where="plan")
        points, skipped = candidates(plan)
        cost = estimate(plan, points, basis.seconds_per_launch, basis.seconds_per_run, basis.source)
    except PlanError as error:
        return Preview(mistakes=tuple(clean(_unnumbered(line), 200) for line in str(error).splitlines()))
    seconds = seconds_of_launch(plan, basis.seconds_per_launch, basis.seconds_per_run)
    noise = expected_noise(plan, basis.noise)
    return Preview(plan, text, (), tuple(points), tuple(skipped), cost, noise, seconds)


def _unnumbered(line: str) -> str:
    """Without the line of a file that nobody sees."""
    return re.sub(r"^plan(:\d+)?: ", "", line)


def cost_text(found: Preview) -> str:
    """`default + 8 candidates, 1 left out · ≤ 44 launches · 264 runs · 3 h 10 min · $1.40`."""
    cost = found.estimate
    if cost is None:
        return ""
    others = len(found.candidates) - 1
    parts = [f"default + {others} candidate{'' if others == 1 else 's'}"]
    if found.skipped:
        parts[0] += f", {len(found.skipped)} left out"
    parts += [f"≤ {cost.launches} launches", f"{cost.runs} runs", duration_text(3600 * cost.hours)]
    if cost.money is not None:
        parts.append(money(cost.money))
    return " · ".join(parts)


def budget_line(found: Preview) -> str | None:
    """Said where the estimate is above the plan's budget: it will be stopped before its end."""
    plan, cost = found.plan, found.estimate
    if plan is None or cost is None:
        return None
    if plan.budget.hours is not None and cost.hours > plan.budget.hours:
        return f"more than the budget of {plan.budget.hours:g} h: it will stop there, with what it has measured"
    if plan.budget.money is not None and cost.money is not None and cost.money > plan.budget.money:
        return f"more than the budget of {money(plan.budget.money)}: it will stop there, with what it has measured"
    return None


def noise_line(found: Preview) -> str:
    """Where noise and times are from, and what measuring the noise would take where nobody has."""
    plan, cost, noise = found.plan, found.estimate, found.noise
    if plan is None or cost is None or noise is None:
        return ""
    words = f"noise of a launch {noise.source}"
    if not noise.measured:
        launches, seconds, price = calibration_cost(found)
        words += f": C measures it ({launches} launches, {duration_text(seconds)}{price})"
    return f"{words} · time: {cost.basis}"


def calibration_cost(found: Preview) -> tuple[int, float, str]:
    """(launches, seconds, `, $0.40` or nothing) of measuring the default against itself."""
    launches = 2 * CALIBRATION_BLOCKS
    seconds = launches * found.seconds_of_launch
    price = found.plan.budget.gpu_price_per_hour if found.plan is not None else None
    return launches, seconds, "" if price is None else f", {money(price * seconds / 3600)}"


def left_out(skipped: Skipped) -> str:
    """One point that is never launched, and why."""
    settings = ", ".join(f"{flag} {shown_setting(flag, value)}" for flag, value in skipped.settings.items())
    return f"left out: {clean(settings, 80)}: {clean(skipped.reason, 120)}"


def _seconds(start: str | None, end: str | None) -> float | None:
    if start is None or end is None:
        return None
    return max(0.0, (parse_utc(end) - parse_utc(start)).total_seconds())
