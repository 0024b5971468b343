"""What vLLM refuses, ignores or honours of adapter_config.json, by version.

Read from vllm/lora/peft_helper.py of released versions 0.10.0 to 0.33.0; a test holds it against an installed one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.text import clean
from lora.adapters.adapter_files import Adapter
from lora.adapters.adapter_findings import REFUSES_BIAS, REFUSES_MORE, Effect, Finding, Served, ranks_of, some
from lora.adapters.ranks import max_rank_for

_REQUIRED = ("r", "lora_alpha", "target_modules")
_CLASSIFICATION = ("classifier", "score")
# These only set the first weights of a training: what is saved is a plain LoRA.
_HARMLESS_INITS = ("gaussian", "eva", "orthogonal", "mica", "lora_ga")
_MERGE = "merge it into its base (peft: merge_and_unload) and serve the merged model"

# Key of the config → what it is, what vLLM says where it refuses, what to do.
_FEATURES: Mapping[str, tuple[str, str, str]] = {
    "lora_bias": (
        "its B factors have biases (lora_bias)",
        "vLLM does not support LoRA bias (lora_bias).",
        f"train it without lora_bias, or {_MERGE}",
    ),
    "alora_invocation_tokens": (
        "it is an activated LoRA (aLoRA), which acts only after its invocation tokens",
        "vLLM does not support Activated LoRA (aLoRA).",
        "train it without alora_invocation_tokens",
    ),
    "layer_replication": (
        "it repeats layers of its base (layer_replication)",
        "vLLM does not support layer_replication.",
        _MERGE,
    ),
    "use_bdlora": (
        "its factors are block-diagonal (BD-LoRA)",
        "vLLM does not support block-diagonal LoRA (BD-LoRA).",
        _MERGE,
    ),
    "use_qalora": ("it pools its inputs (QALoRA)", "vLLM does not support QALoRA.", _MERGE),
}


def config_findings(adapter: Adapter, served: Served) -> Iterator[Finding]:
    """Everything about the config that this vLLM refuses, or ignores to the harm of the answers."""
    missing = [key for key in _REQUIRED if adapter.config.get(key) is None]
    if missing:
        yield Finding(
            "refused",
            missing[0],
            f"its config lacks {some(missing)}: {_kind(adapter)}",
            "vLLM serves LoRA alone: train one, or merge it into its base and serve the merged model",
            "Missing required configuration fields",
        )
        return
    kind = str(adapter.config.get("peft_type", "LORA"))
    if kind.upper() != "LORA":
        remedy = "vLLM serves LoRA alone: train one, or merge it into its base and serve the merged model"
        text = f"it is no LoRA, but {clean(kind, 40)}: vLLM takes no notice, and what it loads of it answers wrongly"
        yield Finding("wrong", "peft_type", text, remedy)
    yield from _rank(adapter, served)
    yield from _modules_to_save(adapter, served)
    if adapter.config.get("use_dora"):
        text = "vLLM does not yet support DoRA."
        yield _refused("use_dora", "it is a DoRA adapter (use_dora)", f"train it without use_dora, or {_MERGE}", text)
    for key, (what, says, remedy) in _FEATURES.items():
        if adapter.config.get(key):
            yield _newly_refused(served, key, what, remedy, says)
    yield from _init(adapter, served)
    yield from _bias(adapter, served)
    yield from _patterns(adapter, served)
    if adapter.config.get("arrow_config"):
        what = "it mixes several adapters by a router (Arrow), of which vLLM knows nothing"
        yield Finding("wrong", "arrow_config", what, "serve one of its adapters by itself")


def _kind(adapter: Adapter) -> str:
    kind = clean(str(adapter.config.get("peft_type") or ""), 40)
    return f"it is {kind}, no LoRA" if kind and kind.upper() != "LORA" else "it cannot be told how it was trained"


def _rank(adapter: Adapter, served: Served) -> Iterator[Finding]:
    r = adapter.r
    if r is None or r <= 0:
        told = clean(str(adapter.config.get("r")), 40)
        says = f"LoRA rank `r` must be a positive integer, got {told}." if not served.before(REFUSES_MORE) else None
        yield _refused("r", f"its rank is {told}", "copy it again from where it was trained", says)
        return
    ranks = ranks_of(adapter, served)
    highest, fits = max(ranks), max_rank_for(ranks, served.allowed)
    if fits is None:
        largest = max(served.allowed)
        says = f"LoRA rank {highest} is greater than max_lora_rank {largest}."
        text = f"its rank {highest} is above {largest}, the largest --max-lora-rank of {served.called}"
        yield _refused("r", text, f"train it with r of at most {largest}, or {_MERGE}", says)
    elif served.max_rank is not None and highest > served.max_rank:
        says = f"LoRA rank {highest} is greater than max_lora_rank {served.max_rank}."
        text = f"its rank {highest} is above the --max-lora-rank {served.max_rank} given"
        yield _refused("r", text, f"give --max-lora-rank {fits}", says)


def _modules_to_save(adapter: Adapter, served: Served) -> Iterator[Finding]:
    saved = adapter.config.get("modules_to_save")
    if not saved:
        return
    names = list(map(str, saved)) if isinstance(saved, list) else [str(saved)]
    remedy = f"train it without modules_to_save, or {_MERGE}"
    if served.before(REFUSES_MORE):
        what = f"it brings whole layers of its own (modules_to_save: {clean(some(names), 100)})"
        yield _refused("modules_to_save", what, remedy, "vLLM only supports modules_to_save being None.")
    elif unsupported := [name for name in names if name not in _CLASSIFICATION]:
        what = f"it brings whole layers of its own (modules_to_save: {clean(some(unsupported), 100)})"
        says = (
            'vLLM only supports modules_to_save being either None or ["classifier", "score"] for classification '
            f"models. Unsupported modules_to_save: {unsupported}"
        )
        yield _refused("modules_to_save", what, remedy, says)


def _init(adapter: Adapter, served: Served) -> Iterator[Finding]:
    init = adapter.config.get("init_lora_weights", True)
    if not isinstance(init, str) or init.lower() in _HARMLESS_INITS:
        return
    says = (
        f"vLLM does not support init_lora_weights={init!r}. Inits such as PiSSA, OLoRA, CorDA and LoftQ modify the "
        "base model weights when PEFT loads the adapter. Convert it to a regular LoRA adapter with PEFT's "
        "path_initial_model_for_weight_conversion, or set init_lora_weights to true if the served base model already "
        "contains the modified weights."
    )
    what = f"its base was changed as it began ({clean(init, 40)}), and peft changes it so again when it loads it"
    remedy = (
        "save it with peft's path_initial_model_for_weight_conversion; or set init_lora_weights to true where the base "
        "to be served is the changed one"
    )
    yield _newly_refused(served, "init_lora_weights", what, remedy, says)


def _bias(adapter: Adapter, served: Served) -> Iterator[Finding]:
    bias = adapter.config.get("bias", "none")
    if bias == "none" or (served.before(REFUSES_BIAS) and served.lora_bias):
        return
    remedy = 'train it with bias "none"'
    if served.before(REFUSES_BIAS):
        remedy = f"start vLLM with --enable-lora-bias, or {remedy}"
    what = f"it brings biases of its base's layers (bias: {clean(str(bias), 40)})"
    yield _refused("bias", what, remedy, "Adapter bias is not supported.")


def _patterns(adapter: Adapter, served: Served) -> Iterator[Finding]:
    """Modules with a rank or alpha of their own. Those that say what holds anyway do no harm."""
    for key, plain in (("rank_pattern", "r"), ("alpha_pattern", "lora_alpha")):
        pattern = adapter.config.get(key)
        if not isinstance(pattern, dict):
            continue
        bad = [rank for rank in pattern.values() if type(rank) is not int or rank <= 0] if key == "rank_pattern" else []
        if bad and not served.before(REFUSES_MORE):
            name = next(name for name, rank in pattern.items() if rank is bad[0])
            says = f"LoRA rank for `{name}` in `rank_pattern` must be a positive integer, got {bad[0]}."
            told = clean(str(bad[0]), 40)
            yield _refused(key, f"a module's rank is {told}", "copy it again from where it was trained", says)
        own = {name: value for name, value in pattern.items() if value != adapter.config.get(plain)}
        if own and served.before(REFUSES_MORE):
            names, own_what = some(clean(name, 60) for name in own), key.partition("_")[0]
            what = (
                f"some modules have a {own_what} of their own ({key}: {names}), which {served.called} ignores: it "
                "would scale them wrongly"
            )
            remedy = f"serve it with vLLM 0.32 or newer, train it without {key}, or {_MERGE}"
            yield Finding("wrong", key, what, remedy)


def _refused(about: str, what: str, remedy: str, says: str | None = None) -> Finding:
    return Finding("refused", about, what, remedy, says)


def _newly_refused(served: Served, about: str, what: str, remedy: str, says: str) -> Finding:
    """What vLLM ignored before it came to refuse it."""
    old = served.before(REFUSES_MORE)
    effect: Effect = "wrong" if old else "refused"
    text = f"{what}; {served.called} ignores that and answers wrongly" if old else what
    return Finding(effect, about, text, remedy, None if old else says)


def scale(config: Mapping[str, Any]) -> float | None:
    """By what B·A is multiplied: alpha / r, or alpha / √r with use_rslora (Kalajdzievski 2023, arXiv:2312.03732)."""
    r, alpha = config.get("r"), config.get("lora_alpha")
    if type(r) is not int or r <= 0 or isinstance(alpha, bool) or not isinstance(alpha, int | float):
        return None
    return float(alpha) / (r**0.5 if config.get("use_rslora") else r)
