"""The plan by which serving adapters gets its price."""

import os
from pathlib import Path

import pytest

from engine.records import Installation
from lora.adapters.registry import Origin, register
from lora.served.serving import Serving, to_serve
from store.database import open_writer
from tests.lora.made_adapters import tiny_factors, write_adapter, write_model
from tui.lora.price import ADAPTED, BASE, Load, price_plan
from tuning.plans.lora_modules import addressed
from tuning.plans.plan_file import plan_toml, read_plan

VLLM = Installation("vllm", "/nowhere/python", ("vllm",), "/nowhere", "0.32.0")


def serving(tmp_path: Path, *names: str) -> Serving:
    base = write_model(tmp_path / "base")
    adapters = []
    for at, name in enumerate(names):
        folder = write_adapter(tmp_path / name, tiny_factors(4 + 8 * at), r=4 + 8 * at)
        with open_writer(tmp_path / "llmtune.db") as writer:
            adapters.append(register(writer, tmp_path, folder, name, Origin(base_model=str(base))).adapter)
    return to_serve(tmp_path, adapters, VLLM, os.environ)


@pytest.mark.parametrize(
    ("names", "points"),
    [
        (("a",), [(1, 1)]),
        (("a", "b"), [(1, 1), (2, 2), (2, 1)]),
        (("a", "b", "c", "d"), [(1, 1), (4, 4), (4, 2), (4, 1)]),
    ],
)
def test_base_one_all_and_fewer_slots(tmp_path: Path, names: tuple[str, ...], points: list[tuple[int, int]]) -> None:
    served = serving(tmp_path, *names)
    plan = price_plan(served, {"max-model-len": 64}, Load(requests=9), 3, None)
    assert read_plan(plan_toml(plan), check_model=lambda model: None) == plan
    assert [(len(each["lora-modules"]), each["max-loras"]) for each in plan.explicit_candidates] == points
    assert {each["max-lora-rank"] for each in plan.explicit_candidates} == {served.max_rank}  # one price of the rank
    adapted, base = plan.workloads
    assert (adapted.name, base.name, base.adapters, adapted.requests) == (ADAPTED, BASE, (), 9)
    assert addressed(adapted, plan.server) == ()
    assert [addressed(adapted, each) for each in plan.explicit_candidates] == [names[:count] for count, _ in points]
    assert plan.decide.blocks == 3
