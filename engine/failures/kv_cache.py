"""GPU memory that does not suffice before anything is allocated: the budget, and the KV cache within it."""

import math
from collections.abc import Mapping
from typing import Any

from engine.failures.rule import INT, NUM, Around, Numbers, floor_2, rule
from engine.failures.smaller import raised_utilization

_BLOCK = 16  # tokens: lengths are rounded down to whole blocks of the KV cache
_TRIED_HIGH = 0.95


_FIXED = "kv-cache-memory-bytes"  # where it is set, the utilization rules nothing


def _raise_to(short_gib: float, around: Around) -> Mapping[str, Any]:
    """How far gpu-memory-utilization must be raised: computed where the GPU's memory is known, else the default or
    0.95, whichever is above what was asked for."""
    asked = around.utilization
    if asked is None:
        return {}
    if around.gpu_total_gib:
        raised = raised_utilization(asked, short_gib, around.gpu_total_gib)
        return {} if raised is None else {"needed_utilization": raised, "raised": f"{raised:g}"}
    higher = [value for value in (around.default_utilization, _TRIED_HIGH) if value is not None and value > asked]
    return {"raised": f"{higher[0]:g}"} if higher else {}


def _cache_too_small(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    needed, available = numbers["needed_gib"], numbers["available_gib"]
    found: dict[str, Any] = {"short_gib": round(needed - available, 3)}
    if _FIXED in around.flags:
        raised, found["raised"] = f"--{_FIXED}", f"{math.ceil(needed * 2**30)}"
    else:
        raised, found = "--gpu-memory-utilization", {**found, **_raise_to(needed - available, around)}
    # Where vLLM found that some length fits it says which; without a word about it the line was cut, or none fits.
    if "longest_model_len" in numbers:
        found["length"] = f"{numbers['longest_model_len']}"
    elif available > 0 and needed > 0 and "none_fits" not in words:
        length = int(numbers["max_model_len"] * available / needed) // _BLOCK * _BLOCK
        if length:
            found |= {"longest_model_len": length, "length": f"about {length}"}
    if "raised" in found and "length" in found:
        found["do"] = f"Raise {raised} to {found['raised']}, or lower --max-model-len to {found['length']}."
    elif "raised" in found:
        found["do"] = f"Raise {raised} to {found['raised']}: no length fits as it is."
    elif "length" in found:
        found["do"] = f"Lower --max-model-len to {found['length']}."
    else:
        found["do"] = "Use a smaller or quantized model, --kv-cache-dtype fp8, or more GPUs (--tensor-parallel-size)."
    return found


def _no_cache(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    available = numbers.get("available_gib", around.facts.kv_cache_gib)
    found: dict[str, Any] = {}
    if available is not None:
        found["available_gib"] = available
        found |= _raise_to(1.0 - available, around)  # one GiB of cache is the least that serves anything
    if around.facts.weights_gib is not None:
        found["weights_gib"] = around.facts.weights_gib
    if _FIXED in around.flags:
        return {**found, "do": f"Raise --{_FIXED} to {2**30} (1 GiB) or more, or leave it out."}
    if available is None and around.utilization is not None:
        found |= _raise_to(1.0, around)
    how = f"Raise --gpu-memory-utilization to {found['raised']}, or use" if "raised" in found else "Use"
    return {**found, "do": f"{how} a smaller or quantized model."}


def _highest_utilization(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    """The largest gpu-memory-utilization, in hundredths, that the free memory allows."""
    if "free_gib" not in numbers or not numbers.get("total_gib"):
        return {}
    highest = floor_2(numbers["free_gib"] / numbers["total_gib"])
    return {"highest_utilization": highest} if highest > 0 else {}


def _fitting_cache(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    gib = int(numbers["free_gib"])
    return {"fitting_gib": gib, "fitting_bytes": str(gib * 2**30)} if gib else {}


RULES = (
    # "models's" up to 0.21.0, "model's" from 0.22.1 on; the longest length only where one fits.
    rule(
        "kv_cache_too_small",
        rf"To serve at least one request with the models?'s max seq len \((?P<max_model_len>{INT})\), "
        rf"\((?P<needed_gib>{NUM}) GiB KV\s+cache is needed, which is larger than the available KV cache\s+memory "
        rf"\((?P<available_gib>-?{NUM}) GiB\)"
        rf"(?:\.\s+Based on the available memory, the estimated maximum model length is "
        rf"(?P<longest_model_len>{INT})|(?P<none_fits>\.\s+Try))?",
        "One request of {max_model_len} tokens needs {needed_gib} GiB of KV cache; {available_gib} GiB are left, "
        "{short_gib} GiB too little.",
        "{do}",
        derive=_cache_too_small,
    ),
    rule(
        "no_kv_memory",
        r"No available memory for the cache blocks|Cannot auto-fit max_model_len: not enough GPU memory",
        "Weights and working memory leave nothing for the KV cache[[ ({available_gib} GiB)]].",
        "{do}",
        derive=_no_cache,
    ),
    # No device name up to 0.13.0; a second wording after excluding another process's weights from 0.32 on.
    rule(
        "free_memory_short",
        rf"Free memory on device (?:\S{{1,40}} )?\((?P<free_gib>{NUM})/(?P<total_gib>{NUM}) GiB\) on startup "
        rf"is less than [^(]{{0,80}}\((?P<utilization>{NUM}), (?P<wanted_gib>{NUM}) GiB\)",
        "{free_gib} of {total_gib} GiB are free on the GPU; gpu-memory-utilization {utilization} wants {wanted_gib}.",
        "Stop what else uses the GPU[[, or lower --gpu-memory-utilization to {highest_utilization}]].",
        derive=_highest_utilization,
    ),
    # The CPU build: the flag rules the share of a node's memory, and the second wording comes after loading.
    rule(
        "free_memory_short",
        rf"Available memory on node \S+ \((?P<free_gib>{NUM})/(?P<total_gib>{NUM}) GiB\) on startup is less than "
        rf"desired CPU memory utilization \((?P<utilization>{NUM}), (?P<wanted_gib>{NUM}) GiB\)",
        "{free_gib} of {total_gib} GiB memory are free; gpu-memory-utilization {utilization} wants {wanted_gib}.",
        "Stop what else uses memory[[, or lower --gpu-memory-utilization to {highest_utilization}]].",
        derive=_highest_utilization,
    ),
    rule(
        "no_kv_memory",
        rf"on kv cache allocation is less than requested memory for kv "
        rf"\((?P<available_gib>-{NUM})/(?P<budget_gib>{NUM})",
        "Weights and working memory leave nothing of {budget_gib} GiB for the KV cache ({available_gib} GiB).",
        "{do} On the CPU build too it is the utilization that rules the memory.",
        derive=_no_cache,
    ),
    rule(
        "free_memory_short",
        rf"Available memory on node \S+ \((?P<free_gib>{NUM})/(?P<total_gib>{NUM}) GiB\) on kv cache allocation is "
        rf"less than requested memory for kv \((?P<wanted_gib>{NUM})",
        "{free_gib} of {total_gib} GiB memory are free; the KV cache wants {wanted_gib}.",
        "Stop what else uses memory[[, or set --kv-cache-memory-bytes to {fitting_bytes} ({fitting_gib} GiB)]].",
        derive=_fitting_cache,
    ),
    rule(
        "memory_race",
        rf"Error in memory profiling\. Initial free memory (?P<first_gib>{NUM}) GiB, "
        rf"current free memory (?P<later_gib>{NUM})",
        "Another process gave GPU memory back while this server measured it ({first_gib}, then {later_gib} GiB free).",
        "Start the server again when nothing else on the GPU starts or stops.",
    ),
)
