"""What one session says of one metric: each candidate's effect, and the level of its default. Log scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tuning.statistics import Estimate, mean, mean_estimate
from tuning.verdict.layout import comparable
from tuning.verdict.moderation import PRIOR_DF, comparison, variances
from tuning.verdict.outliers import screen
from tuning.verdict.records import BASELINE, LaunchValue, Prior
from tuning.verdict.unequal import PRIOR_DF as UNEQUAL_PRIOR_DF
from tuning.verdict.unequal import noisiest


@dataclass(frozen=True, slots=True)
class Estimates:
    """`effects` and `launches` are by candidate; `level` is the default's over `level_launches` launches of `blocks`
    blocks, None without any. `set_aside` are the outliers that all this does without."""

    effects: Mapping[int, Estimate] = field(default_factory=dict)
    launches: Mapping[int, int] = field(default_factory=dict)
    level: Estimate | None = None
    level_launches: int = 0
    blocks: int = 0
    set_aside: tuple[LaunchValue, ...] = ()


def estimates(values: Sequence[LaunchValue], candidates: int, prior: Prior | None = None) -> Estimates:
    """From the launches of complete blocks. `candidates` and `prior` are those that the session began with.

    Effects are those of the session's own verdict: the same fit, outlier rule and moderated variances, with a standard
    error from two launches on of the candidate and of the default. They leave out what a block does to all alike.

    The level has no such comparison, and what moves the machine moves the launches of a block together: the default's
    launches of a block are averaged first, so that the blocks are the units.
    """
    kept = comparable(values).kept
    if not kept:
        return Estimates()
    screened = screen(kept)
    fitted = screened.fitted
    noisy = noisiest(fitted, candidates)
    found = variances(fitted, prior, UNEQUAL_PRIOR_DF if noisy else PRIOR_DF)
    launches = dict(zip(fitted.configurations, map(int, fitted.launches), strict=True))
    means = dict(zip(fitted.configurations, map(float, fitted.means), strict=True))
    effects = {}
    for candidate, count in launches.items():
        if candidate == BASELINE:
            continue
        effects[candidate] = Estimate(means[candidate] - means[BASELINE], None, 0.0)
        if found is not None and min(count, launches[BASELINE]) >= 2:
            one = comparison(fitted, found, candidate)
            effects[candidate] = Estimate(one.difference, one.se, one.df)
    blocks: dict[int, list[float]] = {}
    for value in fitted.values:
        if value.configuration == BASELINE:
            blocks.setdefault(value.block, []).append(value.value)
    level = mean_estimate([mean(of_block) for of_block in blocks.values()]) if blocks else None
    return Estimates(effects, launches, level, launches.get(BASELINE, 0), len(blocks), screened.set_aside)
