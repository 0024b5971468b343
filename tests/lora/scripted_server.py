"""A vLLM that answers from a script, as a transport of httpx: its models, and how likely each finds a token."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

LogProb = Callable[[tuple[int, ...], int], float]


@dataclass
class ScriptedServer:
    """`says` gives the log-probability of a token after others, by model. `runtime` is whether it loads adapters,
    `in_place` whether it knows that word; `forces` whether it generates what it is told to."""

    says: dict[str, LogProb]
    adapters: dict[str, str] = field(default_factory=dict)
    base: str = "base"
    runtime: bool = True
    in_place: bool = True
    forces: bool = True
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else {}
        path = request.url.path
        self.asked.append((path, body))
        if path == "/v1/models":
            return httpx.Response(200, json={"data": self._models()})
        if path == "/tokenize":
            return httpx.Response(200, json={"tokens": [len(word) for word in body["prompt"].split()]})
        if path == "/v1/completions":
            return self._completion(body)
        if not self.runtime:
            return httpx.Response(404, json={"detail": "Not Found"})
        return self._unload(body) if path == "/v1/unload_lora_adapter" else self._load(body)

    def _models(self) -> list[dict[str, Any]]:
        entries = [{"id": self.base, "root": "/models/base", "parent": None, "max_model_len": 64}]
        return entries + [{"id": name, "root": root, "parent": self.base} for name, root in self.adapters.items()]

    def _load(self, body: dict[str, Any]) -> httpx.Response:
        name, folder = body["lora_name"], body["lora_path"]
        if "missing" in folder:
            return _error(404, f"Loading lora {name} failed: No adapter found for {folder}")
        if name in self.adapters and not (body.get("load_inplace") and self.in_place):
            return _error(400, f"The lora adapter '{name}' has already been loaded.")
        self.adapters[name] = folder
        return httpx.Response(200, text="Success")

    def _unload(self, body: dict[str, Any]) -> httpx.Response:
        if self.adapters.pop(body["lora_name"], None) is None:
            return _error(404, "The lora adapter cannot be found.")
        return httpx.Response(200, text="Success")

    def _completion(self, body: dict[str, Any]) -> httpx.Response:
        model = body["model"]
        if model != self.base and model not in self.adapters:
            return _error(404, f"The model `{model}` does not exist.")
        if "allowed_token_ids" not in body:
            return httpx.Response(200, json={"choices": [{"index": 0, "text": "x"}]})
        (token,) = body["allowed_token_ids"]
        value = self.says[model](tuple(body["prompt"]), token)
        told = token if self.forces else token + 1
        logprobs = {"token_logprobs": [value], "tokens": [f"token_id:{told}"]}
        return httpx.Response(200, content=json.dumps({"choices": [{"index": 0, "logprobs": logprobs}]}))


def _error(status: int, message: str) -> httpx.Response:
    return httpx.Response(status, json={"error": {"message": message, "type": "x", "code": status}})
