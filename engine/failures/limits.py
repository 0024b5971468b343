"""Limits that contradict each other, the model or the machine: batched tokens, sequences, lengths, parallel sizes."""

from collections.abc import Mapping
from typing import Any

from engine.failures.rule import INT, NUM, Around, Numbers, rule


def _split(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    """The largest tensor-parallel-size up to the asked one that divides the attention heads."""
    heads, asked = int(numbers["heads"]), int(numbers["tensor_parallel_size"])
    return (
        {
            "fitting_tensor_parallel_size": next(
                size for size in range(min(asked, heads, 1024), 0, -1) if heads % size == 0
            )
        }
        if heads
        else {}
    )


def _gpus(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    return {"fitting_tensor_parallel_size": max(int(numbers.get("gpus", 1)), 1)}


RULES = (
    rule(
        "batched_tokens_invalid",
        rf"max_num_batched_tokens \((?P<max_num_batched_tokens>{INT})\) must be greater than or equal to max_num_seqs"
        rf" \((?P<max_num_seqs>{INT})\)",
        "max-num-batched-tokens {max_num_batched_tokens} is below max-num-seqs {max_num_seqs}.",
        "Raise --max-num-batched-tokens to {max_num_seqs} or more, or lower --max-num-seqs to "
        "{max_num_batched_tokens}.",
    ),
    rule(
        "batched_tokens_invalid",
        rf"max_num_batched_tokens \((?P<max_num_batched_tokens>{INT})\) "
        rf"is smaller than max_model_len \((?P<max_model_len>{INT})\)",
        "max-num-batched-tokens {max_num_batched_tokens} is below max-model-len {max_model_len}, unchunked.",
        "Leave chunked prefill on, or raise --max-num-batched-tokens to {max_model_len}, or lower --max-model-len to "
        "{max_num_batched_tokens}.",
    ),
    rule(
        "batched_tokens_invalid",
        rf"max_num_active_seqs \((?P<max_num_active_seqs>{INT})\) cannot be greater than max_num_seqs "
        rf"\((?P<max_num_seqs>{INT})\)",
        "max-num-active-seqs {max_num_active_seqs} is above max-num-seqs {max_num_seqs}.",
        "Lower --max-num-active-seqs to {max_num_seqs}, or raise --max-num-seqs to {max_num_active_seqs}.",
    ),
    # Multimodal without chunks: one image must fit into one step.
    rule(
        "batched_tokens_invalid",
        rf"max_tokens_per_mm_item \((?P<max_tokens_per_mm_item>{INT})\) is larger than max_num_batched_tokens "
        rf"\((?P<max_num_batched_tokens>{INT})\)",
        "One image or clip takes up to {max_tokens_per_mm_item} tokens; max-num-batched-tokens is "
        "{max_num_batched_tokens}.",
        "Raise --max-num-batched-tokens to {max_tokens_per_mm_item}.",
    ),
    rule(
        "batched_tokens_invalid",
        rf"max_num_scheduled_tokens is set to (?P<max_num_scheduled_tokens>-?{INT})"
        r"|VllmConfig does not have enough slots",
        "Speculative decoding takes more of max-num-batched-tokens than there is: no token can be scheduled.",
        "Raise --max-num-batched-tokens to 8192, or lower --max-num-seqs to 64 or num_speculative_tokens to 1.",
    ),
    rule(
        "model_len_invalid",
        rf"max_model_len \((?P<max_model_len>{INT})\) is greater than the derived max_model_len "
        rf"\(\w+=(?P<longest_model_len>{NUM})",
        "max-model-len {max_model_len} is above what the model's config.json allows, {longest_model_len}.",
        "Lower --max-model-len to {longest_model_len}, or scale the model's rope (--hf-overrides).",
    ),
    rule(
        "model_len_invalid",
        rf"max_model_len must be a positive integer, got \w{{1,20}}: (?P<max_model_len>-?{INT})?",
        "max-model-len[[ {max_model_len}]] is no length.",
        "Give --max-model-len a whole number of tokens such as 4096, or leave it out.",
    ),
    # No class of their own: what is asked of the GPUs cannot be.
    rule(
        "unknown",
        rf"Total number of attention heads \((?P<heads>{INT})\) must be divisible by tensor parallel size "
        rf"\((?P<tensor_parallel_size>{INT})\)",
        "The model's {heads} attention heads cannot be split over {tensor_parallel_size} GPUs.",
        "Set --tensor-parallel-size to {fitting_tensor_parallel_size}.",
        derive=_split,
    ),
    rule(
        "unknown",
        rf"World size \((?P<world_size>{INT})\) is larger than the number of\s+available GPUs \((?P<gpus>{INT})\)",
        "The start asks for {world_size} GPUs, {gpus} are there.",
        "Set --tensor-parallel-size to {fitting_tensor_parallel_size} (pipeline- and data-parallel sizes left out).",
        derive=_gpus,
    ),
)
