"""vLLM and the torch under it: which versions, built for what. Neither is imported, which would take up to a minute."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from engine.launch.ask_python import ask_python
from engine.launch.installation import find_vllm
from engine.preflight.check import Check
from engine.records import Installation, VllmNotFound, VllmTooOld

# torch/version.py is text that names the toolkit it was built with: `cuda: Optional[str] = '12.8'`. Finding a
# top-level package does not import it.
_QUERY = r"""
import importlib.metadata as metadata, importlib.util, json, os, re, sysconfig
try:
    version = metadata.version("torch")
except metadata.PackageNotFoundError:
    version = None
spec, text = importlib.util.find_spec("torch"), ""
for folder in (spec.submodule_search_locations or ()) if spec else ():
    try:
        text = open(os.path.join(folder, "version.py"), encoding="utf-8").read()
    except OSError:
        pass
builds = dict(re.findall(r"^(cuda|hip|xpu)\b[^=\n]*= *['\"]([^'\"]+)['\"]", text, re.MULTILINE))
headers = os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h"))
print(json.dumps({"version": version, "builds": builds, "headers": headers}))
"""
_QUERY_WITHIN_S = 4.0


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """`cuda` is the toolkit's version ("12.8") that torch was built with, None without; `other` a different platform's
    ("hip 6.3"). `headers`: whether Python.h is there, which Triton compiles against."""

    version: str | None
    cuda: str | None = None
    other: str | None = None
    headers: bool = True


@dataclass(frozen=True, slots=True)
class VllmReading:
    """`error` is why no usable vLLM was found; without one there is an installation. `torch` None: it did not say."""

    installation: Installation | None = None
    error: str | None = None
    torch: TorchBuild | None = None


def read_vllm(explicit: str | None, environ: Mapping[str, str]) -> VllmReading:
    """The vLLM that would be used, and its torch as told by its own Python."""
    try:
        installation = find_vllm(explicit, environ)
    except (VllmNotFound, VllmTooOld) as error:
        return VllmReading(error=str(error))
    return VllmReading(installation, torch=_read_torch(installation, environ))


def _read_torch(installation: Installation, environ: Mapping[str, str]) -> TorchBuild | None:
    try:
        answer = ask_python(installation.python, installation.bin_dir, _QUERY, environ, _QUERY_WITHIN_S)
        answer.check_returncode()
        told = json.loads(answer.stdout)
    except (subprocess.SubprocessError, OSError, ValueError):
        return None
    builds = told["builds"]
    other = next((f"{name} {builds[name]}" for name in ("hip", "xpu") if name in builds), None)
    return TorchBuild(told["version"], builds.get("cuda"), other, told["headers"])


def for_cpu(reading: VllmReading) -> bool:
    """Whether this vLLM is one for the CPU: by its own version's label, or by a torch without any GPU toolkit."""
    if reading.installation is not None and "cpu" in reading.installation.version.partition("+")[2]:
        return True
    torch = reading.torch
    return torch is not None and torch.version is not None and torch.cuda is None and torch.other is None


def vllm_checks(reading: VllmReading) -> list[Check]:
    if reading.installation is None:
        return [Check("vLLM", "problem", reading.error or "none found", "")]
    checks = [Check("vLLM", "ok", f"{reading.installation.version} at {reading.installation.path}")]
    torch = reading.torch
    if torch is None:
        return [*checks, Check("torch", "warning", "its build is not known: vLLM's Python did not say", _SLOW)]
    if torch.version is None:
        advice = f"install vLLM anew: {reading.installation.python} -m pip install vllm"
        return [*checks, Check("torch", "problem", "not installed beside vLLM", advice)]
    build = f"CUDA {torch.cuda}" if torch.cuda else torch.other or "CPU"
    checks.append(Check("torch", "ok", f"{torch.version}, built for {build}"))
    if not torch.headers:
        advice = "install python3-dev of that Python's version: Triton compiles against Python.h at the first start"
        checks.append(Check("Python headers", "warning", f"no Python.h for {reading.installation.python}", advice))
    return checks


_SLOW = "if its environment lies on a slow mount, starts will take minutes: see `disk` below"
