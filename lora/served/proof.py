"""Whether an adapter on a server is in effect: what the server itself says of the adapter's own answers.

The base and the adapter are asked, by the same route, how likely tokens of answers are that its training never
saw. The adapter must find them likelier than the base does. Some are asked of the base twice: what differs between two
askings of the same is the server's own noise.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from lora.evaluations.paired_loss import Paired, RecordLoss, paired
from lora.records import LoraError
from lora.served.server_api import ServerApi

State = Literal["proved", "differs", "undecided", "wrong_direction", "nothing"]
"""`proved`: likelier, beyond chance. `differs`: from its base; of texts that are not its own, in no direction.
`undecided`: differs, but on these records in no direction for sure."""

AT_ONCE = 16  # requests
MOST_TOKENS = 12
"""Of one answer, spread over it: a request each, of one token."""
LEAST_CHANGE = 1e-4
"""Nats a token. An idle adapter adds exact zeros; one that learnt anything changes 0.01 and more."""
OF_NOISE = 2.0
"""So many times the server's own noise is still noise."""
ASKED_AGAIN = 4  # one record in so many

TEXTS = (
    "The capital of France is Paris, and the capital of Italy is Rome.",
    "Water boils at one hundred degrees Celsius at sea level.",
    "def add(a, b):\n    return a + b\n",
    "Thank you for your message. I will look into it and come back to you tomorrow.",
)
"""For an adapter whose data is not here."""


@dataclass(frozen=True, slots=True)
class AnswerTokens:
    """A conversation as a server gets it, and the places of the tokens of its answers."""

    ids: tuple[int, ...]
    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """`change` is the mean of |log p(adapter) - log p(base)| over the tokens, `noise` the same of the base asked twice.
    `paired` holds the losses on the answers; None where the texts are not its own."""

    state: State
    change: float
    noise: float
    paired: Paired | None
    tokens: int

    @property
    def in_effect(self) -> bool:
        return self.state in ("proved", "differs")


def prove(api: ServerApi, base: str, adapter: str, own: Sequence[AnswerTokens]) -> Proof:
    """Ask the server at `api` about its models `base` and `adapter`; without `own` answers, of fixed texts. Raises
    LoraError where the server does not answer."""
    asked = own or [_all_of(api.token_ids(base, text)) for text in TEXTS]
    again = asked[::ASKED_AGAIN]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        said = [_ask(api, pool, model, of) for model, of in ((base, asked), (adapter, asked), (base, again))]
    return judged(said[0], said[1], said[2], own=bool(own))


def _ask(api: ServerApi, pool: ThreadPoolExecutor, model: str, asked: Sequence[AnswerTokens]) -> list[list[float]]:
    waiting = [
        [pool.submit(api.log_prob, model, each.ids[:place], each.ids[place]) for place in spread(each.answers)]
        for each in asked
    ]
    return [[one.result() for one in record] for record in waiting]


def spread(places: Sequence[int], most: int = MOST_TOKENS) -> list[int]:
    """At most so many of them, evenly, the first and the last among them; a first token has none before it."""
    usable = [place for place in places if place > 0]
    if len(usable) <= most:
        return usable
    return [usable[round(index * (len(usable) - 1) / (most - 1))] for index in range(most)]


def _all_of(ids: tuple[int, ...]) -> AnswerTokens:
    return AnswerTokens(ids, tuple(range(len(ids))))


def judged(
    base: Sequence[Sequence[float]], adapter: Sequence[Sequence[float]], again: Sequence[Sequence[float]], own: bool
) -> Proof:
    """The log-probabilities of each record's tokens by the base, the adapter, and the base once more for one record in
    ASKED_AGAIN. Raises LoraError where they say nothing."""
    if not any(base):
        raise LoraError("there is no answer to ask the server about: nothing is proved")
    if not any(value for record in base for value in record):
        raise LoraError(
            "the server gives log-probabilities after its own choice, which are all 0: nothing is proved; start it "
            "without --logprobs-mode"
        )
    if not all(math.isfinite(value) for record in adapter for value in record):
        raise LoraError("the adapter's log-probabilities are no numbers: it holds NaN, or it overflows in this dtype")
    change, noise = _distance(base, adapter), _distance(base[::ASKED_AGAIN], again)
    losses = [
        RecordLoss(index, len(one), -math.fsum(one), -math.fsum(other))
        for index, (one, other) in enumerate(zip(base, adapter, strict=True))
        if one
    ]
    found = paired(losses) if own else None
    return Proof(_state(change, noise, found), change, noise, found, sum(map(len, base)))


def _state(change: float, noise: float, found: Paired | None) -> State:
    least = max(LEAST_CHANGE, OF_NOISE * noise)
    if change <= least:
        return "nothing"
    if found is None:
        return "differs"
    if abs(found.difference) <= least:  # kernels that round otherwise differ in each token, and in no direction
        return "undecided"
    states: dict[str, State] = {"better": "proved", "worse": "wrong_direction", "undecided": "undecided"}
    return states[found.direction]


def _distance(one: Sequence[Sequence[float]], other: Sequence[Sequence[float]]) -> float:
    gaps = [abs(b - a) for first, second in zip(one, other, strict=True) for a, b in zip(first, second, strict=True)]
    return math.fsum(gaps) / len(gaps) if gaps else 0.0
