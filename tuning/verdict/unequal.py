"""Whether some candidates are so much noisier than the rest that the usual bar would not keep the promise.

The noise of a configuration is drawn towards that of all, which makes a noisy one among quiet ones look quieter than
it is: by simulation the chance of a false winner rises to 9 to 14 % where a quarter of them is three to four times as
noisy.
"""

from tuning.verdict.layout import Fit
from tuning.verdict.records import BASELINE

PRIOR_DF = 3.0  # in the place of moderation.PRIOR_DF, once noise was found unequal
LEAST = 3  # candidates
_FREE = 1e-9


def level(candidates: int) -> float:
    """The p below which noise counts as unequal. Not small: at three degrees a strict test would see too little, and
    a false alarm costs power only, least where candidates are few. Found by simulation."""
    return 0.2 if candidates <= 6 else 0.1


def noisiest(fitted: Fit, candidates: int) -> tuple[int, ...]:
    """The candidates that are noisier than all others together let expect; empty where none is, or below three.

    Cochran's C (1941, Ann. Eugenics 11:47-52) for unequal degrees ('t Lam 2010, Anal. Chim. Acta 659:68-84): under
    equal noise SS_g/SS is Beta(f_g/2, (df − f_g)/2), and its upper tail times their number bounds p. Of candidates
    only: the baseline is launched more often, and its noise is in every comparison. `candidates`: at the start.
    """
    if candidates < LEAST or fitted.df < 2:
        return ()
    from scipy.special import betainc

    squares = fitted.by_configuration(fitted.residuals**2)
    free = fitted.by_configuration(1 - fitted.leverages)
    whole, df = float(squares.sum()), float(fitted.df)
    if whole <= 0:
        return ()
    tested = [
        (configuration, float(ss), float(f))
        for configuration, ss, f in zip(fitted.configurations, squares, free, strict=True)
        if configuration != BASELINE and _FREE < f < df
    ]
    limit = level(candidates) / max(len(tested), 1)
    return tuple(
        configuration
        for configuration, ss, f in tested
        if float(betainc((df - f) / 2, f / 2, max(1 - ss / whole, 0.0))) < limit
    )
