"""The price of certainty, before a session starts: what so many blocks see of an effect, and what they cost.

The noise of a launch is that of an earlier session on the same machine, best of one that measured the default against
itself; where there is none it is assumed.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tuning.figures import size_percent
from tuning.judged import Judgement
from tuning.judgement.deciding import deciding_of
from tuning.records import Candidate, Plan, Workload
from tuning.verdict.boundary import FIRST_LOOK, MOST_BLOCKS
from tuning.verdict.outlook import Price, price
from tuning.verdict.records import Rules

BLOCKS = (2, 3, 4, 5, 6)
ASSUMED_SD = 0.01
"""Between launches of one configuration, log scale: most of what was measured on an H200 lay below it."""
CALIBRATION_BLOCKS = 6
"""Of a session that measures the default against itself: five degrees of freedom for its noise."""


@dataclass(frozen=True, slots=True)
class KnownNoise:
    """What an earlier session found: by workload the standard deviation of a launch's value (the mean over its runs,
    log scale). `calibration`: the default was measured against itself."""

    session_id: int
    calibration: bool
    model: str
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    metric: Mapping[str, str] = field(default_factory=dict)
    sd: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpectedNoise:
    """By deciding workload, with the words that say where it is from; `measured` False where it is assumed."""

    sd: Mapping[str, float]
    source: str
    measured: bool = True

    @property
    def largest(self) -> float:
        """Of the noisiest workload."""
        return max(self.sd.values(), default=ASSUMED_SD)


def known_noise(session_id: int, plan: Plan, judgement: Judgement) -> KnownNoise | None:
    """What a session says of the noise; None where it has no two launches of one configuration."""
    sd = {
        name: found.noise.value_sd
        for name, found in judgement.workloads.items()
        if found.noise.value_sd is not None and found.noise.value_sd > 0
    }
    if not sd:
        return None
    return KnownNoise(
        session_id=session_id,
        calibration=judgement.deciding.calibration,
        model=plan.model,
        workloads={each.name: each for each in plan.workloads},
        metric=dict(judgement.deciding.metric),
        sd=sd,
    )


def expected_noise(plan: Plan, known: Sequence[KnownNoise]) -> ExpectedNoise:
    """The noise that a session of `plan` is to expect, from `known`, the newest first.

    Asked in this order: an A/A session of the same model and workloads, any such session, any session of the model,
    any session. A workload that the session did not have gets the largest that it found.
    """
    deciding = deciding_of_plan(plan)
    if not known:
        return ExpectedNoise(dict.fromkeys(deciding, ASSUMED_SD), f"assumed {_percent(ASSUMED_SD)}", measured=False)

    def nearness(one: KnownNoise) -> tuple[bool, bool, bool]:
        return _same(plan, one, deciding), one.model == plan.model, one.calibration

    best = max(known, key=nearness)  # the first of several: the newest
    same, model, _ = nearness(best)
    largest = max(best.sd.values())
    sd = {name: best.sd.get(name, largest) if same else largest for name in deciding}
    kind = "A/A session" if best.calibration else "session"
    other = "" if same else ", of other workloads" if model else ", of another model"
    found = ExpectedNoise(sd, "")
    return replace(found, source=f"{_percent(found.largest)} as in {kind} {best.session_id}{other}")


def deciding_of_plan(plan: Plan) -> dict[str, str]:
    """Workload → deciding metric, without the bars, which take time."""
    metric = plan.decide.metric
    return dict(metric) if isinstance(metric, dict) else {each.name: metric for each in plan.workloads}


def prices(
    plan: Plan,
    candidates: Sequence[Candidate],
    noise: ExpectedNoise,
    seconds_per_launch: float,
    blocks: Sequence[int],
    wanted: Callable[[], bool] = lambda: True,
) -> Iterator[Price]:
    """The price of each number of blocks, one after the other, while `wanted()`: each takes up to a fifth of a second.

    `seconds_per_launch` holds start, warm-ups and runs of all workloads. Of several deciding workloads the least
    sensitive says what is seen, and the slowest to decide how many launches there will be.
    """
    if not any(each.index != 0 for each in candidates):
        return
    for count in blocks:
        if not wanted():
            return
        yield price_of(plan, candidates, noise, seconds_per_launch, count)


def price_of(
    plan: Plan, candidates: Sequence[Candidate], noise: ExpectedNoise, seconds_per_launch: float, blocks: int
) -> Price:
    """The price of one number of blocks; ValueError beyond MOST_BLOCKS."""
    if blocks > MOST_BLOCKS:
        raise ValueError(f"a verdict is worked out for at most {MOST_BLOCKS} blocks")
    decide = replace(plan.decide, blocks=blocks)
    rules: Mapping[str, Rules] = deciding_of(replace(plan, decide=decide), candidates).rules
    found = [
        price(_rounded(noise.sd.get(name, noise.largest)), each, seconds_per_launch, plan.budget.gpu_price_per_hour)
        for name, each in rules.items()
    ]
    longest = max(found, key=lambda one: one.launches_expected)
    seen = [one.smallest_effect for one in found if one.smallest_effect is not None]
    return replace(longest, smallest_effect=max(seen) if len(seen) == len(found) else None)


def choices(blocks: int) -> tuple[int, ...]:
    """The numbers of blocks to choose from, the plan's own among them where it can be priced."""
    own = {blocks} if 1 <= blocks <= MOST_BLOCKS else set()
    return tuple(sorted({*BLOCKS, *own}))


def seconds_of_launch(plan: Plan, seconds_per_launch: float, seconds_per_run: float) -> float:
    """One launch with all its runs, warm-ups too."""
    return seconds_per_launch + seconds_per_run * sum(each.warmup + each.repeats for each in plan.workloads)


def fewest_blocks(found: Sequence[Price], smallest_effect: float) -> int | None:
    """The fewest blocks that find this effect (ratio − 1), None where none of them does."""
    return next(
        (
            one.blocks
            for one in found
            if one.blocks >= FIRST_LOOK and one.smallest_effect is not None and one.smallest_effect <= smallest_effect
        ),
        None,
    )


def _same(plan: Plan, one: KnownNoise, deciding: Mapping[str, str]) -> bool:
    """Whether each deciding workload was measured there, as it is here and by the same metric."""
    here = {each.name: each for each in plan.workloads}
    return one.model == plan.model and all(
        name in one.sd and one.workloads.get(name) == here.get(name) and one.metric.get(name) == metric
        for name, metric in deciding.items()
    )


def _rounded(sd: float) -> float:
    """Two digits: what is worked out once serves for plans that differ in nothing that is seen."""
    return float(f"{min(max(sd, 1e-5), 1.0):.2g}")


def _percent(sd: float) -> str:
    return size_percent(math.expm1(sd))
