"""Secrets on their way to a server: in a keeper's memory and the server's environment, never in the database.

What is kept and shown of a server is redacted. The real values go to the keeper in variables of its own environment,
which it removes before it starts anything.
"""

import json
from collections.abc import Mapping, MutableMapping
from dataclasses import asdict, replace
from typing import Any

from engine.launch.command import flag_name
from engine.records import EngineError, ServerSpec
from engine.text import HIDDEN, redact, redact_argv, redact_env, redact_flags

VARIABLE = "LLMTUNE_SECRET_ENV"
SPEC_VARIABLE = "LLMTUNE_SECRET_SPEC"

# Flags of `vllm serve` whose value it also reads from a variable.
_MOVED = {"api-key": "VLLM_API_KEY", "hf-token": "HF_TOKEN"}


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
            raise EngineError(f"{key} is a secret and was kept nowhere; export {key} with its value and start again")
    return real


def secrets_to_env(spec: ServerSpec) -> ServerSpec:
    """`spec` with what follows `--api-key` and `--hf-token` moved to VLLM_API_KEY and HF_TOKEN, which vLLM reads alike.

    On the command line they would stand in the process list, and in vLLM's own log, which prints its arguments.
    Raises EngineError for several keys, which one variable cannot hold.
    """
    env = dict(spec.env)
    flags = {}
    for name, value in spec.flags.items():
        variable = _MOVED.get(flag_name(name))
        if variable is None or value is None or isinstance(value, bool):
            flags[name] = value
        else:
            env[variable] = _one(name, value)
    extra, arguments = [], iter(spec.extra_args)
    for argument in arguments:
        name, equals, value = argument.partition("=")
        variable = _MOVED.get(flag_name(name)) if argument.startswith("-") else None
        if variable is None:
            extra.append(argument)
        else:
            env[variable] = value if equals else next(arguments, "")
    return replace(spec, flags=flags, env=env, extra_args=tuple(extra))


def refuse_hidden(spec: ServerSpec) -> None:
    """Raises EngineError where a flag's value is one that was redacted: a command line was copied from what we show."""
    for name, value in {"model": spec.model, **spec.flags, "": list(spec.extra_args)}.items():
        if HIDDEN in json.dumps(value):
            raise EngineError(
                f"--{name or '…'} holds {HIDDEN} where a secret was: its value was kept nowhere, type it anew"
            )


def redacted_spec(spec: ServerSpec) -> dict[str, Any]:
    """A spec as JSON that may be kept: keys, tokens and passwords are `***` wherever they stand."""
    return {
        **asdict(spec),
        "model": redact(spec.model),
        "served_name": None if spec.served_name is None else redact(spec.served_name),
        "flags": redact_flags(spec.flags),
        "env": redact_env(spec.env),
        "extra_args": redact_argv(spec.extra_args),
    }


def pass_spec(environ: Mapping[str, str], spec: ServerSpec) -> dict[str, str]:
    """`environ` with all of `spec` where redaction hides anything of it, for a keeper about to be started."""
    real = {**asdict(spec), "extra_args": list(spec.extra_args)}
    return dict(environ) if real == redacted_spec(spec) else {**environ, SPEC_VARIABLE: json.dumps(real)}


def take_spec(environ: MutableMapping[str, str]) -> dict[str, Any] | None:
    """What `pass_spec` put there, taken out of `environ`; None if nothing had to be hidden."""
    text = environ.pop(SPEC_VARIABLE, None)
    found: dict[str, Any] | None = None if text is None else json.loads(text)
    return found


def _one(name: str, value: Any) -> str:
    if not isinstance(value, list | tuple):
        return str(value)
    if len(value) != 1:
        raise EngineError(f"--{flag_name(name)} has {len(value)} values, of which one can be kept secret: give one")
    return str(value[0])
