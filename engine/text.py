"""Text that did not come from us: made safe to show (`clean`) and safe to keep (`redact…`).

A log line, model name, path or error may hold terminal escapes, control characters, bidirectional overrides or a key.
Nothing of that may reach a terminal, a file of ours or a report.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

HIDDEN = "***"

# CSI, then OSC/DCS/SOS/PM/APC up to BEL or ST (or the end, where a log was cut), then two-character escapes (ECMA-48).
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\Z)|\x1b[ -/]*[0-~]|\x1b", re.DOTALL
)


def strip_ansi(text: str) -> str:
    """Text without terminal escape sequences; everything else, line ends included, as it was."""
    return _ESCAPES.sub("", text) if "\x1b" in text or "\x9b" in text else text


def clean(text: str, limit: int | None = None) -> str:
    """One line that any terminal can show: no escapes, control, bidirectional or invisible characters.

    Each tab and line end becomes a space, a lone surrogate U+FFFD. Square brackets stay: whoever shows the text shows
    it without markup. Longer than `limit` characters, it ends in an ellipsis and is exactly `limit` long.
    """
    if not text.isprintable():
        text = "".join(map(_shown, strip_ansi(text).replace("\r\n", "\n")))
    if limit is not None and len(text) > limit:
        text = text[: max(limit - 1, 0)] + "…"
    return text


def _shown(char: str) -> str:
    if char.isprintable():
        return char
    if char in "\t\n\r\v\f\u2028\u2029\x85":
        return " "
    category = unicodedata.category(char)
    if category == "Cs":
        return "\N{REPLACEMENT CHARACTER}"
    if category == "Zs":
        return " "
    return "" if category in ("Cc", "Cf") else char


_SECRET_WORDS = frozenset(
    {"token", "key", "apikey", "secret", "password", "passwd", "credential", "credentials", "auth"}
)

_KNOWN_TOKENS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|AKIA[A-Z0-9]{16}|"
    r"nvapi-[\w-]{16,}|xox[baprs]-[\w-]{10,})"
)
_BEARER = re.compile(r"(?i)(\bbearer\s+|\bauthorization:\s{0,8}basic\s+)[^\s'\",;]+")
_URL_PASSWORD = re.compile(r"(://[^/\s:@]{0,200}):[^/\s@]{1,200}@")
_URL_TOKEN = re.compile(r"(\bhttps?://)[^/\s:@]{1,200}@")
# A tokenizer's special tokens are called like secrets.
_SPECIAL = ("bos", "eos", "pad", "unk", "sep", "cls", "mask")
_SPECIAL_BEFORE = tuple([word] for word in _SPECIAL)
# `api_key=x`, `--api-key x`, `'api_key': ['x', 'y']`, `HF_TOKEN=x`. Every length is bounded: logs are not ours, and an
# unbounded search through a line of theirs would take the square of its length.
_NAMED = re.compile(
    r"(?i)(?<![a-z0-9])"
    + "".join(f"(?<!{word}_)" for word in _SPECIAL)
    + r"((?:api[_-]?key|token|secret(?:[_-]access)?(?:[_-]key)?|access[_-]key|password|passwd)['\"]?"
    r"(?:\s{0,8}[=:]\s{0,8}|\s{1,8}))"
    r"(\[[^\]]{0,2000}\]|'(?:[^'\\]|\\.){0,500}'|\"(?:[^\"\\]|\\.){0,500}\"|[^\s,'\"})]+)"
)
_FLAG_BEFORE = re.compile(r"--[a-z-]*$")


def redact(text: str) -> str:
    """Text with keys, tokens and passwords replaced by `***`, wherever they stand in a line or a command."""
    if "@" in text:
        text = _URL_TOKEN.sub(rf"\1{HIDDEN}@", _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", text))
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    text = _NAMED.sub(_hide_named, text)
    return _KNOWN_TOKENS.sub(HIDDEN, text)


def _hide_named(match: re.Match[str]) -> str:
    name, value = match.groups()
    # Prose ("token embedding", "password: None") is not a secret; a flag's or an assignment's value is.
    assigned = name.rstrip()[-1] in "=:" or _FLAG_BEFORE.search(
        match.string[max(match.start() - 40, 0) : match.start()]
    )
    if not assigned or value in ("None", "null", "True", "False", "''", '""', HIDDEN):
        return match.group()
    return name + HIDDEN


def redact_env(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment fit to keep: values of variables named like a secret (`HF_TOKEN`, `VLLM_API_KEY`) are `***`."""
    return {name: HIDDEN if value and _names_secret(name) else redact(value) for name, value in environ.items()}


def redact_argv(argv: Iterable[str]) -> list[str]:
    """An argument list fit to keep: what follows `--api-key` and its like, up to the next flag, is `***`."""
    kept: list[str] = []
    hiding = False
    for argument in argv:
        if argument.startswith("--"):
            flag, equals, _ = argument.partition("=")
            secret = _names_secret(flag)
            hiding = secret and not equals
            kept.append(f"{flag}={HIDDEN}" if secret and equals else redact(argument))
        else:
            kept.append(HIDDEN if hiding else redact(argument))
    return kept


def redact_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags of a server fit to keep: texts called like a secret are `***`, also within lists and objects."""
    return {name: _redacted(value, _names_secret(name)) for name, value in flags.items()}


def _redacted(value: Any, secret: bool) -> Any:
    if isinstance(value, str):
        return HIDDEN if secret and value else redact(value)
    if isinstance(value, list | tuple):
        return [_redacted(each, secret) for each in value]
    if isinstance(value, Mapping):
        return redact_flags(value)
    return value


def _names_secret(name: str) -> bool:
    words = re.split(r"[^a-z0-9]+", name.lower())
    return not _SECRET_WORDS.isdisjoint(words) and not (words[-1] == "token" and words[:-1][-1:] in _SPECIAL_BEFORE)
