"""Each candidate's effect in every metric: of the one that decides as its look says, of the others by the same fit."""

from collections.abc import Collection, Mapping, Sequence

from tuning.judged import CandidateJudgement, Judgement
from tuning.records import Effect
from tuning.statistics import mean, mean_log
from tuning.verdict.decisions import interval
from tuning.verdict.layout import comparable, connected, fit
from tuning.verdict.moderation import comparison, variances
from tuning.verdict.records import BASELINE, LaunchValue, Range
from tuning.verdict.student import ratio

Cells = Mapping[tuple[int, int], Sequence[float]]  # (block, slot) → what the measured runs of that launch gave


def workload_effects(
    measured: Mapping[int, Mapping[str, Cells]], candidates: Sequence[int], workload: str, judgement: Judgement
) -> dict[int, dict[str, Effect]]:
    """Candidate → metric → effect, from configuration → metric → runs.

    The deciding metric's is that of the candidate's last look, with its verdict, and is there for every candidate. The
    others have the interval of the session's newest look. Where the complete blocks say nothing yet, the difference in
    the blocks that both have is given without an interval.
    """
    of_workload = judgement.workloads.get(workload)
    looked = of_workload or next(iter(judgement.workloads.values()), None)
    bar = looked.looks[-1].bar if looked is not None and looked.looks else None
    metrics = dict.fromkeys(metric for by_metric in measured.values() for metric in by_metric)
    found: dict[int, dict[str, Effect]] = {index: {} for index in candidates if index != BASELINE}
    for metric in metrics:
        cells = {index: by_metric[metric] for index, by_metric in measured.items() if metric in by_metric}
        decides = of_workload is not None and metric == of_workload.metric
        fitted = {} if decides else moderated_effects(cells, judgement.blocks, bar)
        for index in found:
            seen = fitted.get(index) or _paired(cells.get(index, {}), cells.get(BASELINE, {}))
            if seen is not None:
                blocks = _shared(cells.get(index, {}), cells.get(BASELINE, {}), judgement.blocks)
                found[index][metric] = Effect(blocks, seen.effect, seen.low, seen.high)
    if of_workload is not None:
        for index, effects in found.items():
            effects[of_workload.metric] = _decided(of_workload.candidates[index], effects.get(of_workload.metric))
    return found


def _decided(judged: CandidateJudgement, paired: Effect | None) -> Effect:
    verdict = judged.found
    if verdict is None or verdict.effect is None:
        blocks, effect = (0, None) if paired is None else (paired.blocks, paired.effect)
        return Effect(blocks, effect, None, None, judged.verdict)
    return Effect(verdict.launches, verdict.effect, verdict.low, verdict.high, judged.verdict, verdict.more_blocks)


def _paired(candidate: Cells, baseline: Cells) -> Range | None:
    """The mean over the blocks of both of the difference of their mean logs; None without such a block."""
    own, base = _logs(candidate), _logs(baseline)
    both = own.keys() & base.keys()
    if not both:
        return None
    return Range(ratio(mean([mean(own[block]) - mean(base[block]) for block in sorted(both)])), None, None)


def _logs(cells: Cells) -> dict[int, list[float]]:
    blocks: dict[int, list[float]] = {}
    for (block, _), runs in cells.items():
        log = mean_log(runs)
        if log is not None:
            blocks.setdefault(block, []).append(log)
    return blocks


def _shared(candidate: Cells, baseline: Cells, complete: Collection[int]) -> int:
    """In how many blocks both were launched: complete ones, where there are any."""
    both = {block for block, _ in candidate} & {block for block, _ in baseline}
    return len(both & set(complete)) or len(both)


def moderated_effects(cells: Mapping[int, Cells], blocks: Collection[int], bar: float | None) -> dict[int, Range]:
    """Each candidate against the baseline, over `blocks`, from one metric's runs by configuration.

    d ± t⁻¹(Φ(bar))·se as in `tuning.verdict.decisions.interval`, with moderated variances, nobody set aside: it holds
    over the looks and candidates of this one metric, not over the metrics together. Without an interval before
    the first look (`bar` None) or with a single launch of either; left out where no block links it to the baseline.
    """
    values = [
        LaunchValue(block, configuration, log)
        for configuration, launches in cells.items()
        for (block, _), runs in launches.items()
        if block in blocks and (log := mean_log(runs)) is not None
    ]
    kept = connected(comparable(values).kept).kept
    if not kept:
        return {}
    fitted = fit(kept)
    found = None if bar is None else variances(fitted)
    launches = dict(zip(fitted.configurations, fitted.launches, strict=True))
    means = dict(zip(fitted.configurations, fitted.means, strict=True))
    effects = {}
    for index in fitted.configurations:
        if index == BASELINE:
            continue
        if bar is None or found is None or min(launches[index], launches[BASELINE]) < 2:
            effects[index] = Range(ratio(float(means[index] - means[BASELINE])), None, None)
        else:
            effects[index] = interval(comparison(fitted, found, index), bar)
    return effects
