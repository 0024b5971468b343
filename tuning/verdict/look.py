"""One look at a session, and all of its looks: from the launches so far to a verdict on each candidate."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tuning.verdict.boundary import FIRST_LOOK, bar, bars
from tuning.verdict.decisions import decide, interval, more_blocks
from tuning.verdict.drift import drift
from tuning.verdict.layout import Fit, comparable, connected, fit
from tuning.verdict.moderation import PRIOR_DF, Variances, comparison, noise, variances
from tuning.verdict.outliers import Screened, screen
from tuning.verdict.records import (
    BASELINE,
    FINAL_STATES,
    Drift,
    LaunchValue,
    Look,
    Noise,
    Prior,
    Range,
    Rules,
    State,
    Verdict,
)
from tuning.verdict.student import ratio
from tuning.verdict.unequal import PRIOR_DF as UNEQUAL_PRIOR_DF
from tuning.verdict.unequal import noisiest

DECIDED: frozenset[State] = frozenset({"better", "worse", "equivalent"})


def look(values: Sequence[LaunchValue], rules: Rules, in_play: Collection[int], prior: Prior | None = None) -> Look:
    """The verdicts after the blocks in `values`, all of them complete. Pure: the same values give the same verdicts.

    `values` hold the launches of candidates that left, too; blocks without a baseline launch do not count.
    ValueError for more blocks or candidates in play than the rules have, or a value that is not finite.
    """
    if any(not math.isfinite(value.value) for value in values):
        raise ValueError("the log of a metric must be a finite number")
    candidates = sorted(set(in_play))
    if BASELINE in candidates or len(candidates) > rules.candidates:
        raise ValueError(f"at most {rules.candidates} candidates are in play, and the baseline is none of them")
    usable = comparable(values)
    blocks = len({value.block for value in usable.kept})
    if blocks > rules.blocks:
        raise ValueError(f"these rules spend the error over {rules.blocks} blocks, not {blocks}")
    if not usable.kept:
        nothing = {candidate: Verdict("undecided", None, None, None, 0) for candidate in candidates}
        return Look(0, nothing, (), Noise(None, 0.0), Drift(), usable.dropped)

    screened = screen(usable.kept)
    fitted = screened.fitted
    noisy = noisiest(fitted, rules.candidates)
    prior_df = PRIOR_DF
    if noisy:
        rules, prior_df = replace(rules, strict=True), UNEQUAL_PRIOR_DF
    found = variances(fitted, prior, prior_df)
    verdicts = {candidate: _verdict(screened, found, candidate, blocks, rules) for candidate in candidates}
    if screened.set_aside:
        whole = fit(connected(usable.kept).kept)
        all_kept = Screened(whole, (), screened.suspect)
        before, bar_now = variances(whole, prior, prior_df), bar(rules, blocks)
        trimmed = {value.configuration for value in screened.set_aside}
        for j, verdict in verdicts.items():
            if j in trimmed:
                verdict = _agreed(verdict, _verdict(all_kept, before, j, blocks, rules))
            verdicts[j] = replace(verdict, with_all=_range(whole, before, j, bar_now))
    return Look(
        blocks=blocks,
        verdicts=verdicts,
        set_aside=screened.set_aside,
        noise=noise(fitted, found),
        drift=drift(fitted, None if found is None else found.pooled, 0 if found is None else found.df),
        dropped=usable.dropped + screened.dropped,
        bar=bar(rules, blocks),
        unequal=noisy,
    )


def looks(
    values: Sequence[LaunchValue], rules: Rules, candidates: Collection[int], prior: Prior | None = None
) -> tuple[Look, ...]:
    """The session's looks from its first block on, one after each block with a baseline launch.

    A candidate that a look decides is not in play at the next. Recomputed from the launches alone, so that it need
    not be stored; launches made after a candidate left count for the noise.
    """
    in_play = set(candidates)
    done: list[Look] = []
    for block in sorted({value.block for value in values if value.configuration == BASELINE}):
        done.append(look([value for value in values if value.block <= block], rules, in_play, prior))
        in_play -= {j for j, verdict in done[-1].verdicts.items() if verdict.state in FINAL_STATES}
    return tuple(done)


def latest(done: Sequence[Look]) -> Mapping[int, Verdict]:
    """Each candidate's last verdict: that of the look at which it left, or of the newest."""
    return {candidate: verdict for one in done for candidate, verdict in one.verdicts.items()}


def _agreed(without: Verdict, with_all: Verdict) -> Verdict:
    """What a candidate is called that has lost a launch: a noisy one would else win by what it is trimmed of."""
    if without.state in DECIDED and without.state != with_all.state:
        return replace(without, state="undecided", also=None)
    return without


def _verdict(screened: Screened, found: Variances | None, candidate: int, blocks: int, rules: Rules) -> Verdict:
    fitted = screened.fitted
    launches = _launches(fitted, candidate)
    suspect = not screened.suspect.isdisjoint({candidate, BASELINE})
    seen = _range(fitted, found, candidate, bar(rules, blocks))
    verdict = Verdict("undecided", seen.effect, seen.low, seen.high, launches, suspect=suspect)
    if found is None or blocks < FIRST_LOOK or launches < 1:
        return verdict
    left = rules.blocks - blocks
    if suspect or launches < 2 or _launches(fitted, BASELINE) < 2:
        return replace(verdict, more_blocks=1 if left else None)
    one = comparison(fitted, found, candidate)
    c = bars(rules)[blocks - FIRST_LOOK :]
    state, also = decide(one, c[0], rules)
    more = more_blocks(one, blocks, c[1:], rules) if state == "undecided" else None
    return replace(verdict, state=state, also=also, more_blocks=more)


def _range(fitted: Fit, found: Variances | None, candidate: int, bar_now: float | None) -> Range:
    """Without an interval where there is none yet: before the first look, or with one launch of either."""
    launches = _launches(fitted, candidate)
    if launches < 1 or _launches(fitted, BASELINE) < 1:
        return Range(None, None, None)
    if found is None or bar_now is None or min(launches, _launches(fitted, BASELINE)) < 2:
        means = dict(zip(fitted.configurations, fitted.means, strict=True))
        return Range(ratio(float(means[candidate] - means[BASELINE])), None, None)
    return interval(comparison(fitted, found, candidate), bar_now)


def _launches(fitted: Fit, configuration: int) -> int:
    if configuration not in fitted.configurations:
        return 0
    return int(fitted.launches[fitted.configurations.index(configuration)])
