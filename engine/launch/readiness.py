"""Whether a server is ready: the stages that its log tells, and one look at the server itself over HTTP.

A /health that answers 200 proves little: it may be another's server on our port, and vLLM's stays 200 while its engine
hangs. So the socket's owner is looked up, the model's name is asked for, and one real token is generated.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx

from engine.processes.ports import connect_host
from engine.records import LaunchFailed, LogFacts, ServerSpec
from engine.text import clean, redact

_QUICK = httpx.Timeout(5.0)
_FIRST_TOKEN = httpx.Timeout(120.0, connect=5.0)  # the first request may compile kernels
_BROKEN_AFTER = 3  # completions refused in a row
_UNHEALTHY_AFTER_S = 60.0  # of /health answering 5xx: a data-parallel server may do so for a while as it comes up

STAGES = ("spawned", "loading", "weights", "compile", "kv_cache", "graphs", "listening", "ready")


def stages(facts: LogFacts, *, printed: bool) -> Iterator[str]:
    """The stages that a log has reached, in the order of STAGES; `printed` is whether vLLM has written anything."""
    yield "spawned"
    reached = {
        "loading": printed,
        "weights": facts.weights_gib is not None or facts.load_s is not None,
        "compile": facts.compile_s is not None,
        "kv_cache": facts.kv_cache_tokens is not None,
        "graphs": facts.graph_capture_s is not None,
        "listening": facts.listening,
    }
    yield from (stage for stage in STAGES if reached.get(stage))


def base_url(spec: ServerSpec) -> str:
    """Where the server answers, as seen from this machine: `http://127.0.0.1:8000`."""
    return f"http://{connect_host(spec.host)}:{spec.port}"


def api_key(spec: ServerSpec, environ: Mapping[str, str]) -> str | None:
    """The key that requests must carry: `--api-key` (the first of several), else VLLM_API_KEY."""
    value = spec.flags.get("api-key", spec.flags.get("api_key"))
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    if value is None:
        for at, argument in enumerate(spec.extra_args):
            name, equals, rest = argument.partition("=")
            if name == "--api-key":
                value = rest if equals else next(iter(spec.extra_args[at + 1 :]), None)
    return str(value) if value else spec.env.get("VLLM_API_KEY") or environ.get("VLLM_API_KEY") or None


class ReadyProbe:
    """Asks one server, step by step, whether it serves its model. A context manager; `transport` is for tests."""

    def __init__(
        self,
        url: str,
        served: str,
        key: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._served = served
        self._refused = 0
        self._clock = clock
        self._unhealthy_since: float | None = None
        # trust_env off: a proxy of the environment must not come between us and loopback
        self._client = httpx.AsyncClient(
            base_url=url, headers=headers, timeout=_QUICK, trust_env=False, transport=transport
        )

    async def __aenter__(self) -> "ReadyProbe":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._client.aclose()

    async def ready(self) -> bool:
        """Whether it is healthy, lists the served name and has generated one token. False if that may still come.

        Raises LaunchFailed where it will not: another model, a refused key, an engine that refuses every completion, a
        /health that stays broken.
        """
        try:
            if not self._healthy((await self._client.get("/health")).status_code):
                return False
            models = await self._client.get("/v1/models")
            if models.status_code in (401, 403):
                raise LaunchFailed("the server refuses our API key: check --api-key and VLLM_API_KEY", "health_broken")
            if models.status_code != 200:
                return False
            self._check_name(models.json())
            return await self._completes()
        except (httpx.HTTPError, ValueError):
            return False  # it does not listen yet, or died in mid-answer: the process is looked at next

    def _healthy(self, status: int) -> bool:
        if status < 500:
            self._unhealthy_since = None
            return status == 200
        if self._unhealthy_since is None:
            self._unhealthy_since = self._clock()
        broken_s = self._clock() - self._unhealthy_since
        if broken_s >= _UNHEALTHY_AFTER_S:
            raise LaunchFailed(
                f"/health has answered {status} for {broken_s:.0f} s: the engine behind it is gone; start it again",
                "health_broken",
                numbers={"status": status, "answered_s": round(broken_s)},
            )
        return False

    def _check_name(self, answer: Any) -> None:
        entries = answer.get("data") if isinstance(answer, dict) else None
        names = [str(entry.get("id")) for entry in entries or [] if isinstance(entry, dict)]
        if self._served not in names:
            listed = clean(", ".join(names) or "nothing", 200)
            raise LaunchFailed(f"the server lists {listed}, not {self._served}: check --served-model-name", "unknown")

    async def _completes(self) -> bool:
        request = {"model": self._served, "prompt": "Hello", "max_tokens": 1, "temperature": 0}
        answer = await self._client.post("/v1/completions", json=request, timeout=_FIRST_TOKEN)
        if answer.status_code == 404:
            return True  # an embedding or scoring model has no such route; its name was listed
        if answer.status_code == 200 and answer.json().get("choices"):
            return True
        self._refused += 1
        if self._refused >= _BROKEN_AFTER:
            said = clean(redact(answer.text), 200)
            raise LaunchFailed(
                f"/health is 200 but the server answers a completion with {answer.status_code}: {said}",
                "health_broken",
            )
        return False
