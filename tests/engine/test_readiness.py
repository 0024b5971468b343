from collections.abc import Callable

import httpx
import pytest

from engine.launch.readiness import ReadyProbe, api_key, stages
from engine.records import LaunchFailed, LogFacts, ServerSpec


def probe(answer: Callable[[httpx.Request], httpx.Response], key: str | None = None) -> ReadyProbe:
    return ReadyProbe("http://127.0.0.1:1", "m", key, httpx.MockTransport(answer))


def server(request: httpx.Request) -> httpx.Response:
    if request.url.path == "/v1/models":
        return httpx.Response(200, json={"data": [{"id": "m"}]})
    if request.url.path == "/v1/completions":
        return httpx.Response(200, json={"choices": [{"text": "!"}]})
    return httpx.Response(200)


def but(path: str, response: httpx.Response) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: response if request.url.path == path else server(request)


async def test_ready_is_a_generated_token() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        assert request.headers["authorization"] == "Bearer k"
        return server(request)

    async with probe(answer, "k") as looking:
        assert await looking.ready()
    assert asked == ["/health", "/v1/models", "/v1/completions"]


@pytest.mark.parametrize(
    "answer",
    [
        but("/health", httpx.Response(503)),
        but("/v1/models", httpx.Response(500)),
        but("/v1/models", httpx.Response(200, text="no json")),
        but("/v1/completions", httpx.Response(200, json={"choices": []})),
    ],
)
async def test_not_ready_yet(answer: Callable[[httpx.Request], httpx.Response]) -> None:
    async with probe(answer) as looking:
        assert not await looking.ready()


async def test_a_server_of_another_model_or_with_another_key_never_becomes_ready() -> None:
    for answer, why in [
        (but("/v1/models", httpx.Response(200, json={"data": [{"id": "other"}]})), "lists other, not m"),
        (but("/v1/models", httpx.Response(401)), "API key"),
    ]:
        async with probe(answer) as looking:
            with pytest.raises(LaunchFailed, match=why):
                await looking.ready()


async def test_health_without_tokens_is_broken_not_ready() -> None:
    async with probe(but("/v1/completions", httpx.Response(500, text="EngineDeadError"))) as looking:
        assert not await looking.ready()
        assert not await looking.ready()
        with pytest.raises(LaunchFailed, match="EngineDeadError") as failure:
            await looking.ready()
    assert failure.value.failure_class == "health_broken"


async def test_a_health_that_stays_broken_is_given_up_and_one_that_recovers_is_not() -> None:
    statuses = iter([500, 503, 500, 404, 500, 500, 500])
    times = iter([0, 0, 30, 30 + 1, 40, 40, 99, 101])

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(next(statuses))

    looking = ReadyProbe("http://127.0.0.1:1", "m", None, httpx.MockTransport(answer), lambda: float(next(times)))
    async with looking:
        for _ in range(6):  # broken from 0 to 31, another answer, broken from 40 on
            assert not await looking.ready()
        with pytest.raises(LaunchFailed, match="/health has answered 500 for 61 s") as failure:
            await looking.ready()
    assert failure.value.failure_class == "health_broken"
    assert failure.value.numbers == {"status": 500, "answered_s": 61}


async def test_no_connection_is_not_ready() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    async with probe(refuse) as looking:
        assert not await looking.ready()


def test_stages_come_in_order_and_those_without_a_line_are_left_out() -> None:
    assert list(stages(LogFacts(), printed=False)) == ["spawned"]
    facts = LogFacts(weights_gib=1.0, kv_cache_tokens=9, listening=True)
    assert list(stages(facts, printed=True)) == ["spawned", "loading", "weights", "kv_cache", "listening"]


def test_the_key_is_taken_from_flag_argument_or_environment() -> None:
    def spec(**parts: object) -> ServerSpec:
        return ServerSpec("m", "h", 1, **parts)  # type: ignore[arg-type]

    assert api_key(spec(flags={"api-key": ["a", "b"]}), {}) == "a"
    assert api_key(spec(extra_args=("--api-key", "c")), {}) == "c"
    assert api_key(spec(env={"VLLM_API_KEY": "d"}), {"VLLM_API_KEY": "e"}) == "d"
    assert api_key(spec(), {}) is None
