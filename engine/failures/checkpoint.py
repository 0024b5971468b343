"""Checkpoints that are not there, not whole, not ours to read, or of an architecture that this vLLM does not know."""

from engine.failures.rule import rule

_REPOSITORY = r"[\w-]{1,100}/[\w.-]{1,100}?"
_LOGIN = "Accept its licence on the hub, and set HF_TOKEN in [server.env] to a token of that account."
_AGAIN = "Fetch that file again: it is cut short, or a git-lfs pointer of a few bytes."

RULES = (
    rule(
        "gated_model",
        r"Access to model (?P<model>[\w./-]{1,200}) is restricted|You are trying to access a gated repo"
        rf"(?:[\s\S]{{0,300}}?https://huggingface\.co/(?P<repo>{_REPOSITORY})[/.]?(?=[\s/]|$))?|GatedRepoError"
        rf"(?:[\s\S]{{0,300}}?https://huggingface\.co/(?:api/models/)?(?P<asked>{_REPOSITORY})[/.]?(?=[\s/]|$))?",
        "The model[[ {model}]][[ {repo}]][[ {asked}]] is gated: the hub asks who you are.",
        _LOGIN,
    ),
    rule(
        "gated_model",
        r"(?P<status>401|403) Client Error: \w+ for url: https://huggingface\.co/"
        r"(?:api/models/)?(?P<model>[\w-]{1,100}/[\w.-]{1,100})|Invalid user token|OAuth token is invalid"
        r"|Invalid credentials in Authorization header",
        "The hub refuses[[ {model} to]] this account or token[[ (status {status})]].",
        _LOGIN,
    ),
    rule(
        "checkpoint_invalid",
        r"Invalid repository ID or local directory specified: ?'?(?P<model>[^'\s]+)?",
        "The model[[ {model}]] is neither a folder with a config.json nor a repository of the hub.",
        "Check the path; on the pod itself it may differ from the one on your machine.",
    ),
    rule(
        "checkpoint_invalid",
        r"(?<![^\s'\"])(?P<model>[^\s'\"]{1,300}) is not a local folder and is not a valid model identifier"
        r"|Repository Not Found for url: https://huggingface\.co/(?:api/models/)?(?P<repo>[\w-]{1,100}/[\w.-]{1,100})"
        r"|Repo id must (?:be in the form|use alphanumeric)[^\n]{0,200}?'(?P<path>/[^']{1,300})'",
        "The model[[ {model}]][[ {repo}]][[ {path}]] is neither a folder here nor a repository that the hub shows you.",
        "Check the path or name; set HF_TOKEN in [server.env] if the repository is private.",
    ),
    rule(
        "checkpoint_invalid",
        r"(?:couldn't connect to 'https://huggingface\.co'|outgoing traffic has been disabled"
        r"|Cannot find an appropriate cached snapshot folder|Cannot reach https://huggingface\.co)",
        "The model is not in the cache, and the hub could not be asked for it.",
        "Set HF_HUB_OFFLINE=0 in [server.env] to fetch it, or give the path of a folder that holds it.",
    ),
    rule(
        "checkpoint_invalid",
        r"(?<![^\s'\"])(?P<path>[^\s'\"]{1,300}?)/? does not appear to have a file named "
        r"(?P<file>[\w-]{1,60}(?:\.[\w-]{1,20}){0,4})",
        "{path} holds no {file}: it is no whole checkpoint.",
        "Give the folder that holds {file}, or fetch the model again.",
    ),
    rule(
        "checkpoint_invalid",
        r"Unrecognized model in (?P<path>[^\s'\"]{1,300}?)\. Should have a `?model_type|config file at "
        r"'(?P<config>[^']{1,300})' is not a valid JSON|Can't load (?:the configuration|tokenizer) (?:of|for) "
        r"'(?P<of>[^']{1,300})'",
        "The configuration of[[ {path}]][[ {config}]][[ {of}]] cannot be read.",
        "Fetch config.json and the tokenizer's files again, or correct the path.",
    ),
    rule(
        "checkpoint_invalid",
        r"Cannot find any model weights with `(?P<path>[^`\n]{1,300})`",
        "{path} holds no weights (no .safetensors, .bin or .pt file).",
        "Fetch the weights, or set --load-format to what is there (gguf, dummy).",
    ),
    rule(
        "checkpoint_invalid",
        r"(?:No such file or directory|FileNotFoundError)[^\n]{0,40}?['\"]?(?P<file>[^\s'\"]{0,300}"
        r"\.(?:safetensors|bin|pt|gguf)(?:\.index\.json)?)\b",
        "A shard of the checkpoint is missing: {file}.",
        "Fetch that file again; the checkpoint's index names it.",
    ),
    rule(
        "checkpoint_invalid",
        r"Error while deserializing header: (?P<reason>[^\n]{1,120})|SafetensorError: (?P<error>[^\n]{1,160})"
        r"|PytorchStreamReader failed (?P<torch>[^\n]{1,120})",
        "A file of weights is damaged[[: {reason}]][[: {error}]][[: it failed {torch}]].",
        _AGAIN,
    ),
    rule(
        "checkpoint_invalid",
        r"Following weights were not initialized from checkpoint: (?P<weights>[^\n]{1,300})"
        r"|There is no module or parameter named ['\"]?(?P<name>[^'\"\n]{1,200})['\"]? in (?P<model>\w{1,100})",
        "The weights do not fit the model's code[[: {weights} are missing]][[: {model} has no {name}]].",
        "Fetch the whole checkpoint again; if it is whole, use a vLLM of its release or later.",
    ),
    rule(
        "checkpoint_invalid",
        r"Attempted to load weight \((?P<have>[^()]{0,40}(?:\([^()]{0,60}\))?)\) into parameter "
        r"\((?P<want>[^()]{0,40}(?:\([^()]{0,60}\))?)\)",
        "A weight has the shape {have} where the configuration says {want}.",
        "Use the config.json that came with the weights, and leave --hf-overrides and --quantization out.",
    ),
    rule(
        "version_mismatch",
        r"model type `?(?P<type>[\w.-]{1,80})`? but Transformers does not recognize this architecture",
        "The installed transformers does not know the model type {type}.",
        "Upgrade vLLM and transformers to releases that came after the model.",
    ),
    rule(
        "version_mismatch",
        r"Model architecture (?P<architecture>\w{1,80}) was supported in vLLM until v(?P<last>[\d.]{1,12})[,\s]",
        "This vLLM no longer loads the architecture {architecture}; {last} did.",
        "Install vLLM {last} for it, or try --model-impl transformers.",
    ),
    rule(
        "version_mismatch",
        r"Model architectures (?P<architectures>\[[^\]\n]{1,200}\]) "
        r"(?:are not supported for now|failed to be inspected)",
        "This vLLM cannot load the architecture {architectures}.",
        "Upgrade vLLM, or try --model-impl transformers.",
    ),
)
