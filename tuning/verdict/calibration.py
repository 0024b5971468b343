"""What A/A measurements, the baseline against itself, say of this machine's noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuning.verdict.records import Noise, Prior


@dataclass(frozen=True, slots=True)
class Components:
    """Log scale: `run_sd` between the runs of one launch, `launch_sd` between launches beyond what runs explain.

    None where there is nothing to tell it from.
    """

    run_sd: float | None
    launch_sd: float | None


def prior_of(noise: Noise) -> Prior | None:
    """The noise of an A/A session's last look as prior for the next session; None where it has none to give."""
    return Prior(noise.sd, noise.df) if noise.sd is not None and noise.sd > 0 and noise.df > 0 else None


def components(runs: Sequence[Sequence[float]], noise: Noise) -> Components:
    """Split the noise between launches: `runs` are the log values of each launch's repeats, `noise` of the look.

    s_run² = Σ(r_i − 1)s_i²/Σ(r_i − 1), s_launch² = s² − s_run²·mean(1/r_i), not below 0: a one-way
    random-effects analysis of variance by the method of moments, which equates mean squares with their expectations.
    """
    degrees = sum(len(run) - 1 for run in runs if run)
    run_variance = None
    if degrees > 0:
        run_variance = math.fsum(_squares(run) for run in runs if run) / degrees
    launch_sd = None
    if noise.sd is not None and run_variance is not None:
        per_launch = math.fsum(1 / len(run) for run in runs if run) / sum(1 for run in runs if run)
        launch_sd = math.sqrt(max(noise.sd**2 - run_variance * per_launch, 0.0))
    return Components(None if run_variance is None else math.sqrt(run_variance), launch_sd)


def launch_value_sd(launch_sd: float, run_sd: float, repeats: int) -> float:
    """The noise of a launch's mean over `repeats` runs, √(launch² + run²/repeats): what `outlook` takes."""
    return math.sqrt(launch_sd**2 + run_sd**2 / repeats)


def _squares(values: Sequence[float]) -> float:
    centre = math.fsum(values) / len(values)
    return math.fsum((value - centre) ** 2 for value in values)
