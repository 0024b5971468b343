"""Whether a candidate that a person adds to a running sweep can be launched."""

from collections.abc import Iterable, Mapping
from typing import Any

from tuning.plans.grid import refused
from tuning.plans.plan_flags import SET_BY_A_SWEEP, flag_mistake
from tuning.plans.plan_secrets import holds_secret
from tuning.records import Plan


def why_not_added(plan: Plan, settings: Mapping[str, Any], known: Iterable[Mapping[str, Any]]) -> str | None:
    """One line that says why `settings` (vLLM flags, with dashes) cannot join the candidates `known`, or None."""
    if plan.calibrate:
        return "an A/A session measures the default against itself only: start a session of the plan for candidates"
    for name, value in settings.items():
        if name in SET_BY_A_SWEEP:
            return f"{name} cannot be varied: {SET_BY_A_SWEEP[name]}"
        if mistake := flag_mistake(name, value):
            return f"{name} {mistake}"
    if holds_secret(settings):
        return "a setting holds a key or password, and settings are kept: start a session with it in [server.env]"
    merged = {**plan.server, **settings}
    if any({**plan.server, **other} == merged for other in known):
        return "this candidate is there already"
    return refused(merged)
