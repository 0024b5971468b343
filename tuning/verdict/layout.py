"""Least squares of an additive model, configuration + block, on any connected layout of launches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tuning.verdict.records import BASELINE, LaunchValue

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Comparable:
    """The launches that can be compared with the baseline, and those that cannot."""

    kept: tuple[LaunchValue, ...]
    dropped: tuple[LaunchValue, ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """y = μ_g + β_b + error, with Σβ = 0, for the launches of `values` in their order.

    `configurations` (m of them, ascending) and `blocks` (n) name the rows and columns of `share` (P, m × n: the share
    of a configuration's launches that lie in a block), `launches` (N_g, m), `means` (μ, m), `effects` (β, n) and
    `inverse` (M⁻¹, n × n); `row`, `column`, `residuals` and `leverages` belong to the launches. `df` = N − n − m + 1.
    """

    values: tuple[LaunchValue, ...]
    configurations: tuple[int, ...]
    blocks: tuple[int, ...]
    row: "NDArray[Any]"
    column: "NDArray[Any]"
    launches: "NDArray[Any]"
    share: "NDArray[Any]"
    inverse: "NDArray[Any]"
    means: "NDArray[Any]"
    effects: "NDArray[Any]"
    residuals: "NDArray[Any]"
    leverages: "NDArray[Any]"

    @property
    def df(self) -> int:
        return len(self.values) - len(self.blocks) - len(self.configurations) + 1

    def by_configuration(self, of_launches: "NDArray[Any]") -> "NDArray[Any]":
        """Sums over each configuration's launches, in the order of `configurations`."""
        import numpy as np

        return np.bincount(self.row, of_launches, len(self.configurations))

    def residuals_of(self, y: "NDArray[Any]") -> "NDArray[Any]":
        """What this layout's configurations and blocks leave of any other value of each launch."""
        means, effects = self._solve(y)
        return y - means[self.row] - effects[self.column]  # type: ignore[no-any-return]

    def _solve(self, y: "NDArray[Any]") -> "tuple[NDArray[Any], NDArray[Any]]":
        return _solve(y, self.row, self.column, self.launches, self.share, self.inverse)


def comparable(values: Sequence[LaunchValue]) -> Comparable:
    """Leave out the blocks without a launch of the baseline, which compare nothing with it."""
    with_baseline = {value.block for value in values if value.configuration == BASELINE}
    return Comparable(
        tuple(value for value in values if value.block in with_baseline),
        tuple(value for value in values if value.block not in with_baseline),
    )


def connected(values: Sequence[LaunchValue]) -> Comparable:
    """Leave out what no chain of shared blocks links to the baseline; there least squares has no answer."""
    blocks: set[int] = set()
    known = {BASELINE}
    while True:
        more = {value.block for value in values if value.configuration in known}
        if more == blocks:
            break
        blocks = more
        known |= {value.configuration for value in values if value.block in blocks}
    return Comparable(
        tuple(value for value in values if value.block in blocks),
        tuple(value for value in values if value.block not in blocks),
    )


def fit(values: Sequence[LaunchValue]) -> Fit:
    """Ordinary least squares; `values` must be connected (`numpy.linalg.LinAlgError` or nonsense where they are not).

    With w_gb launches of g in b, N_g = Σ_b w_gb, P_gb = w_gb/N_g and B_b the sum of block b:
    M = diag(N_b) − Σ_g w_g w_g'/N_g + 1 1' (the ones fix Σβ = 0), β = M⁻¹(B − Σ_g w_g ȳ_g), μ_g = ȳ_g − P_g'β, and
    leverage h_gb = 1/N_g + (u_b − P_g)'M⁻¹(u_b − P_g). The normal equations of an incomplete block design, with the
    configurations eliminated; where j and the baseline are in all blocks, μ_j − μ_0 is the difference of their means.
    """
    import numpy as np

    configurations = tuple(sorted({value.configuration for value in values}))
    blocks = tuple(sorted({value.block for value in values}))
    place = {configuration: row for row, configuration in enumerate(configurations)}
    slot = {block: column for column, block in enumerate(blocks)}
    row = np.array([place[value.configuration] for value in values])
    column = np.array([slot[value.block] for value in values])
    y = np.array([value.value for value in values], dtype=float)

    shape = len(configurations), len(blocks)
    counts = np.bincount(row * shape[1] + column, minlength=shape[0] * shape[1]).reshape(shape).astype(float)
    launches = counts.sum(axis=1)
    share = counts / launches[:, None]
    inverse = normal_inverse(counts)

    means, effects = _solve(y, row, column, launches, share, inverse)
    offset = np.eye(shape[1])[column] - share[row]
    leverages = 1 / launches[row] + ((offset @ inverse) * offset).sum(axis=1)
    residuals = y - means[row] - effects[column]
    return Fit(
        tuple(values),
        configurations,
        blocks,
        row,
        column,
        launches,
        share,
        inverse,
        means,
        effects,
        residuals,
        leverages,
    )


def normal_inverse(counts: "NDArray[Any]") -> "NDArray[Any]":
    """M⁻¹ of `fit` for the launches of each configuration (rows) in each block (columns)."""
    import numpy as np

    share = counts / counts.sum(axis=1, keepdims=True)
    inverse: NDArray[Any] = np.linalg.inv(np.diag(counts.sum(axis=0)) - counts.T @ share + 1.0)
    return inverse


def _solve(
    y: "NDArray[Any]",
    row: "NDArray[Any]",
    column: "NDArray[Any]",
    launches: "NDArray[Any]",
    share: "NDArray[Any]",
    inverse: "NDArray[Any]",
) -> "tuple[NDArray[Any], NDArray[Any]]":
    import numpy as np

    averages = np.bincount(row, y, len(launches)) / launches
    sums = np.bincount(column, y, inverse.shape[0])
    # counts.T @ averages, since counts = share · launches
    effects = inverse @ (sums - share.T @ (launches * averages))
    return averages - share @ effects, effects
