"""An adapter's files and what an installed vLLM makes of them, as lines."""

import os
from collections.abc import Sequence
from typing import Any

from engine.launch.installation import find_vllm
from engine.records import Installation, VllmNotFound
from engine.text import clean
from lora.adapters.adapter_findings import Finding
from lora.adapters.importing import Examined
from lora.adapters.registry import parameters_of
from tui.format import ABSENT, number

WORDS = {"refused": "refused", "wrong": "wrong", "idle": "no effect", "note": "note"}


def installed(explicit: str | None) -> Installation | None:
    """The vLLM whose rules are taken; None without one, unless one was named."""
    try:
        return find_vllm(explicit, os.environ)
    except VllmNotFound:
        if explicit or os.environ.get("LLMTUNE_VLLM"):
            raise
        return None


def megabytes(size: int | None) -> str:
    """`20.2 MB`, of 10^6 bytes as files are counted; below one in kB."""
    if size is None:
        return ABSENT
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"


def parameters_text(parameters: dict[str, Any]) -> str:
    """`r 16, alpha 32, q_proj v_proj`."""
    targets = parameters.get("targets") or ()
    names = " ".join(clean(str(name), 40) for name in targets[:8])
    said = [f"r {clean(str(parameters.get('r')), 20)}", f"alpha {clean(str(parameters.get('alpha')), 20)}"]
    if parameters.get("use_rslora"):
        said.append("rsLoRA")
    return ", ".join([*said, names] if names else said)


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Each with what to do, and with vLLM's own words where it refuses."""
    lines = []
    for finding in findings:
        lines.append(f"  {WORDS[finding.effect]:<9}  {finding.text}")
        if finding.vllm is not None:
            lines.append(f"  {'':<9}  vLLM says: {clean(finding.vllm, 300)}")
        lines.append(f"  {'':<9}  → {finding.remedy}")
    return lines


def examined_lines(name: str, examined: Examined) -> list[str]:
    """What it is, and what vLLM makes of it."""
    adapter = examined.adapter
    parameters = parameters_of(adapter)
    size = adapter.weights.stat().st_size
    held = number(adapter.parameters, 0, " parameters")
    what = f"{name}: {parameters_text(parameters)}, {held}, {megabytes(size)}"
    by = f"vLLM {examined.vllm}" if examined.vllm else "the newest vLLM that is known"
    base = clean(examined.base, 200) if examined.base else "a base that it does not name"
    verdict = "would not serve it as it was trained" if examined.prevented else "serves it"
    head = f"{by} {verdict}, on {base}{':' if examined.findings else ''}"
    return [what, head, *finding_lines(examined.findings)]
