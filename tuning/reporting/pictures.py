"""From a session to its pictures."""

import math
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from tuning.document import Part, Picture
from tuning.figures import effect_text, metric_title
from tuning.judged import WorkloadJudgement
from tuning.judgement.pareto import ParetoPoint
from tuning.judgement.verdict_words import verdict_text
from tuning.records import PLAN_METRICS_HIGHER_IS_BETTER
from tuning.reporting.course import Fate, Launched, course
from tuning.reporting.forest import Effected, forest
from tuning.reporting.material import Material
from tuning.reporting.trade import trade
from tuning.scheduling.schedule import BASELINE

_CELL = tuple[int, int, int]  # block, candidate, slot


def forest_picture(material: Material, workload: str, at: int) -> list[Part]:
    """The effects on the deciding metric. `at` numbers the workload within the page."""
    metric = material.metric(workload)
    judged = material.judged(workload)
    trimmed = {each.configuration for each in judged.looks[-1].set_aside} if judged and judged.looks else set()
    rows = []
    for each in material.by_effect(workload):
        effect = material.deciding_effect(each)
        if effect is None or effect.effect is None:
            continue
        of = material.candidate_judged(workload, each.candidate.index)
        words = verdict_text(of, judged.rules, judged.blocks) if judged else ""
        whole = None if of is None or of.found is None else of.found.with_all
        with_all = None
        if whole is not None and not trimmed.isdisjoint({BASELINE, each.candidate.index}):
            with_all = None if whole.low is None or whole.high is None else (whole.low, whole.high)
        told = "  ".join(filter(None, (effect_text(effect), words)))
        kind = of.verdict if of else ""
        rows.append(Effected(each.candidate.label, effect.effect, effect.low, effect.high, kind, told, with_all))
    margin = judged.rules.margin if judged else material.plan.decide.smallest_effect
    svg = forest(f"forest-{at}", metric_title(metric), rows, margin, metric in PLAN_METRICS_HIGHER_IS_BETTER)
    caption = "Each candidate's effect with its interval; in the shaded band a difference does not matter."
    if any(row.with_all for row in rows):
        caption += " The thin dashed line below has the launches that were set aside put back."
    return _part(svg, caption)


def trade_picture(points: Sequence[ParetoPoint], throughput: str, latency: str, at: int) -> list[Part]:
    caption = (
        "Filled marks are on the front: no other has more throughput at no more latency. The square is the default; "
        "thin lines are intervals, cut where they leave the picture."
    )
    return _part(trade(f"trade-{at}", points, throughput, latency), caption)


def course_picture(material: Material, workload: str, at: int) -> list[Part]:
    """Each launch on the deciding metric, by block. Without the runs there is none."""
    metric = material.metric(workload)
    judged = material.judged(workload)
    levels = {} if judged is None or not judged.looks else judged.looks[-1].drift.blocks
    shown = {block + 1: level for block, level in levels.items()}
    svg = course(f"course-{at}", metric_title(metric), launched(material, workload, metric, judged), shown)
    caption = (
        "Launches in their order: squares are the default, circles candidates, lines the level of each block against "
        "all, crosses launches that the result does without, hollow dashed marks those of blocks that do not count."
    )
    return _part(svg, caption)


def launched(material: Material, workload: str, metric: str, judged: WorkloadJudgement | None) -> list[Launched]:
    """The launches of the workload with a value: the mean log over their runs that count."""
    logs: dict[_CELL, list[float]] = {}
    for run in material.runs:
        value = run.metrics.get(metric)
        if run.workload == workload and run.kind == "measured" and run.state == "done" and value and value > 0:
            logs.setdefault((run.block, run.candidate, run.slot), []).append(math.log(value))
    positions = {(each.block, each.candidate, each.slot): each.position for each in material.launches}
    looked = judged.looks[-1] if judged and judged.looks else None
    aside = {(each.block, each.configuration, round(each.value, 9)) for each in looked.set_aside} if looked else set()
    counted = set() if material.judgement is None else set(material.judgement.blocks)
    found = []
    for cell, values in sorted(logs.items()):
        block, candidate, _ = cell
        value = math.fsum(values) / len(values)
        fate: Fate = "counts"
        if (block, candidate, round(value, 9)) in aside:
            fate = "set aside"
        elif judged is not None and block not in counted:
            fate = "does not count"
        label = material.label(candidate)
        found.append(Launched(block + 1, positions.get(cell, 0), candidate, label, value, fate))
    return found


def _part(svg: Element | None, caption: str) -> list[Part]:
    return [] if svg is None else [Picture(svg, caption)]
