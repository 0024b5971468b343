"""The model of a training: loaded, quantized, with LoRA layers in it. For llmtune_trainer.py, in the training Python
(3.9 or newer); imports nothing of the program that starts that.

QLoRA (Dettmers et al. 2023, arXiv:2305.14314): the base's linear layers in 4-bit NormalFloat with double quantization,
frozen; the adapter in float32. Norms, embeddings and output layer stay in the dtype of computation: only the loss is
computed in float32, which transformers does by itself, so that a large vocabulary is not held in float32 for nothing.
"""

from __future__ import annotations

import os
import shutil
from typing import Any, NamedTuple


class Unfit(Exception):
    """What cannot be trained; one line that says what to do."""


class Loaded(NamedTuple):
    """`model` is a PeftModel; `dtype` is what it computes in, `device` a name for a person."""

    model: Any
    dtype: str
    device: str
    trainable: int
    total: int
    vocabulary: int


def choose_dtype(wanted: str, cuda: bool, bf16: bool) -> str:
    """The dtype of computation: bfloat16 where the GPU has it, else float16; float32 on the processor, where few have
    instructions for less. Raises Unfit for what the device does not have."""
    if wanted == "auto":
        return ("bfloat16" if bf16 else "float16") if cuda else "float32"
    if wanted == "float16" and not cuda:
        raise Unfit("float16 is not trained on the processor: its gradients overflow; take --dtype float32")
    if wanted == "bfloat16" and cuda and not bf16:
        raise Unfit("this GPU does not compute in bfloat16: take --dtype float16")
    return wanted


def load(name: str, settings: dict[str, Any]) -> Loaded:
    """The base of `name` with a new adapter. Raises Unfit; torch's own error where memory runs out."""
    import torch
    import transformers

    cuda = torch.cuda.is_available()
    dtype = choose_dtype(settings["dtype"], cuda, cuda and torch.cuda.is_bf16_supported())
    torch_dtype = getattr(torch, dtype)
    numbers = tuple(int(part) for part in transformers.__version__.split(".")[:2])
    keywords: dict[str, Any] = {"dtype" if numbers >= (4, 56) else "torch_dtype": torch_dtype}
    if settings["quantization"] == "nf4":
        keywords["quantization_config"] = _nf4(torch_dtype)
    if cuda:
        keywords["device_map"] = {"": 0}
    try:
        base = transformers.AutoModelForCausalLM.from_pretrained(name, **keywords)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise Unfit(f"{name} cannot be loaded for training: {_first(error)}") from error
    keep_base_as_it_is(base)
    model = _with_adapter(base, settings)
    trainable, total = model.get_nb_trainable_parameters()
    if not trainable:
        raise Unfit("nothing would be trained: no layer of the model is among --targets")
    device = torch.cuda.get_device_name(0) if cuda else "processor"
    vocabulary = int(getattr(base.config.get_text_config(), "vocab_size", 0))
    return Loaded(model, dtype, device, trainable, total, vocabulary)


def _nf4(dtype: Any) -> Any:
    try:
        import bitsandbytes  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:
        raise Unfit(
            f"4-bit training needs bitsandbytes, which cannot be loaded ({_first(error)}): install it beside "
            "transformers, or give --quantization none"
        ) from error
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=dtype
    )


def keep_base_as_it_is(base: Any) -> None:
    """Keep bitsandbytes (0.49 on) from another layout of the base while it is evaluated on a processor with AVX-512
    BF16: the way back quantizes the scales anew from bfloat16 (_convert_weight_packed_for_cpu_inverse), so that each
    evaluation would change the model that is trained."""
    for module in base.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False


def _with_adapter(base: Any, settings: dict[str, Any]) -> Any:
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise Unfit(f"peft cannot be loaded ({_first(error)}): install it beside transformers") from error

    base.config.use_cache = False
    for parameter in base.parameters():
        parameter.requires_grad_(False)
    if settings["gradient_checkpointing"]:
        # The first block's input bears no gradient of its own, and what is computed again would then bear none either.
        base.enable_input_require_grads()
    targets = settings["targets"]
    config = LoraConfig(
        r=settings["r"],
        lora_alpha=settings["alpha"],
        lora_dropout=settings["dropout"],
        target_modules=targets if isinstance(targets, str) else list(targets),
        bias="none",
        task_type="CAUSAL_LM",
    )
    try:
        return get_peft_model(base, config)
    except ValueError as error:
        raise Unfit(f"the adapter does not fit the model: {_first(error)}") from error


def restore_weights(model: Any, folder: str) -> None:
    """Put the adapter of a checkpoint into `model`."""
    from peft import load_peft_weights, set_peft_model_state_dict

    set_peft_model_state_dict(model, load_peft_weights(folder, device="cpu"))


def has_learnt(model: Any) -> bool:
    """Whether the adapter changes anything: LoRA's second factors begin as zeros (Hu et al. 2021, section 4.1)."""
    return any(bool(parameter.any()) for name, parameter in model.named_parameters() if "lora_B" in name)


def save_adapter(model: Any, chat: Any, folder: str, coming: str) -> None:
    """The adapter's files, and the tokenizer's with the template that it was trained with: whole, by way of `coming`,
    or not at all."""
    for place in (coming, folder):
        shutil.rmtree(place, ignore_errors=True)
    model.save_pretrained(coming, save_embedding_layers=False)
    chat.tokenizer.save_pretrained(coming)
    os.replace(coming, folder)


def _first(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
