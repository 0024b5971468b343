"""Adapters."""

from tests.engine.failure_texts.text import Text

TEXTS: dict[str, Text] = {
    "rank": Text(
        "lora_rank",
        ("ValueError: Call to add_lora method failed: LoRA rank 24 is greater than max_lora_rank 16.",),
        "--max-lora-rank to 32", {"rank": 24, "max_lora_rank": 16, "fitting_rank": 32},
    ),
    "rank-flag": Text(
        "lora_rank", (), "--max-lora-rank to 32", {"rank": 24},
        after="vllm serve: error: argument --max-lora-rank: invalid choice: 24 (choose from 1, 8, 16, 32, 64, 128)\n",
    ),
    "rank-config": Text("lora_rank", ("ValueError: max_lora_rank (24) must be one of (8, 16, 32, 64, 128, 256, 320, "
                                      "512).",), "--max-lora-rank to 32"),
    "modules-to-save": Text("lora_refused", ("ValueError: vLLM only supports modules_to_save being None.",),
                            "modules_to_save"),
    "dora": Text("lora_refused", ("ValueError: vLLM does not yet support DoRA.",), "merge it", cause="DoRA"),
    "pissa": Text("lora_refused", ("ValueError: vLLM does not support init_lora_weights='pissa'. Inits such as PiSSA",),
                  "merge it", cause="pissa"),
    "target-modules": Text(
        "lora_refused",
        ("ValueError: While loading /adapters/a, expected target modules in ['qkv_proj', 'o_proj'] but received "
         "['lm_head']. Please verify that the loaded LoRA module is correct",),
        "qkv_proj", cause="lm_head",
    ),
    "no-adapter": Text("lora_refused", ("ValueError: Loading lora a failed: No adapter found for /adapters/a",),
                       "--lora-modules", cause="/adapters/a"),
}  # fmt: skip
