"""How noisy each configuration is, and from that how sure its difference from the baseline is."""

from collections.abc import Mapping
from dataclasses import dataclass

from tuning.verdict.layout import Fit
from tuning.verdict.records import BASELINE, Noise, Prior, Spread

PRIOR_DF = 6.0
POOLED_WITH_PRIOR = 0.25  # p of the F test above which A/A measurements are believed
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class Variances:
    """Log scale. `pooled` is s_p² with `df`, `of` each configuration's moderated variance with its degrees."""

    pooled: float
    df: float
    of: Mapping[int, tuple[float, float]]
    prior_used: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate's log difference from the baseline with its standard error and degrees of freedom."""

    difference: float
    se: float
    df: float


def pooled(fitted: Fit, prior: Prior | None = None) -> tuple[float, float, bool] | None:
    """s_p² = Σ e²/df, its df, and whether A/A noise was taken in; None without a degree of freedom.

    Where the F test of s_p² > s_A² gives p > 0.25: (df·s_p² + d_A·s_A²)/(df + d_A) with df + d_A. Method of the
    project's notes; without the test, A/A noise half the true gave 7 % false winners.
    """
    if fitted.df < 1:
        return None
    variance, df = float(fitted.residuals @ fitted.residuals) / fitted.df, float(fitted.df)
    if prior is None or prior.df <= 0 or prior.sd <= 0:
        return variance, df, False
    from scipy.special import fdtrc

    if float(fdtrc(df, prior.df, variance / prior.sd**2)) <= POOLED_WITH_PRIOR:
        return variance, df, False
    return (df * variance + prior.df * prior.sd**2) / (df + prior.df), df + prior.df, True


def variances(fitted: Fit, prior: Prior | None = None, prior_df: float = PRIOR_DF) -> Variances | None:
    """Each configuration's variance, drawn towards the pooled one; None without a degree of freedom.

    s̃_g² = (d_0·s_p² + SS_g)/(d_0 + f_g) with ν_g = d_0 + f_g, d_0 = `prior_df`, SS_g and f_g the sums of e² and
    1 − h over g's launches (Σ f_g = df). The form of Smyth 2004 (Stat. Appl. Genet. Mol. Biol. 3:3); d_0 is fixed, not
    estimated: a dozen variances of three degrees cannot tell it. In a block layout SS_g holds a share of the others'
    variance, too.
    """
    found = pooled(fitted, prior)
    if found is None:
        return None
    variance, df, used = found
    squares = fitted.by_configuration(fitted.residuals**2)
    free = fitted.by_configuration(1 - fitted.leverages).clip(min=0)
    of = {
        configuration: ((prior_df * variance + float(ss)) / (prior_df + float(f)), prior_df + float(f))
        for configuration, ss, f in zip(fitted.configurations, squares, free, strict=True)
    }
    return Variances(variance, df, of, used)


def comparison(fitted: Fit, found: Variances, candidate: int) -> Comparison:
    """d_j = μ_j − μ_0 with se = √(a + b + x) and ν = (a + b)²/(a²/ν_j + b²/ν_0), at most df, at least 1.

    a = s̃_j²/N_j, b = s̃_0²/N_0, x = s_p²(P_j − P_0)'M⁻¹(P_j − P_0), zero where both are in all blocks alike.
    Satterthwaite 1946 (Biometrics Bull. 2:110-114), Welch 1947 (Biometrika 34:28-35). KeyError for a candidate
    without a launch. With one candidate and one baseline launch a block this is the paired t test, exactly.
    """
    place = {configuration: row for row, configuration in enumerate(fitted.configurations)}
    j, zero = place[candidate], place[BASELINE]
    own, own_df = found.of[candidate]
    base, base_df = found.of[BASELINE]
    a, b = own / float(fitted.launches[j]), base / float(fitted.launches[zero])
    apart = fitted.share[j] - fitted.share[zero]
    x = found.pooled * float(apart @ fitted.inverse @ apart)
    degrees = (a + b) ** 2 / (a**2 / own_df + b**2 / base_df) if a + b > 0 else found.df
    difference = float(fitted.means[j] - fitted.means[zero])
    return Comparison(difference, max(a + b + x, 0.0) ** 0.5, max(min(degrees, found.df), 1.0))


def noise(fitted: Fit, found: Variances | None) -> Noise:
    """What is shown of the noise: pooled, and of each configuration as found and as moderated."""
    squares = fitted.by_configuration(fitted.residuals**2)
    free = fitted.by_configuration(1 - fitted.leverages)
    spreads = {}
    for row, configuration in enumerate(fitted.configurations):
        f = max(float(free[row]), 0.0)
        spreads[configuration] = Spread(
            launches=int(fitted.launches[row]),
            sd=(float(squares[row]) / f) ** 0.5 if f > _NOTHING else None,
            df=f,
            moderated_sd=None if found is None else found.of[configuration][0] ** 0.5,
        )
    if found is None:
        return Noise(None, 0.0, spreads)
    return Noise(found.pooled**0.5, found.df, spreads, found.prior_used)
