"""Runs in the training Python: makes tiny real adapters of many kinds with peft, and asks the installed vLLM's own
loader about each. `python real_adapters.py MODEL FOLDER` makes FOLDER/KIND/ and prints one line,
`ADAPTERS {"KIND": what vLLM says, null where it takes it}`."""

import json
import shutil
import sys
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
from vllm.config.lora import LoRAConfig
from vllm.lora.lora_model import LoRAModel
from vllm.lora.peft_helper import PEFTHelper

MAX_RANK = 16
# What vLLM's Llama has: the linear layers by the names of the checkpoint, and its embedding_modules.
EXPECTED = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "embed_tokens", "lm_head"}

PLAIN = {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"], "layers_to_transform": [0]}
TRAINED = {
    "plain": {},
    "all-linear": {"target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]},
    "rslora": {"use_rslora": True},
    "dora": {"use_dora": True},
    "bias": {"bias": "lora_only"},
    "lora_bias": {"lora_bias": True},
    "rank_pattern": {"rank_pattern": {"v_proj": 2}},
    "alpha_pattern": {"alpha_pattern": {"v_proj": 32}},
    "high_rank_pattern": {"rank_pattern": {"v_proj": 24}},
    "high_rank": {"r": 24},
    "modules_to_save": {"modules_to_save": ["norm"]},
    "pissa": {"init_lora_weights": "pissa"},
    "olora": {"init_lora_weights": "olora"},
    "gaussian": {"init_lora_weights": "gaussian"},
    "orthogonal": {"init_lora_weights": "orthogonal"},
    "output": {"target_modules": ["lm_head"], "layers_to_transform": None},
    "embedding": {"target_modules": ["embed_tokens"], "layers_to_transform": None},
    "tokens": {"trainable_token_indices": [5, 6]},
}
# Kinds that take data or another base to train: a plain adapter with the config of one.
WRITTEN = {
    "corda": {"init_lora_weights": "corda"},
    "loftq": {"init_lora_weights": "loftq"},
    "eva": {"init_lora_weights": "eva"},
    "alora": {"alora_invocation_tokens": [1, 2]},
    "layer_replication": {"layer_replication": [[0, 2], [1, 3]]},
    "bdlora": {"use_bdlora": {"nblocks": 2}},
    "qalora": {"use_qalora": True},
    "classifier": {"modules_to_save": ["score"]},
    "several": {"use_dora": True, "use_qalora": True, "modules_to_save": ["score", "lm_head"], "bias": "all", "r": 64},
    "no_rank": {"r": 0},
    "no_alpha": {"lora_alpha": None},
    "bad_pattern": {"rank_pattern": {"v_proj": 0}},
}


def make(model: str, folder: Path) -> None:
    for kind, changes in TRAINED.items():
        base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
        torch.manual_seed(1)
        trained = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **{**PLAIN, **changes}))
        with torch.no_grad():
            for name, parameter in trained.named_parameters():
                if "lora_B" in name or "lora_embedding_A" in name:
                    parameter.normal_(std=0.02)
        trained.save_pretrained(folder / kind, save_embedding_layers=False)
    for kind, changes in WRITTEN.items():
        shutil.copytree(folder / "plain", folder / kind)
        path = folder / kind / "adapter_config.json"
        config = {**json.loads(path.read_text()), **changes}
        path.write_text(
            json.dumps({key: value for key, value in config.items() if (key, value) != ("lora_alpha", None)})
        )


def ask(folder: Path) -> str | None:
    try:
        helper = PEFTHelper.from_local_dir(str(folder), 8192)
        helper.validate_legal(LoRAConfig(max_lora_rank=MAX_RANK))
        LoRAModel.from_local_checkpoint(
            str(folder), EXPECTED, helper, lora_model_id=1, device="cpu", dtype=torch.float32, model_vocab_size=49152
        )
    except (ValueError, RuntimeError) as error:
        return str(error)
    return None


def main() -> None:
    model, folder = sys.argv[1], Path(sys.argv[2])
    make(model, folder)
    print("ADAPTERS " + json.dumps({kind: ask(folder / kind) for kind in (*TRAINED, *WRITTEN)}), flush=True)


if __name__ == "__main__":
    main()
