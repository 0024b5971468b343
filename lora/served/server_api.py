"""What is asked of a running vLLM about its adapters, by the routes of its OpenAI-compatible server.

/v1/load_lora_adapter is there only where the server has VLLM_ALLOW_RUNTIME_LORA_UPDATING (vllm/entrypoints/serve/lora).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx

from engine.text import clean, redact
from lora.records import LoraError

_CONNECT_S = 5.0
_ASK_S = 300.0


class NoRuntimeLoading(LoraError):
    """The server takes no adapter while it runs."""


class NotLoaded(LoraError):
    """The server refused the adapter, in its own words."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """An entry of /v1/models. An adapter has a `parent`, the base; `root` is then the folder it was loaded from."""

    name: str
    root: str | None
    parent: str | None
    max_model_len: int | None


class ServerApi:
    """Asks one server; a context manager. `transport` is for tests. Every method raises LoraError in one line."""

    def __init__(self, url: str, key: str | None = None, transport: httpx.BaseTransport | None = None) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._url = url
        # trust_env off: a proxy of the environment must not come between us and loopback
        self._client = httpx.Client(
            base_url=url,
            headers=headers,
            timeout=httpx.Timeout(_ASK_S, connect=_CONNECT_S),
            trust_env=False,
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def models(self) -> tuple[ServedModel, ...]:
        """The base under its names, and the adapters."""
        answer = self._asked("GET", "/v1/models")
        entries = _object(answer).get("data")
        return tuple(_model(entry) for entry in entries or () if isinstance(entry, dict) and "id" in entry)

    def load(self, name: str, folder: str, *, in_place: bool = False) -> None:
        """Load the adapter in `folder` as `name`; `in_place` puts it where another of that name is.

        Before 0.15 nothing is replaced in place: it is unloaded, then loaded.
        """
        wanted = {"lora_name": name, "lora_path": folder}
        answer = self._send("POST", "/v1/load_lora_adapter", {**wanted, "load_inplace": True} if in_place else wanted)
        if in_place and answer.status_code == 400 and "already been loaded" in answer.text:
            self._loaded(self._send("POST", "/v1/unload_lora_adapter", {"lora_name": name}))
            answer = self._send("POST", "/v1/load_lora_adapter", wanted)
        self._loaded(answer)

    def unload(self, name: str) -> None:
        self._loaded(self._send("POST", "/v1/unload_lora_adapter", {"lora_name": name}))

    def first_token(self, model: str) -> None:
        """One token from `model`, to know that it answers."""
        request = {"model": model, "prompt": "Hello", "max_tokens": 1, "temperature": 0}
        self._asked("POST", "/v1/completions", request)

    def token_ids(self, model: str, text: str) -> tuple[int, ...]:
        """`text` as the server tokenizes it."""
        answer = _object(self._asked("POST", "/tokenize", {"model": model, "prompt": text}))
        return tuple(each for each in answer.get("tokens") or () if type(each) is int)

    def log_prob(self, model: str, before: Sequence[int], token: int) -> float:
        """The log-probability of `token` after the tokens `before`.

        The server is made to generate it (`allowed_token_ids`) and tells its raw log-probability: of a prompt with an
        adapter vLLM tells wrong ones, or dies of it (prompt_logprobs: vLLM issues 16668, 29955, 51594).
        """
        request = {
            "model": model,
            "prompt": list(before),
            "max_tokens": 1,
            "temperature": 0,
            "allowed_token_ids": [token],
            "logprobs": 1,
            "return_tokens_as_token_ids": True,
        }
        answer = _object(self._asked("POST", "/v1/completions", request))
        try:
            said = answer["choices"][0]["logprobs"]
            value, generated = said["token_logprobs"][0], said["tokens"][0]
        except (KeyError, IndexError, TypeError):
            raise LoraError(
                "the server gives no log-probabilities: nothing can be proved of an adapter on it"
            ) from None
        if generated != f"token_id:{token}" or not isinstance(value, int | float):
            raise LoraError("the server does not generate the tokens it is told to: nothing can be proved on it")
        return float(value)

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        answer = self._send(method, path, body)
        if answer.status_code in (401, 403):
            raise LoraError(f"the server at {self._url} refuses our API key: export VLLM_API_KEY with its own")
        if answer.status_code != 200:
            raise LoraError(f"the server at {self._url} answers {path} with {answer.status_code}: {_said(answer)}")
        return answer

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        try:
            return self._client.request(method, path, json=body)
        except httpx.HTTPError as error:
            why = clean(str(error), 200) or type(error).__name__
            raise LoraError(f"the server at {self._url} does not answer ({why})") from None

    @staticmethod
    def _loaded(answer: httpx.Response) -> None:
        if answer.status_code == 200:
            return
        said = _said(answer)
        if answer.status_code in (404, 405) and said in ("Not Found", "Method Not Allowed"):
            raise NoRuntimeLoading(
                "the server takes no adapter while it runs: it was started without VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 "
                "or without --enable-lora; start it anew with `llmtune lora serve`"
            )
        raise NotLoaded(f"vLLM does not load it: {said}")


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        raise LoraError("the server's answer is not JSON: is it a vLLM?") from None
    if not isinstance(found, dict):
        raise LoraError("the server's answer is no JSON object: is it a vLLM?")
    return found


def _model(entry: Mapping[str, Any]) -> ServedModel:
    longest = entry.get("max_model_len")
    return ServedModel(
        str(entry["id"]),
        None if entry.get("root") is None else str(entry["root"]),
        None if entry.get("parent") is None else str(entry["parent"]),
        longest if type(longest) is int else None,
    )


def _said(answer: httpx.Response) -> str:
    """vLLM's own message: `{"error": {"message"}}`, before 0.11 `{"message"}`, FastAPI's `{"detail"}`."""
    try:
        found = json.loads(answer.text)
        inner = found.get("error", found) if isinstance(found, dict) else {}
        text = inner.get("message") or inner.get("detail") if isinstance(inner, dict) else inner
    except ValueError:
        text = None
    return clean(redact(str(text or answer.text or f"status {answer.status_code}")), 400)
