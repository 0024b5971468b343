"""NVML through pynvml, one question at a time: an answer, None for what is not supported here, or one of two ends.

NVML's documentation: https://docs.nvidia.com/deploy/nvml-api/
"""

from collections.abc import Sequence
from typing import Any

from engine.text import clean

# After these the GPU is of no use until it is reset or the machine started anew.
_LOST = frozenset({"NVMLError_GpuIsLost", "NVMLError_ResetRequired"})
# After these NVML itself has to be started anew: its driver was unloaded or replaced under us.
_GONE = frozenset({"NVMLError_Uninitialized", "NVMLError_DriverNotLoaded", "NVMLError_LibRmVersionMismatch"})


LIBRARY = "libnvidia-ml.so.1"


class GpuLost(Exception):
    """The GPU that was asked is there no more; its text is what NVML said."""


class NvmlGone(Exception):
    """NVML answers nothing any more; its text is one line for a person."""


def load_nvml() -> Any:
    """The `pynvml` module of nvidia-ml-py. Raises ImportError where that is not installed, and NvmlGone where there is
    no driver: the module, of 2 MiB, is then not loaded."""
    import ctypes

    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        raise NvmlGone("No GPU: no NVIDIA driver here (NVML Shared Library Not Found).") from None
    import pynvml

    return pynvml


class Nvml:
    """A `pynvml` module (or what stands for it) whose refusals are answers. What a version of it does not know, what
    a GPU does not support and what we may not see are all None."""

    def __init__(self, module: Any) -> None:
        self.module = module
        # The second is raised where a function of pynvml is newer than the driver.
        self._refusals: tuple[type[Exception], ...] = (
            module.NVMLError,
            getattr(module, "NVMLLibraryMismatchError", module.NVMLError),
        )

    def start(self, again: bool = False) -> int:
        """Start NVML; how many GPUs it knows. `again`: it did answer before. Raises NvmlGone."""
        try:
            self.module.nvmlInit()
            return int(self.module.nvmlDeviceGetCount())
        except self._refusals as error:
            raise NvmlGone(_went(error) if again else why_not(error)) from error

    def stop(self) -> None:
        """Let NVML go, whatever state it is in."""
        try:
            self.ask("nvmlShutdown")
        except (GpuLost, NvmlGone):
            return  # it went by itself

    def ask(self, function: str, *arguments: Any, **options: Any) -> Any:
        """What one function answers. Raises GpuLost and NvmlGone."""
        call = getattr(self.module, function, None)
        if call is None:
            return None
        try:
            return call(*arguments, **options)
        except self._refusals as error:
            kind = type(error).__name__
            if kind in _LOST:
                raise GpuLost(clean(str(error))) from error
            if kind in _GONE:
                raise NvmlGone(_went(error)) from error
            return None

    def first(self, functions: Sequence[str], *arguments: Any) -> Any:
        """What the first of several functions answers that answers at all."""
        return next((found for name in functions if (found := self.ask(name, *arguments)) is not None), None)

    def number(self, function: str, *arguments: Any, scale: float = 1.0) -> float | None:
        """An answer that is a number, times `scale`; None for any other."""
        answer = self.ask(function, *arguments)
        return answer * scale if isinstance(answer, int | float) else None

    def text(self, function: str, *arguments: Any) -> str | None:
        """Names are bytes in old versions of pynvml."""
        answer = self.ask(function, *arguments)
        if isinstance(answer, bytes):
            answer = answer.decode("utf-8", "replace")
        return clean(answer) if isinstance(answer, str) else None

    def constant(self, name: str, otherwise: int) -> int:
        """A constant of NVML's header, also where this version of pynvml has not got it."""
        return int(getattr(self.module, name, otherwise))


def why_not(error: Exception) -> str:
    """Why NVML does not start, as one line that says what to do."""
    said = clean(str(error))
    match type(error).__name__:
        case "NVMLError_LibraryNotFound" | "NVMLError_DriverNotLoaded":
            return f"No GPU: no NVIDIA driver here ({said})."
        case "NVMLError_LibRmVersionMismatch":
            return f"GPU not readable: driver and library differ ({said}); reboot, or start the container anew."
        case "NVMLError_NoPermission":
            return f"GPU not readable: no permission ({said}); start the container with access to the GPU."
        case _:
            return f"GPU not readable: {said}."


def _went(error: Exception) -> str:
    """Why NVML, which did answer, answers no more."""
    said = clean(str(error))
    if type(error).__name__ == "NVMLError_LibRmVersionMismatch":
        return f"GPU not readable any more: its driver was replaced under us ({said}); start llmtune anew."
    return f"GPU not readable any more: its driver went away ({said}); llmtune asks again by itself."
