"""What the noise of an A/A session lets a session of the same plan see, and what that costs."""

import math
from dataclasses import replace

from tuning.counting import counted
from tuning.document import Heading, Paragraph, Part, Table
from tuning.figures import ABSENT, duration_text, size_percent
from tuning.judgement.certainty import BLOCKS, expected_noise, known_noise, price_of
from tuning.plans.grid import candidates
from tuning.records import Candidate
from tuning.reporting.material import Material
from tuning.verdict.outlook import Price

_USUAL = 12  # candidates, where the plan has no grid


def outlook_parts(material: Material) -> list[Part]:
    """For each number of blocks the smallest effect that is found, with launches, time and money; [] where the session
    is no A/A session or found no noise."""
    judgement, result = material.judgement, material.result
    if judgement is None or not judgement.deciding.calibration or not result.launches_done:
        return []
    known = known_noise(result.session_id, material.plan, judgement)
    if known is None:
        return []
    plan = replace(material.plan, calibrate=False)
    points = candidates(plan)[0][1:] or [Candidate(index, f"{index}", {}) for index in range(1, _USUAL + 1)]
    noise = expected_noise(plan, [known])
    seconds = result.seconds_used / result.launches_done
    rows = tuple(_row(price_of(plan, points, noise, seconds, blocks)) for blocks in BLOCKS)
    header = ("blocks", "finds an effect of", "launches", "at most", "time", "at most", "cost", "at most")
    told = (
        f"For {counted(len(points), 'candidate')} with this noise, {duration_text(seconds)} a launch: the effect that "
        "is found in four of five sessions; first what is to be expected if nothing differs, then the most that it "
        "can come to."
    )
    numbers = frozenset(range(1, len(header)))
    return [
        Heading("What a session would see"),
        Paragraph(told),
        Table(header, rows, numbers, "The price of certainty"),
    ]


def _row(price: Price) -> tuple[str, ...]:
    found = size_percent(price.smallest_effect)
    times = (duration_text(3600 * hours) for hours in (price.hours_expected, price.hours_at_most))
    money = (ABSENT if each is None else f"${each:,.2f}" for each in (price.money_expected, price.money_at_most))
    launches = (f"{math.ceil(price.launches_expected - 0.5)}", f"{price.launches_at_most}")
    (expected, most), (time, longest), (cost, dearest) = launches, times, money
    return f"{price.blocks}", found, expected, most, time, longest, cost, dearest
