"""What vLLM refuses or drops of an adapter's tensors, and whether they fit the base it is to be served on.

Read from vllm/lora/{lora_model,utils,model_manager}.py (parse_fine_tuned_lora_name, from_local_checkpoint).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from engine.text import clean
from lora.adapters.adapter_files import PREFIX, Adapter, LoraPair
from lora.adapters.adapter_findings import REFUSES_MORE, Effect, Finding, Served, some
from lora.adapters.adapter_values import Values
from lora.adapters.safetensors_header import Tensor
from lora.sizes.base_model import BaseModel, Linear

_AGAIN = "copy it again from where it was trained"
_MERGE = "merge it into its base (peft: merge_and_unload) and serve the merged model"
# The base's own embeddings, which peft saves beside an adapter of theirs; vLLM passes over them.
_BASE_EMBEDDING = re.compile(r".*\.(?:embed_tokens|lm_head)\.base_layer\.weight")
_HEAD = re.compile(r".*\.(?:score|classifier)\.(?:weight|bias)")
# What such a tensor is, and the key of the config that goes with it.
_KNOWN = (
    (re.compile(r".*\.lora_magnitude_vector(?:\..*)?"), "DoRA's magnitudes", "use_dora"),
    (re.compile(r".*\.lora_[AB]\.bias"), "biases of LoRA factors", "lora_bias"),
    (re.compile(r".*\.token_adapter\..*|.*\.trainable_tokens.*"), "single tokens' embeddings", ""),
    (re.compile(r".*\.(?:embed_tokens|lm_head)\.weight"), "whole embeddings, as of an extended vocabulary", ""),
    (re.compile(r".*\.lora_E"), "AdaLoRA's singular values", "peft_type"),
    (re.compile(r".*\.lora_[AB]\.[^.]+\.weight"), "factors under the name of a peft adapter, not as saved", ""),
)


def tensor_findings(
    adapter: Adapter, served: Served, values: Values | None, refused: Collection[str] = ()
) -> Iterator[Finding]:
    """Everything about the tensors that this vLLM refuses, drops or cannot put on the base; not what comes of keys of
    the config that it has `refused` already."""
    if adapter.tensors is None:
        text = f"its weights are a pickle ({adapter.weights.name}), which was not opened: only its config was checked"
        yield Finding("note", "tensors", text, "save it as safetensors, peft's own default")
        return
    yield from _unsupported(adapter, served, refused)
    yield from _halves(adapter.pairs)
    yield from _ranks(adapter)
    yield from _embeddings(adapter, served)
    if served.base is not None:
        yield from _fit(adapter.pairs, served.base)
    if served.before(REFUSES_MORE) and adapter.config.get("use_rslora"):
        experts = [pair for pair in adapter.pairs if ".experts" in pair.module]
        if experts:
            text = f"{served.called} does not scale experts by alpha/√r (use_rslora, vLLM issue 55545)"
            yield Finding("wrong", "use_rslora", text, "serve it with vLLM 0.32 or newer, or train without use_rslora")
    if values is not None:
        yield from _values(values)


def _unsupported(adapter: Adapter, served: Served, refused: Collection[str]) -> Iterator[Finding]:
    explained = [pattern for pattern, _, key in _KNOWN if key in refused]
    saved = adapter.config.get("modules_to_save") if "modules_to_save" in refused else None
    if isinstance(saved, list):
        explained += [re.compile(rf".*{re.escape(str(name))}(?:\..*)?") for name in saved]
    strange = [
        tensor
        for tensor in adapter.others
        if not _passes(tensor.name, served) and not any(pattern.fullmatch(tensor.name) for pattern in explained)
    ]
    if not strange:
        return
    kinds = [what for pattern, what, _ in _KNOWN if any(pattern.fullmatch(tensor.name) for tensor in strange)]
    names = clean(some(tensor.name.removeprefix(PREFIX) for tensor in strange), 300)
    text = f"it holds {' and '.join(kinds) or 'tensors that are no factors of a LoRA'}: {names}"
    says = f"{strange[0].name.removeprefix(PREFIX)} is unsupported LoRA weight"
    yield Finding("refused", "tensors", text, f"train it without them, or {_MERGE}", says)


def _passes(name: str, served: Served) -> bool:
    return bool(_BASE_EMBEDDING.fullmatch(name) or (_HEAD.fullmatch(name) and not served.before(REFUSES_MORE)))


def _halves(pairs: Sequence[LoraPair]) -> Iterator[Finding]:
    if half := [pair for pair in pairs if pair.a is None or pair.b is None]:
        text = f"one of the two factors is missing of {clean(some(pair.module for pair in half), 200)}"
        yield Finding("refused", "tensors", text, _AGAIN)


def _ranks(adapter: Adapter) -> Iterator[Finding]:
    """The config says another rank than the tensors have: vLLM scales by the config's."""
    pattern = adapter.config.get("rank_pattern") or {}
    named = {value for value in pattern.values() if type(value) is int} if isinstance(pattern, dict) else set()
    other = sorted(adapter.ranks - named - {adapter.r})
    if other and adapter.r is not None and adapter.r > 0:
        told = some(other)
        text = f"its tensors have rank {told}, its config says {adapter.r}: it would be scaled by alpha / {adapter.r}"
        yield Finding("wrong", "r", text, "put the adapter_config.json of the same training beside the weights")
    uneven = [pair for pair in adapter.pairs if pair.a and pair.b and pair.a.shape[:1] != pair.b.shape[-1:]]
    if uneven:
        names = clean(some(pair.module for pair in uneven), 200)
        text = f"the two factors of {names} have different ranks: vLLM would load them without a word"
        yield Finding("wrong", "tensors", text, _AGAIN)


def _embeddings(adapter: Adapter, served: Served) -> Iterator[Finding]:
    """LoRA on embeddings and the output layer, which vLLM takes for some models only, and base embeddings it drops."""
    adapted = sorted(
        {pair.leaf for pair in adapter.pairs if pair.embedding or pair.leaf in ("embed_tokens", "lm_head")}
    )
    if adapted and served.embedding_modules is not None:
        if refused := [leaf for leaf in adapted if leaf not in served.embedding_modules]:
            text = f"it adapts {some(refused)}, which {served.called} does not for this model"
            remedy = f"train it without {some(refused)} among the targets, or {_MERGE}"
            yield Finding("refused", "target_modules", text, remedy, "expected target modules in")
    elif adapted:
        text = f"it adapts {some(adapted)}: vLLM takes that for some models only, and which was not looked up"
        yield Finding("note", "target_modules", text, "name the base (--base) and a vLLM (--vllm)")
    for tensor in adapter.others:
        if _BASE_EMBEDDING.fullmatch(tensor.name):
            yield _base_embedding(tensor, served.base)


def _base_embedding(tensor: Tensor, base: BaseModel | None) -> Finding:
    rows = tensor.shape[0] if tensor.shape else 0
    name = clean(tensor.name, 200)
    if base is not None and rows != base.vocabulary:
        text = f"it was trained with {rows:,} tokens, its base has {base.vocabulary:,}: vLLM drops {name}"
        return Finding("wrong", "tensors", text, f"add the tokens to the base and save it so, or {_MERGE}")
    text = f"vLLM drops the base's embeddings that were saved with it ({name}) and uses those of the base it serves"
    effect: Effect = "note"
    return Finding(effect, "tensors", text, "nothing, unless they were trained")


def _fit(pairs: Sequence[LoraPair], base: BaseModel) -> Iterator[Finding]:
    layers = {layer.name: layer for layer in (base.embedding, *base.linears, base.output)}
    absent = [pair for pair in pairs if pair.module not in layers]
    if absent:
        text = f"the base has no layer {clean(some(pair.module for pair in absent), 300)}"
        known = {layer.leaf for layer in layers.values()}
        says = "expected target modules in" if any(pair.leaf not in known for pair in absent) else None
        # vLLM looks at the last part of a name alone before it loads.
        effect: Effect = "refused" if says else "wrong"
        text += "" if says else ": vLLM would load it and never use it"
        yield Finding(effect, "base", text, "serve it on the base it was trained on (--base)", says)
    misfits = [pair for pair in pairs if pair.module in layers and not _shaped(pair, layers[pair.module])]
    if misfits:
        yield _misfit(misfits, layers)


def _misfit(misfits: Sequence[LoraPair], layers: Mapping[str, Linear]) -> Finding:
    """vLLM copies the factors into buffers of the base's widths: what is wider does not go in, what is narrower does,
    without a word (layers/base_linear.py, set_lora; seen on a server of 0.32)."""
    wider = [pair for pair in misfits if not _goes_in(pair, layers[pair.module])]
    first = (wider or misfits)[0]
    layer = layers[first.module]
    text = (
        f"it was made for another base: {clean(first.module, 120)} takes {_inputs(first)} to {_outputs(first)}, "
        f"the base's {layer.inputs:,} to {layer.outputs:,}"
    )
    remedy = "serve it on the base it was trained on (--base)"
    if wider:
        return Finding("refused", "base", text, remedy)
    return Finding("wrong", "base", f"{text}; vLLM would load it without a word and answer wrongly", remedy)


def _goes_in(pair: LoraPair, layer: Linear) -> bool:
    a, b = pair.a, pair.b
    fits_a = a is None or (len(a.shape) == 2 and a.shape[1] <= layer.inputs)
    return fits_a and (b is None or (len(b.shape) == 2 and b.shape[0] <= layer.outputs))


def _shaped(pair: LoraPair, layer: Linear) -> bool:
    a, b = pair.a, pair.b
    return (a is None or a.shape[1:] == (layer.inputs,)) and (b is None or b.shape[:1] == (layer.outputs,))


def _inputs(pair: LoraPair) -> str:
    return f"{pair.a.shape[-1]:,}" if pair.a is not None and pair.a.shape else "–"


def _outputs(pair: LoraPair) -> str:
    return f"{pair.b.shape[0]:,}" if pair.b is not None and pair.b.shape else "–"


def _values(values: Values) -> Iterator[Finding]:
    if values.not_finite:
        names = clean(some(values.not_finite), 300)
        # Seen on a server of 0.32: what it leaves in the cache makes later answers of the base and of others empty too.
        text = f"it holds numbers that are none (NaN or infinite) in {names}: it would spoil its answers, and others'"
        remedy = "take an earlier checkpoint, or train with a smaller learning rate"
        yield Finding("wrong", "tensors", text, remedy, harms_others=True)
    if values.idle:
        text = "every B factor is 0: it changes nothing, as before the first step of a training"
        yield Finding("idle", "tensors", text, "take a later checkpoint, or train it")
