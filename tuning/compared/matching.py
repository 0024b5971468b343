"""What two sessions have in common: the model, the workloads, the candidates."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from engine.text import clean, redact_env
from tuning.compared.records import Side
from tuning.counting import short_model
from tuning.records import Candidate, CandidateResult, Workload
from tuning.scheduling.schedule import BASELINE

# Of a workload's fields those that say nothing of the load itself.
_APART = frozenset({"name", "warmup", "repeats", "goodput", "path"})


def model_trouble(a: Side, b: Side) -> str | None:
    """Why the two measured different models; None for the same: by hash where both have one, else by name."""
    one, other = a.session.environment.get("model_hash"), b.session.environment.get("model_hash")
    names = f"{clean(a.plan.model, 200)} in A, {clean(b.plan.model, 200)} in B"
    if one and other:
        return None if one == other else f"the models are not the same ({names}; their files differ)"
    if short_model(a.plan.model) != short_model(b.plan.model):
        return f"the models are not the same ({names})"
    return None


def model_note(a: Side, b: Side) -> str | None:
    """What stands for the model being the same where its files do not."""
    environments = (a.session.environment, b.session.environment)
    if a.plan.model == b.plan.model or all(each.get("model_hash") for each in environments):
        return None
    return (
        f"{clean(a.plan.model, 200)} and {clean(b.plan.model, 200)} are taken for the same model by their name: what "
        "their files hold was not kept"
    )


def workload_pairs(a: Side, b: Side) -> tuple[list[tuple[Workload, Workload]], list[str]]:
    """The workloads that put the same load on a server, whatever they are called, and a line for each of the others."""
    free = list(b.plan.workloads)
    pairs: list[tuple[Workload, Workload]] = []
    for one in a.plan.workloads:
        alike = [other for other in free if not _load_differences(one, other)]
        other = next((each for each in alike if each.name == one.name), alike[0] if alike else None)
        if other is not None:
            pairs.append((one, other))
            free.remove(other)
    lines = []
    for one in a.plan.workloads:
        if one in [first for first, _ in pairs]:
            continue
        namesake = next((other for other in free if other.name == one.name), None)
        if namesake is None:
            lines.append(f"workload {clean(one.name, 60)}: B has none like it")
        else:
            free.remove(namesake)
            apart = "; ".join(_load_differences(one, namesake))
            lines.append(f"workload {clean(one.name, 60)}: not the same load in both ({apart})")
    lines += [f"workload {clean(other.name, 60)}: A has none like it" for other in free]
    return pairs, lines


def workload_label(a: Workload, b: Workload) -> str:
    """Its name, and B's where that is another."""
    return clean(a.name if a.name == b.name else f"{a.name} (in B {b.name})", 120)


def workload_notes(a: Workload, b: Workload) -> tuple[str, ...]:
    """What is not known to be the same, or is not, without making another load of it."""
    notes = []
    if a.path != b.path:
        notes.append(
            f"the dataset is {clean(str(a.path), 200)} in A and {clean(str(b.path), 200)} in B: whether they hold the "
            "same was not kept"
        )
    if a.warmup != b.warmup:
        notes.append(f"a launch is warmed up by {a.warmup} whole runs in A, by {b.warmup} in B")
    return tuple(notes)


def candidate_pairs(a: Side, b: Side) -> tuple[list[tuple[Candidate, Candidate]], list[str], list[str]]:
    """The candidates that change their default in the same way, and the labels of those that only A or only B has."""
    free = [each for each in b.candidates if each.index != BASELINE]
    pairs, only_a = [], []
    for one in a.candidates:
        if one.index == BASELINE:
            continue
        other = next((each for each in free if _changes(each, b) == _changes(one, a)), None)
        if other is None:
            only_a.append(clean(one.label, 60))
        else:
            pairs.append((one, other))
            free.remove(other)
    return pairs, only_a, [clean(each.label, 60) for each in free]


def unmeasured_lines(a: Side, b: Side, pairs: Sequence[tuple[Candidate, Candidate]]) -> list[str]:
    """One line for each candidate of both that has no launch that counts in one of them, with why it failed there."""
    lines = []
    for one, other in pairs:
        found = [
            (letter, _failed(side, candidate))
            for letter, side, candidate in (("A", a, one), ("B", b, other))
            if not any(each.summaries for each in _results(side, candidate))
        ]
        if len(found) == 2 and found[0][1] == found[1][1]:
            found = [("both", found[0][1])]
        if found:
            where = " and ".join(f"in {letter}{why}" for letter, why in found)
            lines.append(f"{clean(one.label, 60)} has no launch that counts {where}")
    return lines


def _failed(side: Side, candidate: Candidate) -> str:
    why = [line for each in _results(side, candidate) for line in each.failures]
    return f" ({clean(why[-1], 200)})" if why else ""


def _results(side: Side, candidate: Candidate) -> list[CandidateResult]:
    return [each for each in side.result.results if each.candidate.index == candidate.index]


def default_differences(a: Side, b: Side) -> list[str]:
    """One line for each flag, and each variable of the environment, in which the two defaults differ."""
    variables = _differences(a.plan.server_env, b.plan.server_env)
    return [*_differences(a.plan.server, b.plan.server), *(f"environment {line}" for line in variables)]


def _changes(candidate: Candidate, of: Side) -> dict[str, str]:
    """Its settings that are not its default's anyway."""
    server = {key: _canonical(value) for key, value in of.plan.server.items()}
    settings = {key: _canonical(value) for key, value in candidate.settings.items()}
    return {key: value for key, value in settings.items() if server.get(key) != value}


def _load_differences(a: Workload, b: Workload) -> list[str]:
    one, other = _load(a), _load(b)
    return _differences(one, other)


def _load(workload: Workload) -> dict[str, Any]:
    found = {key: value for key, value in asdict(workload).items() if key not in _APART}
    shape = found.pop("shape")
    found["request_rate"] = "inf" if workload.request_rate is None else workload.request_rate
    file = {"dataset file": PurePath(workload.path).name} if workload.path else {}
    return {**found, **shape, **file}


def _differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Compared as they are, shown as they may be."""
    return [
        f"{clean(key, 60)}: A {_shown(key, a.get(key))}, B {_shown(key, b.get(key))}"
        for key in sorted({*a, *b})
        if _canonical(a.get(key)) != _canonical(b.get(key))
    ]


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _shown(key: str, value: Any) -> str:
    if value is None:
        return "not set"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return clean(redact_env({key: text})[key], 80)
