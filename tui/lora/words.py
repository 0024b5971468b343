"""Settings, losses, evaluations and reports of data sets in words, whatever their rows hold. Pure."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.numbers import finite
from engine.text import clean
from store.records import AdapterRecord, EvaluationRecord
from tui.format import ABSENT, number
from tui.lora.curves import loss_text, rate_text
from tui.lora.lines import day, size_text


def settings_text(settings: Mapping[str, Any]) -> str:
    """`r 16, alpha 32, q_proj v_proj, 2e-4, batch 1 × 8, nf4`; what is missing or odd is left out."""
    said = []
    for key, name in (("r", "r"), ("alpha", "alpha")):
        value = finite(settings.get(key))
        if value is not None:
            said.append(f"{name} {number(value)}")
    said.append(targets_text(settings.get("targets")))
    said.append(rate_text(finite(settings.get("learning_rate"))))
    batch, accumulation = finite(settings.get("batch")), finite(settings.get("accumulation"))
    if batch is not None and accumulation is not None:
        said.append(f"batch {number(batch)} × {number(accumulation)}")
    said.append(clean(str(settings.get("quantization") or ""), 20))
    return ", ".join(text for text in said if text and text != ABSENT)


def targets_text(targets: object) -> str:
    """`all-linear`, or the layers' names."""
    if isinstance(targets, str):
        return clean(targets, 60)
    if isinstance(targets, Sequence):
        return clean(" ".join(str(name)[:40] for name in targets[:8]), 120)
    return ""


def environment_text(environment: Mapping[str, Any]) -> str:
    """GPU and versions as they were when it began."""
    words = []
    for key in ("gpu", "device", "python", "torch", "transformers", "peft", "bitsandbytes"):
        value = environment.get(key)
        if isinstance(value, str) and value:
            words.append(clean(value, 60) if key in ("gpu", "device") else f"{key} {clean(value, 30)}")
    return ", ".join(words)


def losses_text(adapter: AdapterRecord) -> str:
    """Each that was kept with it."""
    said = [
        f"{clean(str(name).replace('_', ' '), 30)} {loss_text(value)}"
        for name, one in adapter.losses.items()
        if (value := finite(one)) is not None
    ]
    return ", ".join(said[:6]) or ABSENT


def evaluation_text(found: EvaluationRecord) -> str:
    """What its answers to questions that it never saw came to, against those of its base."""
    base, own, difference = (finite(each) for each in (found.base_loss, found.adapter_loss, found.difference))
    low, high = finite(found.low), finite(found.high)
    interval = f" [{signed(low)}, {signed(high)}]" if low is not None and high is not None else ""
    return (
        f"loss {loss_text(own)} against {loss_text(base)} of its base: {signed(difference)}{interval}, perplexity "
        f"{perplexity(base)} → {perplexity(own)}, better on {number(finite(found.improved))} of "
        f"{number(finite(found.records))} records"
    )


def signed(value: float | None) -> str:
    """A difference of losses with its sign."""
    if value is None:
        return ABSENT
    return f"{'−' if value < 0 else '+'}{loss_text(abs(value))}"


def perplexity(loss: float | None) -> str:
    """e to the loss in nats; `–` where that is beyond every measure."""
    return ABSENT if loss is None or not 0 <= loss < 50 else f"{math.exp(loss):,.2f}"


PROOFS = {
    "proved": "in effect: its answers are likelier than its base finds them",
    "differs": "in effect: it answers otherwise than its base",
    "undecided": "it differs from its base, in no direction for sure",
    "wrong_direction": "NOT in effect: its answers are less likely than its base finds them",
    "nothing": "NOT in effect: it changes nothing",
}


def proof_text(served: Mapping[str, Any]) -> str:
    """What was last proved of it on a server (`served` of its row), in a line; "" where nothing was."""
    state = served.get("state")
    if not isinstance(state, str) or not state:
        return ""
    losses = served.get("losses")
    numbers = ""
    if isinstance(losses, Mapping):
        own, base = finite(losses.get("adapter")), finite(losses.get("base"))
        numbers = f", loss {loss_text(own)} against {loss_text(base)}"
    at = served.get("at")
    when = f"{day(at)}, " if isinstance(at, str) else ""
    return f"{when}server {clean(str(served.get('server_id')), 12)}: {PROOFS.get(state) or clean(state, 60)}{numbers}"


def source_text(source: Mapping[str, Any]) -> str:
    size = finite(source.get("bytes"))
    return f"{source.get('path')}, {source.get('form')}, {size_text(int(size)) if size is not None else ABSENT}"


def report_text(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The kept report (`lora.data.report.report_json`) as label and text, whatever an older one holds."""
    said: list[tuple[str, str]] = []
    for key, label in (("left_out", "left out"), ("changed", "changed")):
        kinds = report.get(key)
        for fault in kinds if isinstance(kinds, list) else ():
            if isinstance(fault, Mapping):
                lines = fault.get("lines")
                first = f" (line {number(finite(lines[0]))}…)" if isinstance(lines, list) and lines else ""
                said.append(
                    (label, f"{number(finite(fault.get('number')))} {clean(str(fault.get('what')), 120)}{first}")
                )
    lengths = report.get("length_tokens")
    if isinstance(lengths, Mapping):
        figures = [f"{name} {number(finite(lengths.get(name)))}" for name in ("median", "p95", "longest")]
        said.append(("tokens", ", ".join(figures)))
    advice = report.get("advice")
    said += [("note", clean(str(text), 300)) for text in (advice if isinstance(advice, list) else ())[:6]]
    return said


def or_absent(value: float | None, say: Callable[[float], str]) -> str:
    return ABSENT if value is None else say(value)
