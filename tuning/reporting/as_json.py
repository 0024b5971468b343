"""A session as one JSON object with everything that is known of it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from store.records import LaunchRecord, RunRecord, SessionRecord
from tuning.judgement.costs import cost_per_million
from tuning.records import SessionResult
from tuning.reporting.commands import serve_command
from tuning.reporting.head import sentence
from tuning.reporting.material import Material
from tuning.reporting.values import json_ready
from tuning.scheduling.launch_counts import launch_counts

SCHEMA = 1


def to_json(
    result: SessionResult, session: SessionRecord, launches: Sequence[LaunchRecord], runs: Sequence[RunRecord]
) -> str:
    """`raw` of a run is there where the store gave it."""
    material = Material(session, result, launches, runs)
    document = {
        "schema": SCHEMA,
        "sentence": sentence(material),
        "session": session,
        "judgement": result.judgement,
        "result": replace(result, judgement=None),
        "costs": _costs(material),
        "launch_counts": launch_counts(launches, material.plan.decide.blocks, len(material.candidates) - 1),
        "commands": {candidate.label: serve_command(material.plan, candidate) for candidate in material.candidates},
        "launches": launches,
        "runs": runs,
    }
    ready = json_ready(document)
    del ready["result"]["judgement"]
    return json.dumps(ready, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _costs(material: Material) -> dict[str, Any] | None:
    """Per million tokens by workload and label; null without a price."""
    price = material.plan.budget.gpu_price_per_hour
    if price is None:
        return None
    by_workload: dict[str, Any] = {"price_per_hour": price, "workloads": {}}
    for each in material.result.results:
        by_workload["workloads"].setdefault(each.workload, {})[each.candidate.label] = {
            "total": cost_per_million(price, each.summaries.get("total_tok_per_s")),
            "output": cost_per_million(price, each.summaries.get("output_tok_per_s")),
        }
    return by_workload
