"""Adapters that vLLM refuses (vllm/lora/peft_helper.py, lora_model.py, models/serving.py)."""

from collections.abc import Mapping
from typing import Any

from engine.failures.rule import INT, Around, Numbers, rule
from engine.failures.smaller import LORA_RANKS, lora_rank


def fitting_rank(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    """The --max-lora-rank that holds an adapter of `rank`, and how to say so."""
    fits = lora_rank(int(numbers["rank"]), old=around.at_least(0, 11) is False)
    if fits is None:
        return {"do": f"No vLLM takes more than {LORA_RANKS[-1]}: merge the adapter into the model."}
    return {"fitting_rank": fits, "do": f"Set --max-lora-rank to {fits}."}


RULES = (
    rule(
        "lora_rank",
        rf"LoRA rank (?P<rank>{INT}) is greater than max_lora_rank (?P<max_lora_rank>{INT})",
        "The adapter has rank {rank}, max-lora-rank is {max_lora_rank}.",
        "{do}",
        derive=fitting_rank,
    ),
    rule(
        "lora_refused",
        r"(?P<reason>vLLM only supports modules_to_save being (?:either )?None[^\n]{0,200})",
        "The adapter trained whole modules beside its matrices: {reason}",
        "Train it again with modules_to_save left out, or merge it into the model.",
    ),
    rule(
        "lora_refused",
        r"(?P<reason>vLLM does not (?:yet )?support (?:DoRA|LoRA bias|init_lora_weights=[^\n.]{1,40}|Activated LoRA"
        r"|layer_replication|block-diagonal LoRA|QALoRA)|Adapter bias is not supported"
        r"|(?<![\w.])[\w.]{1,200} is unsupported LoRA weight)",
        "The adapter is of a kind that vLLM refuses: {reason}.",
        "Train the adapter without it, or merge it into the model.",
    ),
    rule(
        "lora_refused",
        r"While loading (?P<adapter>\S{1,300}), expected target modules in (?P<expected>[^\n]{1,400}?) but received "
        r"(?P<received>[^\n]{1,300}?)(?:\. Please|$)",
        "The adapter {adapter} changes modules that this model has not, or not under LoRA: {received}.",
        "Train it with target_modules out of {expected}.",
    ),
    rule(
        "lora_refused",
        r"No adapter found for (?P<adapter>\S{1,300})",
        "There is no adapter at {adapter}: a folder with an adapter_config.json is wanted.",
        "Correct the path in --lora-modules NAME=PATH.",
    ),
    rule(
        "lora_refused",
        r"\b(?P<model>\w{1,80}) does not support LoRA yet|Model (?P<architecture>\w{1,80}) does not support LoRA",
        "vLLM takes no adapters for this architecture[[ ({model})]][[ ({architecture})]].",
        "Leave --enable-lora and --lora-modules out, and merge the adapter into the model.",
    ),
    rule(
        "lora_refused",
        rf"max_cpu_loras \((?P<max_cpu_loras>{INT})\) must be >= max_loras \((?P<max_loras>{INT})\)",
        "max-cpu-loras {max_cpu_loras} is below max-loras {max_loras}.",
        "Set --max-cpu-loras to {max_loras}, or --max-loras to {max_cpu_loras}.",
    ),
)
