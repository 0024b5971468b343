"""Programs that vLLM starts by name: compilers, and ninja for kernels that are built at the first start."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from engine.launch.environment import child_environ
from engine.preflight.check import Check

COMPILERS = ("cc", "gcc", "clang")
COMPILERS_CXX = ("c++", "g++", "clang++")


@dataclass(frozen=True, slots=True)
class ToolsReading:
    """Paths, None where there is none."""

    ninja: str | None
    c: str | None
    cxx: str | None
    nvcc: str | None


def read_tools(bin_dir: str | None, environ: Mapping[str, str]) -> ToolsReading:
    """As found on the PATH that a server will get: `bin_dir`, vLLM's own, before the rest."""
    path = child_environ(bin_dir, environ)["PATH"] if bin_dir else environ.get("PATH", os.defpath)

    def find(*names: str | None) -> str | None:
        return next((found for name in names if name and (found := shutil.which(name, path=path))), None)

    cuda = environ.get("CUDA_HOME")
    return ToolsReading(
        find("ninja"),
        find(environ.get("CC"), *COMPILERS),
        find(environ.get("CXX"), *COMPILERS_CXX),
        find("nvcc", f"{cuda}/bin/nvcc" if cuda else None, "/usr/local/cuda/bin/nvcc"),
    )


def tools_checks(reading: ToolsReading, cpu: bool) -> list[Check]:
    """`cpu`: vLLM is a build for the CPU, whose compiled graphs are C++ where those for a GPU are Triton's, with a
    launcher in C."""
    wanted, name = (reading.cxx, "C++ compiler") if cpu else (reading.c, "C compiler")
    if wanted is None:
        install = "install one (apt-get install build-essential), or start with --enforce-eager"
        checks = [Check("compiler", "problem", f"no {name} on the PATH that vLLM gets", install)]
    else:
        nvcc = "" if cpu else f", nvcc {reading.nvcc or 'none (needed only by kernels that FlashInfer builds)'}"
        checks = [Check("compiler", "ok", f"{wanted}{nvcc}")]
    if reading.ninja is not None:
        return [*checks, Check("ninja", "ok", reading.ninja)]
    advice = "install it into vLLM's environment (pip install ninja): kernels built at the first start need it"
    return [
        *checks,
        Check("ninja", "ok" if cpu else "warning", "none on the PATH that vLLM gets", "" if cpu else advice),
    ]
