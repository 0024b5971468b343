"""How much memory a training needs, from the base's config and the settings alone.

Weights and optimizer are counted. Activations are those that autograd keeps for the backward pass of a decoder with
frozen weights and LoRA factors in float32, computed under autocast where that is in 16 bits, as counted by saved-tensor
hooks over transformers 5.19 and peft 0.21 (a test counts them again): a frozen layer keeps no input, a LoRA its own,
and what a dropout left out of it. What the loss and a block take beyond that, and what the allocator holds but cannot
use, was read off eight trainings on an H200 (docs/results/h200): each held 0.6 to 6 % less than is said here.
"""

from dataclasses import dataclass

from lora.records import TrainingSettings
from lora.sizes.base_model import BaseModel, Linear
from lora.sizes.parameter_count import adapter_size, target_layers

GIB = 2**30

# NF4: half a byte a weight; with double quantization a byte of scale for 64 weights, and a float32 for 256 of those
# (Dettmers et al. 2023, arXiv:2305.14314, section 3).
NF4_BYTES = 0.5 + 1 / 64 + 4 / (64 * 256)
# Of a trained number: itself, its gradient, and AdamW's two moments, each in float32.
TRAINED_BYTES = 4 + 4 + 8
# CUDA's context and libraries; on the processor Python with torch and transformers, and what it has freed but keeps.
CONTEXT_GIB = {True: 0.75, False: 1.2}
# Going back through a block takes as much again for gradients on their way.
IN_FLIGHT = 0.3
# Blocks that the allocator keeps and cannot use, by whether on a GPU (there with segments that grow, as the trainer
# asks for); on a GPU also the place of the logits in float32, once.
FRAGMENTS = {True: 0.05, False: 0.1}
LOGITS_KEPT = {True: 4, False: 0}
# A dropout keeps which inputs it let through: a byte each on a GPU, a float32 on the processor.
DROPOUT_BYTES = {True: 1, False: 4}
# A block keeps as much more on a GPU, of each number of its width.
ON_GPU = 4


@dataclass(frozen=True, slots=True)
class MemoryNeeded:
    """`parts` are names and GiB, and add up to `total_gib`."""

    total_gib: float
    parts: tuple[tuple[str, float], ...]


def training_memory(base: BaseModel, settings: TrainingSettings, gpu: bool) -> MemoryNeeded:
    """The most that a training holds at once, for batches of the longest examples; on a GPU, else in main memory.
    Raises TargetUnknown."""
    width = bytes_of(settings.dtype, gpu)
    tokens = settings.batch * settings.max_length
    targets = target_layers(base, settings.targets)
    one_block = block_bytes(base, targets, settings.dropout > 0, width, gpu)
    if settings.gradient_checkpointing:
        kept, at_work = float(base.layers * base.width * width), one_block * (1 + IN_FLIGHT)
    else:
        kept, at_work = base.layers * one_block, one_block * IN_FLIGHT
    # The logits are gone again when the blocks are gone through backwards.
    activations = tokens * (kept + max(at_work, logit_bytes(base)))
    workspace = max(layer.parameters for layer in base.linears) * width if settings.quantization == "nf4" else 0
    workspace += tokens * base.vocabulary * LOGITS_KEPT[gpu]
    trained = adapter_size(base, settings.r, settings.targets).trainable * TRAINED_BYTES
    parts = (
        ("weights", weight_bytes(base, settings.quantization == "nf4", width) / GIB),
        ("adapter and its optimizer", trained / GIB),
        ("activations", activations / GIB),
        ("workspace", (workspace + FRAGMENTS[gpu] * activations) / GIB),
        ("CUDA" if gpu else "libraries", CONTEXT_GIB[gpu]),
    )
    return MemoryNeeded(sum(gib for _, gib in parts), parts)


def bytes_of(dtype: str, gpu: bool) -> int:
    """Of a number in the dtype of computation; "auto" is 16 bits on a GPU and float32 on the processor."""
    if dtype == "auto":
        return 2 if gpu else 4
    return 4 if dtype == "float32" else 2


def weight_bytes(base: BaseModel, nf4: bool, width: int) -> float:
    """Embeddings, output layer, norms and biases stay in the dtype of computation."""
    if not nf4:
        return float(base.parameters * width)
    return base.linear_parameters * NF4_BYTES + (base.parameters - base.linear_parameters) * width


def block_bytes(base: BaseModel, targets: tuple[Linear, ...], dropout: bool, width: int, gpu: bool) -> float:
    """What one block keeps of a token for the backward pass, on average over the blocks: of its own the norms' inputs
    in float32, queries, keys, values and the attention's output, and three of the feed-forward's; of each LoRA its
    input in the dtype of computation, and what a dropout let through."""
    leaves = {layer.leaf: layer for layer in base.linears[: len(base.linears) // base.layers]}
    attention = leaves["o_proj"].inputs
    fused = leaves.get("qkv_proj")
    both = fused.outputs - attention if fused is not None else 2 * leaves["k_proj"].outputs
    own = 8 * base.width + width * (2 * attention + both + 3 * base.feed_forward)
    inner = [layer for layer in targets if layer.name.startswith("model.layers.")]
    lora = sum(layer.inputs for layer in inner) / base.layers * (width + (DROPOUT_BYTES[gpu] if dropout else 0))
    return own + lora + (ON_GPU * base.width if gpu else 0)


def logit_bytes(base: BaseModel) -> float:
    """Of a token while the loss is gone back through: log-softmax, its gradient, and that of the logits, in float32."""
    return float(base.vocabulary * 3 * 4)
