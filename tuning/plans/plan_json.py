"""A plan as JSON, as a session keeps it: `plan_from_json(plan_json(plan)) == plan`, also after a trip through text."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tuning.records import Budget, Candidate, Decide, Plan, Workload


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan with defaults filled in, in JSON's own types."""
    document: dict[str, Any] = _plain(asdict(plan))
    return document


def plan_from_json(document: Mapping[str, Any]) -> Plan:
    """The plan that `plan_json` wrote; KeyError or TypeError for anything else."""
    fields = dict(document)
    fields["workloads"] = tuple(_workload(item) for item in fields["workloads"])
    fields["grid"] = {name: tuple(values) for name, values in fields["grid"].items()}
    fields["explicit_candidates"] = tuple(dict(item) for item in fields["explicit_candidates"])
    fields["skip"] = tuple(fields["skip"])
    fields["decide"] = Decide(**{**fields["decide"], "limits": tuple(fields["decide"]["limits"])})
    fields["budget"] = Budget(**fields["budget"])
    return Plan(**fields)


def candidates_from_json(items: list[dict[str, Any]]) -> list[Candidate]:
    """The candidates of a `SessionRecord`, by index."""
    found = [Candidate(item["index"], item["label"], dict(item["settings"])) for item in items]
    return sorted(found, key=lambda candidate: candidate.index)


def _workload(item: Mapping[str, Any]) -> Workload:
    texts = {key: tuple(item.get(key, ())) for key in ("goodput", "extra_args", "adapters")}
    return Workload(**{**item, **texts})


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
