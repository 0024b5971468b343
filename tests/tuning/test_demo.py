import pytest

from tuning.plans.demo import demo_plan
from tuning.plans.grid import candidates
from tuning.plans.plan_flags import KNOBS
from tuning.scheduling.budget import estimate


@pytest.mark.parametrize("gpu", [False, True])
def test_the_demo_tries_each_knob_once_on_two_workloads_in_two_blocks(gpu: bool) -> None:
    plan = demo_plan("/models/m", None, gpu)
    found, skipped = candidates(plan)
    assert [list(each.settings) for each in found[1:]] == [
        [knob] for knob in ("max-num-batched-tokens", "max-num-seqs", "gpu-memory-utilization")
    ]
    assert set(KNOBS) == {name for each in found for name in each.settings}
    assert skipped == []
    assert (len(plan.workloads), plan.decide.blocks) == (2, 2)
    assert all(workload.warmup and workload.repeats > 1 for workload in plan.workloads)


def test_on_two_cores_it_ends_within_twenty_minutes() -> None:
    """40 s a launch and 5 s to stop; a run at 95 output tokens a second, at half of that for the slowest candidate."""
    plan = demo_plan("/models/m", None)
    seconds = {workload.name: workload.requests * workload.shape["output_len"] / 95 for workload in plan.workloads}
    assert all(5 < each < 12 for each in seconds.values())
    cost = estimate(plan, candidates(plan)[0], 45, {name: 1.5 * each + 1 for name, each in seconds.items()}, "")
    assert (cost.launches, cost.runs) == (10, 60)
    assert cost.hours * 60 < 20


def test_the_cache_of_the_cpu_build_follows_the_utilization() -> None:
    plan = demo_plan("/models/m", None)
    assert "VLLM_CPU_KVCACHE_SPACE" not in plan.server_env
    assert plan.server["gpu-memory-utilization"] == 0.1


@pytest.mark.parametrize("memory_gib", [7.5, 15.0, 24.0, 256.0])
def test_the_cpu_server_fits_any_machine(memory_gib: float) -> None:
    plan = demo_plan("/models/m", None, memory_gib=memory_gib)
    share = plan.server["gpu-memory-utilization"]
    assert share * memory_gib >= 2.3
    assert plan.explicit_candidates[2]["gpu-memory-utilization"] > 1.4 * share
    assert plan.explicit_candidates[2]["gpu-memory-utilization"] < 0.5


def test_prompts_fit_the_model_length() -> None:
    for gpu in (False, True):
        plan = demo_plan("/models/m", None, gpu)
        for workload in plan.workloads:
            longest = sum(value for key, value in workload.shape.items() if key.endswith("_len"))
            assert longest < plan.server["max-model-len"]
