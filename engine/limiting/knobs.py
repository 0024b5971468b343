"""The three settings of a server that people turn first, with where their value is known from.

A value is what the server was told or what it says of itself. Where it was told nothing, vLLM's own default depends on
its version and the device: it is taken only where both are known (the wheels of 0.10 to 0.33 were read), and it is said
as a default. Otherwise the value is not known, and nothing is guessed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.samples.sample_record import kept_gpus
from store.records import SampleRecord, ServerRecord

Source = Literal["flag", "log", "metrics", "default"]

BATCHED_TOKENS, UTILIZATION, SEQS = "max-num-batched-tokens", "gpu-memory-utilization", "max-num-seqs"
_ALIASES = {"device-memory-utilization": UTILIZATION}  # 0.32 on
_SIZES = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}
_NUMBER = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([kmgtKMGT]?)")

# The wheels that were read. What a version between or beyond them does is not known.
_READ_FROM, _READ_TO = (0, 10), (0, 33)
_UTILIZATION_09_TO, _UTILIZATION_092_FROM = (0, 19, 1), (0, 20, 2)
_LARGEST_FROM = (0, 28)
_CPU_READ = (0, 32)


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting's value and where it is known from; both None where it is not known."""

    value: float | int | None = None
    source: Source | None = None

    def __str__(self) -> str:
        """`now 0.92`, `its default 256`, `not known`."""
        if self.value is None:
            return "not known"
        return f"{'its default' if self.source == 'default' else 'now'} {self.value:g}"


@dataclass(frozen=True, slots=True)
class Knobs:
    """`kv_cache_fixed`: the KV cache has a size of its own (kv-cache-memory-bytes), so that gpu-memory-utilization does
    not move it. `eager`: no CUDA graphs (enforce-eager), so that each kernel costs the host a launch."""

    max_num_batched_tokens: Knob = Knob()
    gpu_memory_utilization: Knob = Knob()
    max_num_seqs: Knob = Knob()
    kv_cache_fixed: bool = False
    eager: bool = False


def knobs_of(server: ServerRecord, sample: SampleRecord | None = None) -> Knobs:
    """Of a server of ours. `sample` is any of its samples: it knows the GPUs, and what /metrics says of the cache."""
    spec = server.raw.get("spec")
    flags = spec.get("flags") if isinstance(spec, Mapping) else None
    return knobs_of_flags(
        flags if isinstance(flags, Mapping) else None, sample, version=server.vllm_version, facts=server.facts
    )


def knobs_of_flags(
    flags: Mapping[str, Any] | None,
    sample: SampleRecord | None = None,
    *,
    version: str | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Knobs:
    """Of a launch of a sweep, or of a server that was found running. `flags` without dashes; None where they are not
    known, as for a server of `--url`: then only /metrics is left. `facts` are those of its log, as
    engine.records.LogFacts names them.
    """
    given = _Given(flags, facts or {}, sample)
    default = _Defaults(given, version or given.version)
    batched = given.knob(BATCHED_TOKENS) or default.batched_tokens()
    return Knobs(
        max_num_batched_tokens=batched,
        gpu_memory_utilization=given.knob(UTILIZATION) or default.utilization(),
        max_num_seqs=given.knob(SEQS) or default.seqs(batched),
        kv_cache_fixed=given.value("kv-cache-memory-bytes") is not None,
        eager=str(given.value("enforce-eager")) in ("True", "true", ""),
    )


class _Given:
    """What the server was told, and what it says of itself."""

    def __init__(self, flags: Mapping[str, Any] | None, facts: Mapping[str, Any], sample: SampleRecord | None) -> None:
        self._flags = {_named(name): value for name, value in (flags or {}).items()}
        config = facts.get("engine_config")
        self.config: Mapping[str, Any] = config if isinstance(config, Mapping) else {}
        self._said = str(facts.get("non_default_args") or "")
        self._raw = sample.raw if sample else {}
        self.gpus = kept_gpus(sample)
        # Else a flag that we cannot see, or a file that we do not read, may have set it.
        self.told = bool(self._said) or (flags is not None and "config" not in self._flags)

    @property
    def version(self) -> str | None:
        found = self._raw.get("version")
        return found if isinstance(found, str) else None

    def value(self, name: str) -> object:
        """As the log has it, else the flag. A log tells also what stood in a file or an environment variable."""
        if found := re.search(rf"'{name.replace('-', '_')}': ('?)([^,'}}]{{1,40}})\1", self._said):
            return found[2]
        return self._flags.get(name)

    def knob(self, name: str) -> Knob | None:
        """None where nobody said it. Where log and flag agree, the flag is named."""
        told, flag = _number(self.value(name)), _number(self._flags.get(name))
        if told is None and name == BATCHED_TOKENS:
            told = _number(self.config.get("max_num_batched_tokens"))
        shown = _number(self._raw.get("gpu_memory_utilization")) if name == UTILIZATION else None
        value = shown if shown is not None else told
        if value is None:
            return None
        if value == flag:
            return Knob(value, "flag")
        return Knob(value, "metrics" if shown is not None else "log")


@dataclass(frozen=True, slots=True)
class _Defaults:
    """vLLM's own values for its API server, by version and device (get_batch_defaults in vllm/engine/arg_utils.py)."""

    given: _Given
    version: str | None

    def utilization(self) -> Knob:
        version = _parts(self.version)
        if version is None or not self.given.told:
            return Knob()
        if _READ_FROM <= version <= _UTILIZATION_09_TO:
            return Knob(0.9, "default")
        return Knob(0.92, "default") if version >= _UTILIZATION_092_FROM and version[:2] <= _READ_TO else Knob()

    def batched_tokens(self) -> Knob:
        tier, seqs = self._tier(), _number(self.given.value(SEQS))
        length = _number(self.given.config.get("max_seq_len", self.given.value("max-model-len")))
        if tier is None or tier[0] is None or str(self.given.value("enable-chunked-prefill")) == "False":
            return Knob()
        most = (seqs or tier[1]) * length if length else None
        # A cap that is not known matters only where very few sequences were asked for.
        if most is None and seqs is not None and seqs < 16:
            return Knob()
        return Knob(int(min(tier[0], most)) if most else tier[0], "default")

    def seqs(self, batched: Knob) -> Knob:
        tier = self._tier()
        if tier is None or batched.value is None:
            return Knob()
        return Knob(int(min(tier[1], batched.value)), "default")

    def _tier(self) -> tuple[int | None, int] | None:
        """(batched tokens, sequences) of the device; the first None where it changed at a version that was not read."""
        version = _parts(self.version)
        if version is None or not _READ_FROM <= version[:2] <= _READ_TO or not self.given.told:
            return None
        if self.given.value("performance-mode") is not None or self.given.value("data-parallel-size") is not None:
            return None  # these double or replace the defaults
        if self.given.config.get("device_config") == "cpu":
            return self._cpu_tier() if version[:2] == _CPU_READ else None
        tiers = {_gpu_tier(gpu, version) for gpu in self.given.gpus}
        return tiers.pop() if len(tiers) == 1 else None

    def _cpu_tier(self) -> tuple[int, int]:
        world = 1
        for name in ("tensor-parallel-size", "pipeline-parallel-size"):
            world *= int(_number(self.given.value(name)) or 1)
        return 2048 * world, 128 * world


def _gpu_tier(gpu: Mapping[str, Any], version: tuple[int, ...]) -> tuple[int | None, int] | None:
    total, name = _number(gpu.get("mem_total_gib")), str(gpu.get("name") or "").lower()
    if total is None or not name or "mig" in name or gpu.get("mig"):  # a slice has less than the GPU shows
        return None
    if total >= 160:
        return (16384 if version >= _LARGEST_FROM else 8192 if version[:2] <= (0, 26) else None), 1024
    return (8192, 1024) if total >= 70 and "a100" not in name and "gb10" not in name else (2048, 256)


def _named(flag: str) -> str:
    name = str(flag).lstrip("-").replace("_", "-")
    return _ALIASES.get(name, name)


def _number(value: object) -> float | int | None:
    """A number as given, or as vLLM reads one from text: `8192`, `8k`, `8K` (1024s), `0.92`."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value if 0 <= value < 1e16 else None
    found = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    number = float(found[1]) * _SIZES.get(found[2], 1)
    return int(number) if number == int(number) else number


def _parts(version: str | None) -> tuple[int, ...] | None:
    """`0.25.1` → (0, 25, 1); builds and candidates of a release count as it."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", version or "")
    return tuple(int(part) for part in found.groups() if part) if found else None
