"""A GPU as JSON: whole for `snapshot --json`, short for the store, with the same figures in both."""

import dataclasses
import json

import pytest

from engine.gpus.gpu import GpuReader
from engine.gpus.gpu_json import gpu_json, gpu_kept
from engine.records import GpuSample
from tests.engine.fake_nvml import FakeNvml

WHOLE = GpuReader(FakeNvml(throttle=0x4)).read().gpus[0]


def test_every_field_of_a_sample_is_there_by_its_name() -> None:
    assert set(gpu_json(WHOLE)) == {field.name for field in dataclasses.fields(GpuSample)}
    assert all(value is None or value == [] for name, value in gpu_json(GpuSample(3)).items() if name != "index")


def test_what_a_row_keeps_says_the_same_in_fewer_bytes() -> None:
    kept, told = gpu_kept(WHOLE), gpu_json(WHOLE)
    assert {name: kept[name] for name in ("index", "uuid", "throttle_reasons", "mig")} == {
        "index": 0, "uuid": "GPU-00000000-0000", "throttle_reasons": ["power cap"], "mig": False,
    }  # fmt: skip
    for name, value in kept.items():
        if isinstance(value, float):
            assert value == pytest.approx(told[name], abs=1e-4), name
    assert kept["processes"][1] == {"pid": 7}
    assert gpu_kept(GpuSample(3)) == {"index": 3, "processes": []}
    assert len(json.dumps(kept)) < len(json.dumps(told))
