"""What tokens cost, from the price of the machine and the throughput of a server under its load."""

from dataclasses import dataclass

from tuning.records import Summary
from tuning.scheduling.budget import SECONDS_PER_HOUR

MILLION = 1e6


@dataclass(frozen=True, slots=True)
class Cost:
    """Per million tokens, in the unit of the price; the bounds are those of the throughput's interval, None without."""

    mean: float
    low: float | None
    high: float | None


def cost_per_million(price_per_hour: float, tok_per_s: Summary | None) -> Cost | None:
    """price / (3600 · tok/s) · 10⁶, the price taken as exact. A price of 1 gives machine hours per million tokens.

    None without a throughput above zero. The more throughput, the less cost, so the bounds change places.
    """
    if tok_per_s is None or tok_per_s.mean is None or tok_per_s.mean <= 0:
        return None
    mean = _cost(price_per_hour, tok_per_s.mean)
    if tok_per_s.low is None or tok_per_s.high is None or tok_per_s.low <= 0:
        return Cost(mean, None, None)
    return Cost(mean, _cost(price_per_hour, tok_per_s.high), _cost(price_per_hour, tok_per_s.low))


def _cost(price_per_hour: float, tok_per_s: float) -> float:
    return price_per_hour / SECONDS_PER_HOUR / tok_per_s * MILLION
