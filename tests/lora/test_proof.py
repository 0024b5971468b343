"""The proof that an adapter is in effect, on a server whose answers are known."""

import itertools
import math
import random
from collections.abc import Sequence

import pytest

from lora.records import LoraError
from lora.served.proof import AnswerTokens, Proof, prove, spread
from lora.served.server_api import NoRuntimeLoading, NotLoaded, ServerApi
from tests.lora.scripted_server import LogProb, ScriptedServer

OWN = [AnswerTokens(tuple(range(n, n + 10)), (5, 6, 7, 8, 9)) for n in range(8)]


def base(before: tuple[int, ...], token: int) -> float:
    return -2.0 - (token % 5) / 10


def asked(adapter: LogProb, own: Sequence[AnswerTokens] = OWN, base_says: LogProb = base) -> Proof:
    server = ScriptedServer({"base": base_says, "a": adapter}, {"a": "/a"})
    with ServerApi("http://server", transport=server.transport()) as api:
        return prove(api, "base", "a", own)


def test_an_adapter_that_finds_its_answers_likelier_is_proved() -> None:
    proof = asked(lambda before, token: base(before, token) + 1.0 + (token % 3) / 10)
    assert (proof.state, proof.in_effect, proof.tokens, proof.noise) == ("proved", True, 40, 0.0)
    assert proof.paired is not None
    assert proof.paired.base - proof.paired.adapter == pytest.approx(proof.change)


def test_one_that_changes_nothing_is_not_in_effect() -> None:
    assert asked(base).state == "nothing"
    assert not asked(base).in_effect
    assert asked(base, ()).state == "nothing"


def test_one_that_finds_them_less_likely_is_not_as_trained() -> None:
    proof = asked(lambda before, token: base(before, token) - 0.5)
    assert (proof.state, proof.in_effect) == ("wrong_direction", False)


def test_what_differs_in_no_direction_is_not_proved() -> None:
    proof = asked(lambda before, token: base(before, token) + (1 if before[0] % 2 else -1))
    assert (proof.state, proof.in_effect) == ("undecided", False)


def test_without_own_answers_only_that_it_differs_is_shown() -> None:
    proof = asked(lambda before, token: base(before, token) - 0.5, ())
    assert (proof.state, proof.in_effect, proof.paired) == ("differs", True, None)
    assert proof.tokens > 20


def test_a_change_within_the_noise_of_the_server_is_nothing() -> None:
    draw = random.Random(3)
    proof = asked(base, base_says=lambda before, token: base(before, token) + draw.gauss(0, 0.02))
    assert proof.noise > 0.005
    assert proof.state == "nothing"


def test_rounding_that_leans_one_way_by_chance_proves_nothing() -> None:
    """With LoRA other kernels may run, which round otherwise: each token differs, some records by luck all one way."""
    seen = set()

    def noisy(before: tuple[int, ...], token: int) -> float:
        again = before in seen
        seen.add(before)
        return base(before, token) + (0.05 if again else 0.0)

    def leaning(before: tuple[int, ...], token: int) -> float:
        return base(before, token) + (0.24 if token % 2 else -0.12)

    proof = asked(leaning, base_says=noisy)
    assert proof.change > 2 * proof.noise
    assert proof.paired is not None
    assert proof.paired.direction == "better"
    assert proof.state == "undecided"


def test_each_token_is_asked_for_by_having_it_generated_never_of_a_prompt() -> None:
    """With an adapter prompt_logprobs are wrong, or end the engine: vLLM issues 16668, 29955, 51594."""
    server = ScriptedServer({"base": base, "a": base}, {"a": "/a"})
    with ServerApi("http://server", transport=server.transport()) as api:
        prove(api, "base", "a", OWN[:1])
    assert {body["model"] for _, body in server.asked} == {"base", "a"}
    for path, body in server.asked:
        assert path == "/v1/completions"
        assert not body.keys() & {"prompt_logprobs", "echo"}
        assert (body["max_tokens"], len(body["allowed_token_ids"])) == (1, 1)
        assert body["prompt"] == list(OWN[0].ids[: len(body["prompt"])])
        assert body["allowed_token_ids"] == [OWN[0].ids[len(body["prompt"])]]


@pytest.mark.parametrize(
    ("server", "says"),
    [
        (ScriptedServer({"base": base, "a": base}, {"a": "/a"}, forces=False), "does not generate the tokens"),
        (ScriptedServer({"base": lambda *_: 0.0, "a": lambda *_: 0.0}, {"a": "/a"}), "--logprobs-mode"),
        (ScriptedServer({"base": base, "a": lambda *_: math.nan}, {"a": "/a"}), "are no numbers"),
        (ScriptedServer({"base": base}), "answers /v1/completions with 404: The model `a` does not exist."),
    ],
)
def test_a_server_of_which_nothing_can_be_proved(server: ScriptedServer, says: str) -> None:
    with ServerApi("http://server", transport=server.transport()) as api, pytest.raises(LoraError, match=says):
        prove(api, "base", "a", OWN)


def test_many_tokens_are_spread_over_the_answer() -> None:
    assert spread(range(5)) == [1, 2, 3, 4]
    found = spread(range(10, 110), 12)
    assert (len(found), found[0], found[-1]) == (12, 10, 109)
    assert max(b - a for a, b in itertools.pairwise(found)) <= 10


def test_loading_and_replacing() -> None:
    server = ScriptedServer({}, {"a": "/1"})
    with ServerApi("http://server", transport=server.transport()) as api:
        api.load("a", "/2", in_place=True)
        assert [(each.name, each.root, each.parent) for each in api.models()] == [
            ("base", "/models/base", None),
            ("a", "/2", "base"),
        ]
        with pytest.raises(NotLoaded, match="vLLM does not load it: The lora adapter 'a' has already been loaded"):
            api.load("a", "/3")
        with pytest.raises(NotLoaded, match="No adapter found for /missing"):
            api.load("b", "/missing")


def test_a_vllm_that_replaces_nothing_in_place_unloads_first() -> None:
    server = ScriptedServer({}, {"a": "/1"}, in_place=False)
    with ServerApi("http://server", transport=server.transport()) as api:
        api.load("a", "/2", in_place=True)
    assert server.adapters == {"a": "/2"}


def test_a_server_that_takes_no_adapter_says_so() -> None:
    server = ScriptedServer({}, runtime=False)
    with ServerApi("http://server", transport=server.transport()) as api, pytest.raises(NoRuntimeLoading) as error:
        api.load("a", "/1")
    assert "VLLM_ALLOW_RUNTIME_LORA_UPDATING" in str(error.value)
