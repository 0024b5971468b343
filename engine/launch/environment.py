"""The environment of what we start in vLLM's Python: pure functions from one mapping to another."""

import os
from collections.abc import Mapping
from pathlib import Path

from engine.processes.process import MARKER_VARIABLE
from engine.records import Installation, ServerSpec

# What belongs to our own interpreter and would mislead another one.
_OURS = frozenset(
    {"VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "PYTHONHOME", "PYTHONEXECUTABLE", "__PYVENV_LAUNCHER__", MARKER_VARIABLE}
)

# A plan made at one gpu-memory-utilization would be applied at another: its fingerprint leaves that setting out.
_HARMFUL = frozenset({"VLLM_ENABLE_STARTUP_PLAN"})

_OUR_FOLDER = Path(__file__).resolve().parents[2]


def child_environ(bin_dir: str, base: Mapping[str, str]) -> dict[str, str]:
    """The environment for any program of a vLLM installation: `base` with `bin_dir` first on PATH (ninja lives there),
    colours and usage statistics off, and nothing of our own Python. HF_HUB_OFFLINE and all else stay as they are."""
    environ = {name: value for name, value in base.items() if name not in _OURS | _HARMFUL}
    path = environ.get("PATH", os.defpath)
    environ["PATH"] = os.pathsep.join([bin_dir, *(part for part in path.split(os.pathsep) if part != bin_dir)])
    python_path = [part for part in environ.pop("PYTHONPATH", "").split(os.pathsep) if part and not _is_ours(part)]
    if python_path:
        environ["PYTHONPATH"] = os.pathsep.join(python_path)
    return environ | {"VLLM_NO_USAGE_STATS": "1", "NO_COLOR": "1", "VLLM_LOGGING_COLOR": "0"}


def added_environ(spec: ServerSpec, marker: str) -> dict[str, str]:
    """What a server gets beyond `child_environ`: the plan's own variables and the marker that finds its descendants.

    setproctitle writes a process's title over its environment block unless SPT_NOENV is set, and with that block
    goes the marker that /proc shows: vLLM's EngineCore and workers would be found by nobody once orphaned.
    """
    return dict(spec.env) | {MARKER_VARIABLE: marker, "SPT_NOENV": "1"}


def server_environ(
    installation: Installation, spec: ServerSpec, marker: str, base: Mapping[str, str]
) -> dict[str, str]:
    """The whole environment of `vllm serve` for `spec`; a variable of the spec wins over one of `base`."""
    return child_environ(installation.bin_dir, base) | added_environ(spec, marker)


def with_client_key(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` for a client of a server that began from it: `vllm bench serve` sends the key of OPENAI_API_KEY
    (vllm/benchmarks/lib/endpoint_request_func.py), and the server wants that of VLLM_API_KEY."""
    key = environ.get("VLLM_API_KEY")
    return {**environ, "OPENAI_API_KEY": key} if key else dict(environ)


def _is_ours(folder: str) -> bool:
    return Path(folder).resolve() == _OUR_FOLDER
