"""Runs in the training Python: what peft counts on models without weights. `python counted_models.py CASES`, JSON lists
`[config, rank, targets]`, prints one line, `COUNTED [[trainable, all, [[layer, inputs, outputs], …]], …]`.
"""

import json
import sys
import warnings
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM


def counted(config: dict[str, Any], rank: int, targets: Any) -> list[Any]:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))
        layers = [
            [name, module.in_features, module.out_features]
            for name, module in model.named_modules()
            if isinstance(module, torch.nn.Linear)
        ]
        trained = get_peft_model(model, LoraConfig(r=rank, target_modules=targets, task_type="CAUSAL_LM"))
    return [*trained.get_nb_trainable_parameters(), layers]


def main() -> None:
    warnings.simplefilter("ignore")
    print("COUNTED " + json.dumps([counted(*case) for case in json.loads(sys.argv[1])]), flush=True)


if __name__ == "__main__":
    main()
