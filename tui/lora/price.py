"""A session's plan that says what serving adapters costs: the base alone, one adapter, all of them."""

from dataclasses import dataclass
from typing import Any

from lora.served.serving import Serving
from tuning.records import Decide, Plan, Workload

ADAPTED, BASE = "adapters", "base"


@dataclass(frozen=True, slots=True)
class Load:
    """Tokens and requests of a run."""

    requests: int = 200
    concurrency: int = 16
    input_len: int = 512
    output_len: int = 128


def price_plan(serving: Serving, given: dict[str, Any], load: Load, blocks: int, vllm: str | None) -> Plan:
    """Two workloads of the same load on each candidate: one whose requests go to the adapters (to the base where there
    are none), one whose requests go to the base, which shows what LoRA costs those who use no adapter.

    Candidates against the base served without LoRA: one adapter; with several, all of them with a slot each
    (`max-loras`), and all in half the slots and in one, where they take turns. Paths stand in the plan, so it is read
    without the registry.
    """
    modules = [each.module for each in serving.adapters]
    names = tuple(each.name for each in serving.adapters)
    common = {"max-lora-rank": serving.max_rank, "enable-lora": True}
    count = len(modules)
    # What tells candidates apart comes first: a narrow table cuts their names off.
    points: list[dict[str, Any]] = [{"max-loras": 1, "lora-modules": modules[:1], **common}]
    for slots in sorted({count, (count + 1) // 2, 1}, reverse=True) if count > 1 else ():
        points.append({"max-loras": slots, "lora-modules": modules, **common})
    shape = {"input_len": load.input_len, "output_len": load.output_len, "range_ratio": 0.0, "prefix_len": 0}
    common_load: dict[str, Any] = {
        "dataset": "random",
        "requests": load.requests,
        "max_concurrency": load.concurrency,
        "ignore_eos": True,
        "repeats": 2,
        "shape": shape,
    }
    workloads = (
        Workload(name=ADAPTED, adapters=names, **common_load),
        Workload(name=BASE, **common_load),
    )
    return Plan(
        name=f"price of {names[0]}" if count == 1 else f"price of {count} adapters",
        model=serving.base,
        workloads=workloads,
        vllm=vllm,
        server=given,
        explicit_candidates=tuple(points),
        decide=Decide(blocks=blocks, limits=("error_rate == 0",)),
    )
