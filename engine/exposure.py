"""What of a server others can reach or see: pure functions, one line for each thing to be warned of."""

import ipaddress
from collections.abc import Mapping

from engine.keeper.secrets import secrets_to_env
from engine.launch.readiness import api_key
from engine.records import ServerSpec
from engine.text import redact_argv, redact_flags


def exposure_warnings(spec: ServerSpec, environ: Mapping[str, str]) -> list[str]:
    """Of a server about to be started by hand; `environ` is the environment that it begins from. Raises EngineError
    for several API keys."""
    warnings = []
    if not is_loopback(spec.host) and api_key(spec, environ) is None:
        warnings.append(
            f"{spec.host or 'every address of this machine'} without a key lets anyone who reaches it use the "
            "server: give --api-key (or VLLM_API_KEY), or leave --host out and come through ssh -L"
        )
    told = secrets_to_env(spec)
    hidden = [name for name, value in told.flags.items() if redact_flags({name: value}) != {name: value}]
    extra = list(told.extra_args)
    if redact_argv(extra) != extra:
        hidden.append("…")
    if hidden:
        warnings.append(
            f"--{hidden[0]} holds a key or password that the process list and vLLM's own log show: give it by the "
            "environment where vLLM reads one"
        )
    return warnings


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens on `host`. A name other than localhost counts as not."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
