"""A model of random weights in the shape of a config, to train and serve where nobody can download the real one.

    python tests/benchmarks/random_model.py SHAPE FOLDER [--dtype bfloat16] [--seed 0]

Runs in the training Python, by itself: it needs torch and transformers and nothing of ours. SHAPE is a folder with a
`config.json` and a tokenizer; both are copied. Such a model is trained, quantized and served at the pace of the real
one; what it writes before a training is noise.
"""

import argparse
import shutil
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a model of random weights in the shape of a config.")
    parser.add_argument("shape", type=Path, help="a folder with config.json and a tokenizer")
    parser.add_argument("folder", type=Path, help="where the model is written")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(args.seed)
    config = AutoConfig.from_pretrained(args.shape)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, args.dtype))
    model.save_pretrained(args.folder, max_shard_size="4GB")
    for file in args.shape.iterdir():
        if not (args.folder / file.name).exists():
            shutil.copy(file, args.folder / file.name)
    print(f"{args.folder}: {sum(weight.numel() for weight in model.parameters()):,} parameters")


if __name__ == "__main__":
    main()
