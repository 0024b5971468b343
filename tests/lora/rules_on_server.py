"""Our rules against a running server: it loads what we do not refuse, and refuses what we do.

For a test that has a server of the small model with VLLM_ALLOW_RUNTIME_LORA_UPDATING and `--max-lora-rank 16`.
"""

import os
import struct
from collections.abc import Callable
from pathlib import Path

import httpx

from engine.records import Installation
from lora.adapters.importing import examine
from lora.sizes.base_model import BaseModel, read_base
from tests.lora.made_adapters import Tensors, factors, write_adapter

MAX_RANK = 16
_Q, _DOWN = "model.layers.0.self_attn.q_proj", "model.layers.0.mlp.down_proj"


def little(outputs: int, r: int) -> bytes:
    """A B factor that changes answers next to nothing: another's numbers must not spoil what is asked after."""
    return struct.pack("<f", 1e-6) * (outputs * r)


def kinds(base: BaseModel) -> dict[str, Tensors]:
    """Adapters that do not fit the base in all ways that we tell apart, and one that does."""
    width, inner = base.width, base.feed_forward

    def one(module: str, r: int, inputs: int, outputs: int) -> Tensors:
        return factors(module, r, inputs, outputs, little(outputs, r))

    plain = one(_Q, 4, width, width)
    a, b = plain
    return {
        "plain": plain,
        "narrower": one(_Q, 4, width // 2, width // 2),
        "wider": one(_Q, 4, 2 * width, 2 * width),
        "wider_inside": one(_DOWN, 4, 2 * inner, width),
        "no_such_block": one("model.layers.777.self_attn.q_proj", 4, width, width),
        "no_such_layer": one("model.layers.0.self_attn.qkv_proj", 4, width, 2 * width),
        "half": {a: plain[a]},
        "uneven": {a: ("F32", (3, width), None), b: plain[b]},
        "rank_too_high": one(_Q, 24, width, width),
        "idle": factors(_Q, 4, width, width, bytes(4 * width * 4)),
    }


def differences(
    url: str, model: Path, installation: Installation, folder: Path, ask: Callable[[str], str]
) -> list[str]:
    """What a server did otherwise than our rules say, one line each; `ask` gives a model's greedy answer."""
    base, found = read_base(model), []
    plain = ask(model.name)
    for kind, tensors in kinds(base).items():
        name = f"rules-{kind}"
        place = write_adapter(folder / kind, tensors, r=24 if kind == "rank_too_high" else 4)
        examined = examine(place, str(model), installation, os.environ, MAX_RANK)
        effects = {finding.effect for finding in examined.findings if finding.prevents}
        request = {"lora_name": name, "lora_path": str(place)}
        answer = httpx.post(f"{url}/v1/load_lora_adapter", json=request, timeout=120, trust_env=False)
        if (answer.status_code == 200) == ("refused" in effects):
            found.append(f"{kind}: we say {effects or 'nothing'}, it says {answer.status_code} {answer.text[:200]}")
        if kind in ("no_such_block", "idle") and ask(name) != plain:
            found.append(f"{kind}: it changes answers")
        httpx.post(f"{url}/v1/unload_lora_adapter", json={"lora_name": name}, timeout=120, trust_env=False)
    return found
