"""Limits that do not fit each other or the model."""

from tests.engine.failure_texts.text import Text

TEXTS: dict[str, Text] = {
    "batched-seqs": Text(
        "batched_tokens_invalid",
        ("pydantic_core._pydantic_core.ValidationError: 1 validation error for SchedulerConfig",
         "  Value error, max_num_batched_tokens (64) must be greater than or equal to max_num_seqs (256). "
         "[type=value_error, input_value=ArgsKwargs((), {'x': 1}), input_type=ArgsKwargs]"),
        "--max-num-seqs to 64",
        {"max_num_batched_tokens": 64, "max_num_seqs": 256},
    ),
    "batched-len": Text(
        "batched_tokens_invalid",
        ("ValueError: max_num_batched_tokens (1024) is smaller than max_model_len (4096). This effectively limits the "
         "maximum sequence length",),
        "--max-num-batched-tokens to 4096",
    ),
    "batched-active": Text(
        "batched_tokens_invalid", ("ValueError: max_num_active_seqs (64) cannot be greater than max_num_seqs (32).",),
        "--max-num-active-seqs to 32",
    ),
    "batched-images": Text(
        "batched_tokens_invalid",
        ("ValueError: Chunked MM input disabled but max_tokens_per_mm_item (16384) is larger than "
         "max_num_batched_tokens (8192). Please increase max_num_batched_tokens.",),
        "--max-num-batched-tokens to 16384",
    ),
    "batched-speculation": Text(
        "batched_tokens_invalid",
        ("ValueError: max_num_scheduled_tokens is set to -512 based on the speculative decoding settings, which does "
         "not allow any tokens to be scheduled.",),
        "--max-num-batched-tokens to 8192",
    ),
    "length": Text(
        "model_len_invalid",
        ("ValueError: User-specified max_model_len (65536) is greater than the derived max_model_len "
         "(max_position_embeddings=32768 or model_max_length=None in model's config.json).",),
        "--max-model-len to 32768",
        {"longest_model_len": 32768},
    ),
    "no-length": Text(
        "model_len_invalid", ("ValueError: max_model_len must be a positive integer, got int: -5. Example: x",),
        "--max-model-len", {"max_model_len": -5},
    ),
    "heads": Text(
        "unknown", ("ValueError: Total number of attention heads (40) must be divisible by tensor parallel size (6).",),
        "--tensor-parallel-size to 5",
    ),
    "gpus": Text(
        "unknown", ("ValueError: World size (4) is larger than the number of available GPUs (2) in this node.",),
        "--tensor-parallel-size to 2",
    ),
}  # fmt: skip
