"""What vLLM makes of an adapter, said before it is launched."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from engine.launch.installation import version_numbers
from lora.adapters.adapter_files import Adapter
from lora.sizes.base_model import BaseModel

Effect = Literal["refused", "wrong", "idle", "note"]
"""`refused`: vLLM does not load it. `wrong`: it loads it without a word and answers differently from what was trained.
`idle`: it loads it, and nothing changes. `note`: worth knowing, nothing to prevent."""

REFUSES_MORE = (0, 32)
"""From this version on vLLM refuses what it ignored before, and honours rank and alpha patterns (0.28.0 did not yet;
versions between were not looked at, and the older behaviour is the worse)."""
REFUSES_BIAS = (0, 11)
"""Before it `--enable-lora-bias` let biases pass."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`about` is the key of adapter_config.json, or `tensors`, `base`. `text` says what it is and what comes of it,
    `remedy` what to do. `vllm` is what vLLM itself says where it refuses, None where it says nothing."""

    effect: Effect
    about: str
    text: str
    remedy: str
    vllm: str | None = None
    harms_others: bool = False  # the base and other adapters of its server, too

    @property
    def prevents(self) -> bool:
        """Whether the adapter should not be served as it is."""
        return self.effect != "note"


@dataclass(frozen=True, slots=True)
class Served:
    """How an adapter is to be served. `version` None: the newest that is known here. `base` None: its layers are not
    known. `allowed` are the values of `--max-lora-rank`; `max_rank` the one given, None: the smallest that is enough.
    `embedding_modules` are the embeddings that this vLLM can adapt in this model, None where that is not known.
    """

    allowed: tuple[int, ...]
    version: str | None = None
    base: BaseModel | None = None
    max_rank: int | None = None
    embedding_modules: frozenset[str] | None = None
    lora_bias: bool = False  # --enable-lora-bias, of 0.10

    def before(self, version: tuple[int, int]) -> bool:
        """Whether this vLLM is older; of an unknown version it is not."""
        numbers = None if self.version is None else version_numbers(self.version)
        return numbers is not None and numbers < version

    @property
    def called(self) -> str:
        return "vLLM" if self.version is None else f"vLLM {self.version.partition('+')[0]}"


def ranks_of(adapter: Adapter, served: Served) -> tuple[int, ...]:
    """The ranks that vLLM has to make room for: that of the config, those of the tensors, and those of `rank_pattern`
    where this version honours it."""
    pattern = adapter.config.get("rank_pattern")
    named = pattern.values() if isinstance(pattern, dict) and not served.before(REFUSES_MORE) else ()
    return tuple(rank for rank in (adapter.r, *adapter.ranks, *named) if type(rank) is int and rank > 0)


def some(names: Iterable[Any], most: int = 3) -> str:
    """ "a, b, c and 12 more"."""
    found = [str(name) for name in names]
    return ", ".join(found[:most]) + (f" and {len(found) - most:,} more" if len(found) > most else "")
