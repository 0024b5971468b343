"""Secrets on their way to a server: in a keeper's memory and the server's environment, never in the database.

What is kept and shown of an environment is redacted. The real values go to the keeper in one variable of its own
environment, which it removes before it starts anything.
"""

import json
from collections.abc import Mapping, MutableMapping
from typing import Any

from engine.records import EngineError
from engine.text import HIDDEN, redact_env

VARIABLE = "LLMTUNE_SECRET_ENV"


def pass_secrets(environ: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """`environ` with those values of `env` that redaction hides, for a keeper about to be started."""
    hidden = secret_part(env)
    return {**environ, VARIABLE: json.dumps(hidden)} if hidden else dict(environ)


def secret_part(env: Mapping[str, str]) -> dict[str, str]:
    shown = redact_env(dict(env))
    return {key: value for key, value in env.items() if shown[key] != value}


def take_secrets(environ: MutableMapping[str, str]) -> dict[str, str]:
    """What `pass_secrets` put there, taken out of `environ`."""
    found: dict[str, str] = json.loads(environ.pop(VARIABLE, "{}"))
    return found


def restore_secrets(kept: Mapping[str, str], secrets: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The real environment from its redacted form: values passed on, else those of our own environment by that name.

    Raises EngineError naming a variable whose value is not to be had any more.
    """
    real = {}
    for key, value in kept.items():
        if HIDDEN not in value:
            real[key] = value
        elif key in secrets or key in environ:
            real[key] = secrets.get(key, environ.get(key, ""))
        else:
            raise EngineError(f"the value of {key} was not kept, as it is a secret: export {key}=… and start again")
    return real


def secret_flags_to_env(flags: Mapping[str, Any], env: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Flags and environment with a server's key moved from `--api-key` to VLLM_API_KEY, which vLLM reads alike.

    On the command line it would stand in the process list and in every row that keeps the flags.
    """
    kept = {name: value for name, value in flags.items() if name != "api-key"}
    if len(kept) == len(flags):
        return dict(flags), dict(env)
    key = flags["api-key"]
    return kept, {**env, "VLLM_API_KEY": str(key[0] if isinstance(key, list) else key)}
