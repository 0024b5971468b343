"""The embedded default plan of `llmtune demo`: small enough to finish over a coffee, real in every part."""

import math

from tuning.records import Decide, Plan, Workload

DEMO_NAME = "demo"
BLOCKS = 2
_CPU_SERVER_GIB = 2.3  # 0.8 of it for the program and the weights, the rest for the KV cache
_ENV = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}


def demo_plan(model: str, vllm: str | None, gpu: bool = False, memory_gib: float = 24.0) -> Plan:
    """Baseline and three candidates, one for each knob, on two workloads in two blocks: 10 launches, 60 runs.

    `gpu` chooses the sizes for a machine with an NVIDIA GPU. Both start eagerly, since compiling takes longer than all
    the runs of a launch together; the numbers show the way, not what the model could do. `memory_gib` is the machine's
    memory, of which the CPU build's utilization is a share.
    """
    share = max(0.1, math.ceil(100 * _CPU_SERVER_GIB / memory_gib) / 100)
    return Plan(
        name=DEMO_NAME,
        model=model,
        workloads=_gpu_workloads() if gpu else _cpu_workloads(),
        vllm=vllm,
        server=_gpu_server() if gpu else _cpu_server(share),
        server_env=dict(_ENV),
        explicit_candidates=(
            ({"max-num-batched-tokens": 2048}, {"max-num-seqs": 16}, {"gpu-memory-utilization": 0.6})
            if gpu
            else (
                {"max-num-batched-tokens": 256},
                {"max-num-seqs": 4},
                {"gpu-memory-utilization": round(1.5 * share, 2)},
            )
        ),
        decide=Decide(blocks=BLOCKS, limits=("error_rate == 0",)),
    )


def _cpu_server(share: float) -> dict[str, object]:
    """Two cores, about 95 output tokens a second. The utilization is of the machine's memory here, so it is small."""
    return {"enforce-eager": True, "max-model-len": 1024, "gpu-memory-utilization": share, "max-num-seqs": 16}


def _gpu_server() -> dict[str, object]:
    return {"enforce-eager": True, "max-model-len": 2048, "gpu-memory-utilization": 0.4}


def _cpu_workloads() -> tuple[Workload, ...]:
    """6 to 12 s a run there, 35 s a start: a quarter of an hour in all.

    The shared prefix is two of the CPU's cache blocks of 128 tokens, or nothing would be shared.
    """
    return _workloads(
        requests=24,
        users=8,
        chat={"input_len": 64, "output_len": 32},
        prefix={"prefix_len": 256, "suffix_len": 32, "num_prefixes": 3, "output_len": 24},
    )


def _gpu_workloads() -> tuple[Workload, ...]:
    return _workloads(
        requests=400,
        users=64,
        chat={"input_len": 512, "output_len": 128},
        prefix={"prefix_len": 512, "suffix_len": 64, "num_prefixes": 8, "output_len": 128},
    )


def _workloads(requests: int, users: int, chat: dict[str, object], prefix: dict[str, object]) -> tuple[Workload, ...]:
    """Prompts of one length that share nothing, and prompts that begin alike."""
    return (
        Workload(
            name="chat",
            dataset="random",
            requests=requests,
            max_concurrency=users,
            repeats=2,
            shape={**chat, "range_ratio": 0.0, "prefix_len": 0},
        ),
        Workload(
            name="prefix",
            dataset="prefix_repetition",
            requests=requests,
            max_concurrency=users,
            ignore_eos=True,
            repeats=2,
            shape=prefix,
        ),
    )
