"""What vLLM, torch and others say when a start fails, with the class, the numbers and the remedy that must come of it:
the form of an entry, and what several themes begin with.

The wordings are those of the released wheels (0.10.0 to 0.33.0), torch, transformers, huggingface_hub, FlashInfer and
Triton; names and paths are invented.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Text:
    """`error` are the lines of the exception; `before` stands above the failure as it is. `remedy` and `cause` are
    parts of what must be said."""

    failure_class: str
    error: tuple[str, ...]
    remedy: str
    numbers: dict[str, float | int] = field(default_factory=dict)
    cause: str = ""
    before: str = ""
    after: str = ""


def info(text: str, process: str = "EngineCore pid=90") -> str:
    return f"({process}) INFO 09-18 10:00:00 [core.py:100] {text}\n"


def started(arguments: str) -> str:
    return info(f"non-default args: {{{arguments}}}", "APIServer pid=80")


V0_19 = info("Initializing a V1 LLM engine (v0.19.1) with config: model='/m', tensor_parallel_size=2, dtype=x")
V0_25 = info("Initializing a V1 LLM engine (v0.25.1) with config: model='/m', enforce_eager=False, dtype=x")
V0_10 = info("Initializing a V1 LLM engine (v0.10.2) with config: model='/m', enforce_eager=False, dtype=x")
LOADED = info("Model loading took 14.29 GiB memory and 1.5 seconds")
CACHE = info("GPU KV cache size: 176,240 tokens")
GRAPHS = info("Graph capturing finished in 5 secs, took 0.89 GiB")
READY = "INFO:     Application startup complete.\n"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 270.00 MiB. GPU 0 has a total capacity of 23.60 GiB "
    "of which 12.50 MiB is free. Including non-PyTorch memory, this process has 23.50 GiB memory in use."
)


def within(*functions: str) -> tuple[str, ...]:
    return tuple(f'  File "/venv/vllm/v1/worker/gpu_worker.py", line 7, in {name}' for name in functions)


def too_small(model: str, length: int, needed: str, available: str, rest: str) -> str:
    return (
        f"ValueError: To serve at least one request with the {model} max seq len ({length}), ({needed} GiB KV cache is "
        f"needed, which is larger than the available KV cache memory ({available} GiB){rest}"
    )
