"""Whether the machine changed while it was measured: over the blocks, and within them.

Both are taken out of the verdicts by the design (blocks, and the baseline spread over each); they are shown because a
machine that drifts is worth knowing.
"""

from tuning.verdict.layout import Fit
from tuning.verdict.records import Drift, Trend
from tuning.verdict.student import ratio, t_of_p

CONFIDENCE = 0.95


def drift(fitted: Fit, variance: float | None, df: float) -> Drift:
    """What the fit says of the blocks; `variance` (None: unknown) and `df` are of the noise between launches.

    `blocks` are exp(β_b) − 1. With C = Σ_b x_b β_b/Σ x_b², x the centred number of the block, the slope's variance is
    s²·x'M⁻¹x/(Σ x²)², since M⁻¹ is the covariance of β but for a constant; the test of no difference between blocks is
    F = β'Mβ/((n − 1)·s²). Textbook least squares on the layout of `tuning.verdict.layout`.
    """
    levels = {block: ratio(float(effect)) for block, effect in zip(fitted.blocks, fitted.effects, strict=True)}
    known = {block: level for block, level in levels.items() if level is not None}
    if variance is None or variance <= 0 or len(fitted.blocks) < 2:
        return Drift(known)
    import numpy as np
    from scipy.special import fdtrc

    effects, n = fitted.effects, len(fitted.blocks)
    statistic = float(effects @ np.linalg.solve(fitted.inverse, effects)) / (n - 1) / variance
    x = np.array(fitted.blocks, dtype=float)
    x -= x.mean()
    squares = float(x @ x)
    slope = float(x @ effects) / squares
    se = (variance * float(x @ fitted.inverse @ x)) ** 0.5 / squares
    length = fitted.blocks[-1] - fitted.blocks[0]
    return Drift(
        known, float(fdtrc(n - 1, df, max(statistic, 0.0))), _trend(slope * length, se * length, df), _within(fitted)
    )


def _within(fitted: Fit) -> Trend | None:
    """The slope along the block, beside configurations and blocks: None where positions are not known or do not vary.

    By regressing the residuals on what the layout leaves of the positions (Frisch & Waugh 1933,
    Lovell 1963): the least-squares slope of the model with the position in it, and df − 1.
    """
    import numpy as np

    positions = [value.position for value in fitted.values]
    if fitted.df < 2 or any(position is None for position in positions):
        return None
    places = np.array(positions, dtype=float)
    last = np.array([places[fitted.column == column].max() for column in range(len(fitted.blocks))])[fitted.column]
    along = fitted.residuals_of(np.where(last > 0, places / np.where(last > 0, last, 1), 0.0))
    spread = float(along @ along)
    if spread < 1e-12:
        return None
    slope = float(along @ fitted.residuals) / spread
    rest = float(fitted.residuals @ fitted.residuals) - slope**2 * spread
    return _trend(slope, (max(rest, 0.0) / (fitted.df - 1) / spread) ** 0.5, fitted.df - 1)


def _trend(change: float, se: float, df: float) -> Trend | None:
    from scipy.special import stdtr

    if se <= 0:
        return None
    half = t_of_p((1 - CONFIDENCE) / 2, df) * se
    middle, low, high = ratio(change), ratio(change - half), ratio(change + half)
    if middle is None or low is None or high is None:
        return None
    return Trend(middle, low, high, 2 * float(stdtr(df, -abs(change) / se)))
