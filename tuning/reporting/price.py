"""What tokens cost in money and in energy."""

import math

from tuning.document import Heading, Paragraph, Part, Table
from tuning.figures import ABSENT, effect_text, figure, summary_text
from tuning.judgement.costs import Cost, cost_per_million
from tuning.records import CandidateResult, Workload
from tuning.reporting.material import Material
from tuning.scheduling.schedule import BASELINE

_ENERGY = "energy_j_per_token"


def cost_text(cost: Cost | None, unit: str = "$") -> str:
    """`$0.129 [0.125, 0.133]`."""
    if cost is None:
        return ABSENT
    if cost.low is None or cost.high is None:
        return unit + _amount(cost.mean)
    return f"{unit}{_amount(cost.mean)} [{_amount(cost.low)}, {_amount(cost.high)}]"


def _amount(amount: float) -> str:
    """Three digits at least: `0.120`, `12.5`, `1,250`."""
    if not 0 < amount < math.inf:
        return figure(amount)
    return f"{amount:,.{max(2 - math.floor(math.log10(amount)), 0)}f}"


def price_parts(material: Material) -> list[Part]:
    """A table for each workload; without a price, hours in the place of money."""
    tables: list[Part] = []
    for workload in material.plan.workloads:
        results = material.by_effect(workload.name)
        if any("output_tok_per_s" in each.summaries or _ENERGY in each.summaries for each in results):
            tables.append(_table(material, workload, results))
    return [Heading("Cost and energy"), *tables, Paragraph(_note(material))] if tables else []


def _table(material: Material, workload: Workload, results: list[CandidateResult]) -> Table:
    price = material.plan.budget.gpu_price_per_hour
    unit = "hours" if price is None else "cost"
    energy = any(_ENERGY in each.summaries for each in results)
    header = ["candidate", f"{unit} for a million tokens, in and out", f"{unit} for a million output tokens"]
    header += ["J for an output token", "energy against the default"] if energy else []
    rows = []
    for each in results:
        costs = [
            cost_text(
                cost_per_million(1.0 if price is None else price, each.summaries.get(metric)),
                "" if price is None else "$",
            )
            for metric in ("total_tok_per_s", "output_tok_per_s")
        ]
        row = [each.candidate.label, *costs]
        if energy:
            baseline = each.candidate.index == BASELINE
            row.append(summary_text(each.summaries.get(_ENERGY)))
            row.append("baseline" if baseline else effect_text(each.effects.get(_ENERGY)))
        rows.append(tuple(row))
    return Table(tuple(header), tuple(rows), frozenset(range(1, len(header))), _caption(workload))


def _caption(workload: Workload) -> str:
    rate = workload.request_rate
    offered = (
        ""
        if rate is None
        else f"; it sends {rate:g} requests a second and no more, so that its cost is that of the load"
    )
    return f"{workload.name}{offered}"


def _note(material: Material) -> str:
    price = material.plan.budget.gpu_price_per_hour
    if price is None:
        assumed = (
            "The plan has no price (gpu_price_per_hour in [budget]): hours of the machine are shown; times its price "
            "an hour, they are the cost."
        )
    else:
        assumed = (
            f"Assumes ${price:g} an hour for the machine, as the plan's gpu_price_per_hour has it, taken as exact."
        )
    return (
        f"{assumed} The server is paid for by the second while this load is on it: its start and idle hours are not in "
        "it, and a load that does not fill the server makes tokens dear. The interval is that of the throughput. "
        "Energy is that of the GPUs alone."
    )
