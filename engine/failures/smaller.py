"""Values that are likely to start where others did not. Rules speak of them, and a sweep offers them."""

from engine.failures.rule import ceil_2, floor_2

HIGHEST_UTILIZATION = 0.98  # above it nothing is left for the driver's own context
STEP = 0.05  # by which a utilization is lowered where the log does not say what was missing
MARGIN_GIB = 0.5  # beyond the one allocation that failed: others follow it
FEWEST_TOKENS = 256

# vllm/config/lora.py: rank 1 from 0.11.2 on.
LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)


def halved(value: int, at_least: int = 1) -> int | None:
    """Half of it, or None where that would be below `at_least`."""
    half = value // 2
    return half if half >= at_least else None


def lower_utilization(
    utilization: float, wanted_gib: float | None = None, total_gib: float | None = None
) -> float | None:
    """A gpu-memory-utilization that leaves room for `wanted_gib` more outside the KV cache; None where none is left."""
    step = (wanted_gib + MARGIN_GIB) / total_gib if wanted_gib is not None and total_gib else STEP
    lower = floor_2(utilization - max(step, 0.01))
    return lower if lower > 0 else None


def raised_utilization(utilization: float, short_gib: float, total_gib: float) -> float | None:
    """The gpu-memory-utilization that adds `short_gib` to the KV cache; None where the GPU has not got so much."""
    raised = ceil_2(utilization + short_gib / total_gib)
    return raised if raised <= HIGHEST_UTILIZATION else None


def lora_rank(rank: int, *, old: bool = False) -> int | None:
    """The smallest --max-lora-rank that vLLM takes and that holds an adapter of `rank`; None above 512. `old` is 0.10,
    which does not take 1."""
    return next((each for each in LORA_RANKS if each >= rank and not (old and each == 1)), None)
