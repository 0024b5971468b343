import pytest

from engine.text import clean, redact, redact_argv, redact_env, redact_flags, strip_ansi


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("[/mnt/x] [core.py:58] [a=b] [/bold]", "[/mnt/x] [core.py:58] [a=b] [/bold]"),
        ("\x1b[1;36m(EngineCore pid=7)\x1b[0;0m INFO", "(EngineCore pid=7) INFO"),
        ("\x1b]0;own title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice control\x1b\\text", "text"),
        ("\x1b]52;c;never ended", ""),
        ("\x9b31mred\x9b0m", "red"),
        ("a\x1b(Bb\x1bcc\x1b", "abc"),
        ("model \u202egnp.exe\u202c \u2066x\u2069 \u200bzero", "model gnp.exe x zero"),
        ("a\tb\nc\r\nd\u2028e\u00a0f", "a b c d e f"),
        ("null\x00bell\x07back\x08", "nullbellback"),
        ("lone \ud83d surrogate", "lone \N{REPLACEMENT CHARACTER} surrogate"),
        ("grüße 模型 🚀 ▀▄█", "grüße 模型 🚀 ▀▄█"),
    ],
)
def test_clean_leaves_one_line_that_any_terminal_can_show(hostile: str, shown: str) -> None:
    assert clean(hostile) == shown
    assert clean(shown) == shown


def test_clean_cuts_to_the_limit_with_an_ellipsis() -> None:
    assert clean("abcdef", 6) == "abcdef"
    assert clean("abcdefg", 6) == "abcde…"
    assert clean("ab", 1) == "…"


def test_strip_ansi_keeps_line_ends_and_indentation() -> None:
    assert strip_ansi("\x1b[31m  a\tb\r\n\x1b[0mc") == "  a\tb\r\nc"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("--api-key abcdef --port 1", "--api-key *** --port 1"),
        ("--api-key=abcdef", "--api-key=***"),
        ("{'api_key': ['one', 'two'], 'model': 'm'}", "{'api_key': ***, 'model': 'm'}"),
        ('{"api_key": "one", "model": "m"}', '{"api_key": ***, "model": "m"}'),
        ("HF_TOKEN=secret vllm serve", "HF_TOKEN=*** vllm serve"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"),
        ("https://me:pass@host/x", "https://me:***@host/x"),
        ("https://ghp-token@host/x", "https://***@host/x"),
        ("Authorization: Basic bWU6cGFzcw==", "Authorization: Basic ***"),
        ("http://h/x?api_key=abc&n=1", "http://h/x?api_key=***"),
        ("download with hf_abcdefghijklmnopqrstuvwx failed", "download with *** failed"),
    ],
)
def test_redact_hides_keys_wherever_they_stand(said: str, kept: str) -> None:
    assert redact(said) == kept


@pytest.mark.parametrize(
    "plain",
    [
        "max_num_batched_tokens=8192, tokenizer='/models/q', skip_tokenizer_init=False",
        "GPU KV cache size: 2,115,440 tokens",
        "token embedding layer",
        "api_key=None",
        "http://127.0.0.1:8000/metrics",
        "git@host:me/x",
        """--hf-overrides '{"eos_token": "</s>", "pad_token": "x"}'""",
        "basic settings",
    ],
)
def test_redact_leaves_what_is_no_secret(plain: str) -> None:
    assert redact(plain) == plain


def test_redact_env_hides_by_name_and_by_value() -> None:
    environ = {
        "HF_TOKEN": "x",
        "VLLM_API_KEY": "y",
        "AWS_SECRET_ACCESS_KEY": "z",
        "DB_PASSWORD": "p",
        "NOTE": "use hf_abcdefghijklmnopqrstuvwx",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HOME": "/data/hf",
        "EMPTY_TOKEN": "",
    }
    assert redact_env(environ) == {
        "HF_TOKEN": "***",
        "VLLM_API_KEY": "***",
        "AWS_SECRET_ACCESS_KEY": "***",
        "DB_PASSWORD": "***",
        "NOTE": "use ***",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HOME": "/data/hf",
        "EMPTY_TOKEN": "",
    }


def test_redact_argv_hides_every_value_of_a_secret_flag() -> None:
    argv = ["vllm", "serve", "m", "--api-key", "one", "two", "--port", "1", "--hf-token=x", "--tokenizer", "t"]
    kept = ["vllm", "serve", "m", "--api-key", "***", "***", "--port", "1", "--hf-token=***", "--tokenizer", "t"]
    assert redact_argv(argv) == kept


def test_redact_flags_hides_by_name_and_by_value_at_any_depth() -> None:
    flags = {
        "api-key": ["one", "two"],
        "hf-token": True,
        "max-num-seqs": 64,
        "otlp-traces-endpoint": "http://me:pass@host:4317",
        "kv-transfer-config": {"extra": {"secret": "x", "port": 1, "urls": ["https://u:p@h"]}},
        "hf-overrides": {"eos_token": "</s>"},
    }
    assert redact_flags(flags) == {
        "api-key": ["***", "***"],
        "hf-token": True,
        "max-num-seqs": 64,
        "otlp-traces-endpoint": "http://me:***@host:4317",
        "kv-transfer-config": {"extra": {"secret": "***", "port": 1, "urls": ["https://u:***@h"]}},
        "hf-overrides": {"eos_token": "</s>"},
    }
