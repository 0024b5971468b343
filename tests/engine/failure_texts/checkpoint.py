"""Checkpoints and the hub."""

from tests.engine.failure_texts.text import Text

TEXTS: dict[str, Text] = {
    "no-path": Text(
        "checkpoint_invalid",
        ("pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
         "  Value error, Invalid repository ID or local directory specified: '/models/x'. [type=value_error]"),
        "Check the path", cause="/models/x",
    ),
    "no-repository": Text(
        "checkpoint_invalid",
        ("OSError: acme/nothing is not a local folder and is not a valid model identifier listed on "
         "'https://huggingface.co/models'",),
        "HF_TOKEN", cause="acme/nothing",
    ),
    "no-config": Text(
        "checkpoint_invalid", ("OSError: /models/x does not appear to have a file named config.json. Checkout",),
        "holds config.json, or", cause="/models/x holds no config.json:",
    ),
    "no-weights": Text("checkpoint_invalid", ("RuntimeError: Cannot find any model weights with `/models/x`",),
                       "--load-format", cause="/models/x"),
    "shard": Text(
        "checkpoint_invalid",
        ('FileNotFoundError: No such file or directory: "/models/x/model-00002-of-00004.safetensors"',),
        "Fetch that file", cause="model-00002-of-00004.safetensors",
    ),
    "header": Text(
        "checkpoint_invalid",
        ("safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully "
         "covered",),
        "git-lfs", cause="incomplete metadata",
    ),
    "uninitialized": Text(
        "checkpoint_invalid",
        ("ValueError: Following weights were not initialized from checkpoint: {'lm_head.weight'}",), "again",
    ),
    "offline": Text(
        "checkpoint_invalid",
        ("huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder for the "
         "specified revision on the local disk and outgoing traffic has been disabled.",),
        "HF_HUB_OFFLINE=0",
    ),
    "gated": Text(
        "gated_model",
        ("huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1)", "",
         "Cannot access gated repo for url https://huggingface.co/acme/Secret-8B/resolve/main/config.json.",
         "Access to model acme/Secret-8B is restricted. You must have access to it and be authenticated."),
        "HF_TOKEN", cause="acme/Secret-8B",
    ),
    "gated-transformers": Text(
        "gated_model",
        ("OSError: You are trying to access a gated repo.",
         "Make sure to have access to it at https://huggingface.co/acme/Secret-8B."),
        "HF_TOKEN", cause="acme/Secret-8B",
    ),
    "forbidden": Text(
        "gated_model",
        ("requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: "
         "https://huggingface.co/acme/Secret-8B/resolve/main/config.json",),
        "HF_TOKEN", cause="acme/Secret-8B",
    ),
    "too-new-a-model": Text(
        "version_mismatch",
        ("KeyError: 'qwen9'", "", "During handling of the above exception, another exception occurred:", "",
         "ValueError: The checkpoint you are trying to load has model type `qwen9` but Transformers does not recognize "
         "this architecture."),
        "Upgrade vLLM", cause="qwen9",
    ),
    "architecture-of-old": Text(
        "version_mismatch",
        ("ValueError: Model architecture MllamaForConditionalGeneration was supported in vLLM until v0.10.2, and is "
         "not supported anymore. Please use an older version of vLLM",),
        "vLLM 0.10.2", cause="MllamaForConditionalGeneration",
    ),
    "architecture": Text(
        "version_mismatch",
        ("ValueError: Model architectures ['Qwen9ForCausalLM'] are not supported for now. Supported architectures: x",),
        "Upgrade vLLM", cause="Qwen9ForCausalLM",
    ),
}  # fmt: skip
