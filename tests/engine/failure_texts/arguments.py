"""Flags."""

from tests.engine.failure_texts.text import Text

TEXTS: dict[str, Text] = {
    "flag-removed": Text(
        "unknown_flag", (), "use --max-cudagraph-capture-size",
        after="usage: vllm serve [model_tag] [options]\nvllm: error: unrecognized arguments: "
        "--max-seq-len-to-capture 8192\n",
    ),
    "flag-misspelt": Text(
        "unknown_flag", (), "Did you mean --max-model-len?",
        after="vllm: error: unrecognized arguments: --max-model-length=4096\n",
    ),
    "flag-several": Text(
        "unknown_flag", (), "--swap-space was removed after vLLM 0.17.1",
        after="api_server.py: error: unrecognized arguments: --swap-space 4 --preemption-mode swap\n",
    ),
    "flag-too-new": Text(
        "unknown_flag", (), "--max-num-active-seqs came with vLLM 0.32.0: use --max-num-seqs",
        after="vllm: error: unrecognized arguments: --max-num-active-seqs 64\n",
    ),
    "flag-value": Text(
        "unknown_flag", (), "--max-num-seqs", cause="invalid int value: 'many'",
        after="usage: vllm serve [model_tag] [options]\nvllm serve: error: argument --max-num-seqs: invalid int value: "
        "'many'\n",
    ),
    "flag-ambiguous": Text(
        "unknown_flag", (), "whole name",
        after="vllm serve: error: ambiguous option: --max-num could match --max-num-seqs, --max-num-batched-tokens\n",
    ),
}  # fmt: skip
