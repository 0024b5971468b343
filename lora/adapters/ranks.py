"""Which `--max-lora-rank` an adapter needs: vLLM takes a few values only, and sets memory aside for the one given."""

from collections.abc import Iterable, Mapping

from engine.launch.installation import version_numbers
from engine.records import Installation
from lora.adapters.vllm_source import max_lora_ranks, vllm_folder

DEFAULT_MAX_RANK = 16
"""What vLLM takes without the flag."""

_BEFORE_011 = (8, 16, 32, 64, 128, 256, 320, 512)
_SINCE_011 = (1, *_BEFORE_011)


def allowed_ranks(installation: Installation, environ: Mapping[str, str]) -> tuple[int, ...]:
    """The values of `--max-lora-rank` that this vLLM takes, lowest first: its own list, else that of its version."""
    folder = vllm_folder(installation, environ)
    own = None if folder is None else max_lora_ranks(folder)
    return own or ranks_of_version(installation.version)


def ranks_of_version(version: str | None) -> tuple[int, ...]:
    """The values as released versions have them (0.10.0 to 0.33.0 looked at); of an unknown version, the newest."""
    numbers = None if version is None else version_numbers(version)
    return _BEFORE_011 if numbers is not None and numbers < (0, 11) else _SINCE_011


def max_rank_for(ranks: Iterable[int], allowed: Iterable[int]) -> int | None:
    """The smallest allowed value that holds all of `ranks`; None where none does. Of no rank, the smallest."""
    needed = max(ranks, default=0)
    return min((rank for rank in allowed if rank >= needed), default=None)
