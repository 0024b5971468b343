"""What the three knobs are set to: flags, logs of real servers, /metrics, and vLLM's defaults where they are known."""

from dataclasses import asdict
from typing import Any

import pytest

from engine.limiting.knobs import Knob, Knobs, knobs_of, knobs_of_flags
from engine.logs.log_facts import read_facts
from store.records import SampleRecord, ServerRecord
from tests.engine.limit_series import gpu, sample
from tests.engine.observed import CPU, H200

H200_GPU = sample(0, gpus=[gpu()])


def facts(folder: Any, log: str) -> dict[str, Any]:
    return asdict(read_facts((folder / "logs" / log).read_text()))


def machine(name: str, gib: float, **more: Any) -> SampleRecord:
    return sample(0, gpus=[gpu(name=name, mem_total_gib=gib, **more)])


def test_flags_of_a_found_server_are_text_in_any_spelling() -> None:
    knobs = knobs_of_flags({"max_num_seqs": "64", "--max-num-batched-tokens": "8K", "gpu-memory-utilization": "0.5"})
    assert knobs == Knobs(Knob(8192, "flag"), Knob(0.5, "flag"), Knob(64, "flag"))
    assert knobs_of_flags({"max-num-batched-tokens": "8k"}).max_num_batched_tokens == Knob(8000, "flag")
    assert knobs_of_flags({"device-memory-utilization": 0.5}).gpu_memory_utilization == Knob(0.5, "flag")
    assert knobs_of_flags({"max-num-seqs": True, "gpu-memory-utilization": "much"}) == Knobs()


def test_a_log_tells_the_budget_and_what_no_flag_of_ours_did() -> None:
    knobs = knobs_of_flags({}, facts=facts(CPU, "live.log"), version="0.32.0+cpu")
    assert knobs.max_num_batched_tokens == Knob(4096, "log")
    assert knobs.max_num_seqs == Knob(32, "log")
    asked = {"max-num-batched-tokens": 2048}
    assert knobs_of_flags(asked, facts=facts(H200, "B1.log")).max_num_batched_tokens == Knob(2048, "flag")


def test_a_real_server_with_the_defaults_of_its_gpu() -> None:
    knobs = knobs_of_flags({"max-model-len": 4096}, H200_GPU, version="0.25.1", facts=facts(H200, "A1.log"))
    assert knobs == Knobs(Knob(8192, "log"), Knob(0.92, "default"), Knob(1024, "default"))
    # max-num-seqs 1 lowers the budget to one whole prompt: vLLM printed 4096.
    alone = {"max-num-seqs": 1, "max-model-len": 4096}
    assert knobs_of_flags(alone, H200_GPU, version="0.25.1").max_num_batched_tokens == Knob(4096, "default")
    assert "max_num_batched_tokens=4096" in (H200 / "logs" / "static.log").read_text()


def test_metrics_tell_the_utilization_as_it_is() -> None:
    shown = sample(0, gpu_memory_utilization=0.125)
    assert knobs_of_flags(None, shown).gpu_memory_utilization == Knob(0.125, "metrics")
    assert knobs_of_flags({"gpu-memory-utilization": 0.125}, shown).gpu_memory_utilization == Knob(0.125, "flag")


@pytest.mark.parametrize(
    ("name", "gib", "version", "batched", "seqs"),
    [
        ("NVIDIA H100 80GB HBM3", 79.6, "0.10.0", 8192, 1024),
        ("NVIDIA A100-SXM4-80GB", 80.0, "0.25.1", 2048, 256),
        ("NVIDIA GB10", 119.7, "0.33.0", 2048, 256),
        ("NVIDIA GeForce RTX 4090", 24.0, "0.33.0", 2048, 256),
        ("NVIDIA B200", 178.4, "0.26.0", 8192, 1024),
        ("NVIDIA B200", 178.4, "0.27.0", None, None),  # it changed somewhere between two wheels that were read
        ("NVIDIA B200", 178.4, "0.28.0", 16384, 1024),
        ("NVIDIA H200", 140.4, "0.34.0", None, None),  # not read
        ("NVIDIA H200", 140.4, None, None, None),
    ],
)
def test_defaults_by_device_and_version(
    name: str, gib: float, version: str | None, batched: int | None, seqs: int | None
) -> None:
    knobs = knobs_of_flags({}, machine(name, gib), version=version)
    assert knobs.max_num_batched_tokens == (Knob(batched, "default") if batched else Knob())
    assert knobs.max_num_seqs == (Knob(seqs, "default") if seqs else Knob())


@pytest.mark.parametrize(
    ("version", "value"), [("0.19.1", 0.9), ("0.20.0", None), ("0.20.2", 0.92), ("0.33.0", 0.92), ("0.34.0", None)]
)
def test_the_default_utilization_by_version(version: str, value: float | None) -> None:
    assert knobs_of_flags({}, version=version).gpu_memory_utilization.value == value


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        (None, H200_GPU),  # a flag that we cannot see may have set it
        ({"config": "vllm.yaml"}, H200_GPU),
        ({"performance-mode": "throughput"}, H200_GPU),
        ({"data-parallel-size": 2}, H200_GPU),
        ({}, sample(0, gpus=[])),
        ({}, machine("NVIDIA H200 MIG 1g.18gb", 140.4)),
        ({}, machine("NVIDIA H200", 140.4, mig=True)),
        ({}, sample(0, gpus=[gpu(), gpu(name="NVIDIA A100-SXM4-40GB", mem_total_gib=40.0)])),
    ],
)
def test_what_is_not_known_is_not_guessed(flags: dict[str, Any] | None, shown: SampleRecord) -> None:
    knobs = knobs_of_flags(flags, shown, version="0.25.1")
    assert knobs.max_num_batched_tokens == knobs.max_num_seqs == Knob()


def test_on_a_cpu_the_defaults_of_the_version_that_was_read() -> None:
    told = facts(CPU, "eager.log")
    assert knobs_of_flags({"tensor-parallel-size": 2}, version="0.32.0+cpu", facts=told).max_num_batched_tokens == Knob(
        4096, "default"
    )
    assert knobs_of_flags({}, version="0.31.0", facts=told).max_num_batched_tokens == Knob()


def test_fewer_tokens_than_sequences_lower_the_sequences() -> None:
    knobs = knobs_of_flags({"max-num-batched-tokens": 512}, H200_GPU, version="0.25.1")
    assert knobs.max_num_seqs == Knob(512, "default")


def test_a_cache_of_a_size_of_its_own_is_noted() -> None:
    assert knobs_of_flags({"kv-cache-memory-bytes": "8G"}).kv_cache_fixed
    assert not knobs_of_flags({}).kv_cache_fixed


def test_eager_is_noted_from_a_flag_or_the_log() -> None:
    assert knobs_of_flags({"enforce-eager": True}).eager
    assert knobs_of_flags({"enforce-eager": ""}).eager
    assert knobs_of_flags({}, facts=facts(CPU, "eager.log")).eager
    assert not knobs_of_flags({"enforce-eager": False}, facts=facts(H200, "A1.log")).eager


def test_of_a_server_of_ours() -> None:
    server = ServerRecord(
        "a", "ready", "m", "127.0.0.1", 8000, [], {}, "", "", vllm_version="0.25.1",
        facts=facts(H200, "A1.log"), raw={"spec": {"flags": {"max-num-seqs": 64}}},
    )  # fmt: skip
    knobs = knobs_of(server, H200_GPU)
    assert (str(knobs.max_num_seqs), str(knobs.max_num_batched_tokens)) == ("now 64", "now 8192")
    assert str(knobs.gpu_memory_utilization) == "its default 0.92"
    assert str(Knob()) == "not known"
