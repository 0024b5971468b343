"""Runs in the training Python: counts what autograd keeps for the backward pass of small models of random weights.
`python saved_tensors.py CASES` with CASES a JSON list of `{"model_type", "hidden_size", …, "targets", "dropout",
"checkpointing", "tokens"}` prints one line, `SAVED [[bytes a token and block, bytes a token of the rest], …]`."""

import json
import sys
import warnings
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

RANK = 8


def saved_bytes(case: dict[str, Any], layers: int) -> int:
    """The bytes of every storage that is kept and is no parameter's, each once."""
    shape = {
        name: value for name, value in case.items() if name not in ("targets", "dropout", "checkpointing", "tokens")
    }
    config = AutoConfig.for_model(**shape, num_hidden_layers=layers)
    model = AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    if case["checkpointing"]:
        model.enable_input_require_grads()
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    lora = LoraConfig(r=RANK, lora_dropout=case["dropout"], target_modules=case["targets"], task_type="CAUSAL_LM")
    model = get_peft_model(model, lora)
    model.train()
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, tuple[int, Any]] = {}

    def keep(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = storage.nbytes(), tensor  # held, so that its address is not given out again
        return tensor

    tokens = torch.randint(0, shape["vocab_size"], (1, case["tokens"]))
    # As the Trainer computes in 16 bits.
    with torch.autocast("cpu", torch.bfloat16), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(input_ids=tokens, labels=tokens, use_cache=False)
    return sum(size for size, _ in kept.values())


def main() -> None:
    warnings.simplefilter("ignore")
    found = []
    for case in json.loads(sys.argv[1]):
        one, three = saved_bytes(case, 1), saved_bytes(case, 3)
        block = (three - one) / 2
        found.append([block / case["tokens"], (one - block) / case["tokens"]])
    print("SAVED " + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
