"""Flags that this vLLM does not take, or not with this value: argparse's words, on standard error, exit status 2."""

import re
from collections.abc import Mapping
from typing import Any

from engine.failures.flag_history import flag_advice
from engine.failures.lora import fitting_rank
from engine.failures.rule import Around, Numbers, rule
from engine.launch.command import flag_name

_SHOWN = 3


def _unknown(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    flags = [word.partition("=")[0] for word in words["arguments"].split() if re.match(r"--?[A-Za-z]", word)]
    names = list(dict.fromkeys(flag_name(flag) for flag in flags))
    if not names:
        return {"do": "Put a flag before it, or take it out; quote a value that holds spaces."}
    return {"do": " ".join(flag_advice(name, around.known_flags, around.version) for name in names[:_SHOWN])}


RULES = (
    rule(
        "unknown_flag",
        r"error: unrecognized arguments: (?P<arguments>.+)",
        "This vLLM does not know: {arguments}.",
        "{do}",
        derive=_unknown,
    ),
    rule(
        "lora_rank",
        r"error: argument --max-lora-rank: invalid choice: '?(?P<rank>\d{1,6})'?",
        "vLLM does not take --max-lora-rank {rank}: it is one of a few sizes.",
        "{do}",
        derive=fitting_rank,
    ),
    rule(
        "lora_rank",
        r"(?s)max_lora_rank\n\s*Input should be [^\[\n]{1,120}\[type=literal_error, input_value=(?P<rank>\d{1,6})"
        r"|max_lora_rank \((?P<said>\d{1,6})\) must be one of",
        "vLLM does not take this --max-lora-rank[[ {rank}]]: it is one of a few sizes.",
        "{do}",
        derive=lambda numbers, words, around: fitting_rank(
            {"rank": numbers.get("rank", numbers.get("said", 0))}, words, around
        ),
    ),
    rule(
        "dtype_unsupported",
        r"error: argument --dtype: invalid choice: '?(?P<value>[^'\s(]{1,80})",
        "vLLM knows no dtype {value}.",
        "Set --dtype to auto, bfloat16 or float16.",
    ),
    rule(
        "quantization_unsupported",
        r"error: argument (?:--quantization/-q|--quantization|-q): invalid choice: '?(?P<value>[^'\s(]{1,80})",
        "This vLLM knows no quantization {value}.",
        "Leave --quantization out: vLLM reads the method from the checkpoint.",
    ),
    rule(
        "unknown_flag",
        r"error: argument (?P<flag>-[\w/-]{1,80}): "
        r"(?P<reason>(?:invalid|expected|not allowed|ignored|one of)[^\n]{1,300}"
        r"|[^\n]{1,200} cannot be converted[^\n]{0,100})",
        "{flag}: {reason}.",
        "Give {flag} a value that it takes, or leave it out.",
    ),
    rule(
        "unknown_flag",
        r"error: ambiguous option: (?P<flag>-[\w-]{1,80}).{0,20} could match (?P<matches>[^\n]{1,300})",
        "{flag} is short for several flags: {matches}.",
        "Write the whole name of one of them.",
    ),
)
