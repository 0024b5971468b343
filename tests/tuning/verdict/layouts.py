"""Random layouts of launches, and the same least squares by numpy's own solver."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuning.verdict.layout import comparable, connected
from tuning.verdict.records import LaunchValue


def session(
    rng: np.random.Generator,
    candidates: int,
    blocks: int,
    baselines: int = 1,
    sd: float = 0.01,
    effects: dict[int, float] | None = None,
    drift: float = 0.02,
) -> list[LaunchValue]:
    """A full layout in random order: ln of a throughput near 20,000, blocks that differ by `drift`."""
    values = []
    for block in range(blocks):
        level = 9.9 + drift * rng.standard_normal()
        for position, g in enumerate(rng.permutation([0] * baselines + list(range(1, candidates + 1)))):
            value = level + (effects or {}).get(int(g), 0.0) + sd * rng.standard_normal()
            values.append(LaunchValue(block, int(g), float(value), position))
    return values


def incomplete(rng: np.random.Generator) -> list[LaunchValue]:
    """Two to six blocks, one to nine candidates, one to three baselines, some cells missing, some candidates gone."""
    candidates, blocks = int(rng.integers(1, 10)), int(rng.integers(2, 7))
    gone = {g: int(rng.integers(2, 8)) for g in range(1, candidates + 1)}
    full = session(rng, candidates, blocks, int(rng.integers(1, 4)))
    left = [v for v in full if (v.configuration == 0 or v.block < gone[v.configuration]) and rng.random() > 0.15]
    return list(connected(comparable(left).kept).kept)


def design(values: Sequence[LaunchValue]) -> NDArray[Any]:
    """Indicator columns of the configurations and of the blocks but the first."""
    configurations = sorted({value.configuration for value in values})
    blocks = sorted({value.block for value in values})[1:]
    return np.array(
        [[float(v.configuration == g) for g in configurations] + [float(v.block == b) for b in blocks] for v in values]
    )


def reference(values: Sequence[LaunchValue]) -> tuple[dict[int, float], NDArray[Any], NDArray[Any], int]:
    """Each configuration's difference from the baseline, residuals, leverages and residual df, by numpy's lstsq."""
    x, y = design(values), np.array([value.value for value in values])
    solution, _, rank, _ = np.linalg.lstsq(x, y, rcond=None)
    configurations = sorted({value.configuration for value in values})
    means = dict(zip(configurations, solution[: len(configurations)], strict=True))
    hat = x @ np.linalg.pinv(x)
    return {g: float(m - means[0]) for g, m in means.items()}, y - x @ solution, hat.diagonal(), len(y) - int(rank)
