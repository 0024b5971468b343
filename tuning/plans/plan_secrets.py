"""Secrets in a plan: allowed in `[server.env]` alone, of which the values are kept nowhere."""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from engine.text import HIDDEN, redact, redact_env, redact_flags
from tuning.plans.plan_check import Mistakes
from tuning.plans.toml_lines import KeyPath

ADVICE = "holds a key or password, and a plan is kept: put it into [server.env], or into llmtune's own environment"


def refuse_secrets(data: Mapping[str, Any], mistakes: Mistakes) -> None:
    """Note every text outside `[server.env]` that is, or holds, a secret."""
    for path, shown in _secrets(data, ()):
        mistakes.add(path, f"{shown}: {ADVICE}")


def holds_secret(settings: Mapping[str, Any]) -> bool:
    """Whether a flag's value is a secret by the flag's name or by its own form."""
    return redact_flags(settings) != dict(settings)


def hidden_text(text: str, env: Mapping[str, str]) -> str | None:
    """A plan's text with the secrets of its `[server.env]`, whose real values are `env`, and those in its comments
    hidden; None where the text cannot be changed so without becoming another plan."""
    kept = redact_env(env)
    hidden = text
    for name, value in env.items():
        if kept[name] != value:
            hidden = hidden.replace(value, HIDDEN if kept[name] == HIDDEN else kept[name])
    lines = (line.partition("#") for line in hidden.split("\n"))
    hidden = "\n".join(f"{before}{mark}{redact(comment)}" for before, mark, comment in lines)
    try:
        wanted, got = tomllib.loads(text), tomllib.loads(hidden)
    except tomllib.TOMLDecodeError:
        return None
    server = wanted.get("server")
    if isinstance(server, dict) and isinstance(server.get("env"), dict):
        server["env"] = {
            name: value if kept.get(name) == env.get(name) else kept[name] for name, value in server["env"].items()
        }
    return hidden if got == wanted else None


def _secrets(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Where secrets stand, each with the name of the key that holds it."""
    if path == ("server", "env"):
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _secrets(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _secrets(inner, (*path, index))
    elif isinstance(value, str):
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
        if holds_secret({name: value}):
            yield path, name if name.isprintable() else ascii(name)
