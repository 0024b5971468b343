"""vLLM, torch, GPU, driver and GPU memory: every state of each check, from injected readings."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine.gpus.gpu import GpuReader
from engine.preflight import gpu as gpu_module
from engine.preflight.check import Check
from engine.preflight.gpu import GpuMachine, gpu_checks, read_gpus
from engine.preflight.installation import TorchBuild, VllmReading, for_cpu, read_vllm, vllm_checks
from engine.records import GpuProcess, GpuReading, GpuSample, Installation
from tests.engine.fake_nvml import FakeNvml

INSTALLATION = Installation("/v/bin/vllm", "/v/bin/python", ("/v/bin/vllm",), "/v/bin", "0.25.1")
CUDA_13 = VllmReading(INSTALLATION, torch=TorchBuild("2.11.0", "13.0"))
CUDA_12 = VllmReading(INSTALLATION, torch=TorchBuild("2.8.0+cu128", "12.8"))
CPU = VllmReading(replace(INSTALLATION, version="0.32.0+cpu"), torch=TorchBuild("2.13.0+cpu"))
NONE = GpuReading("", 0.0, note="No GPU: no NVIDIA driver here (NVML Shared Library Not Found).")


def machine(
    *gpus: GpuSample, driver: str = "580.159.04", cuda: str | None = None, here: set[int] | None = None
) -> GpuMachine:
    return GpuMachine(GpuReading("", 0.0, gpus, driver, cuda), frozenset(here or set()))


def card(free: float = 139.0, *processes: GpuProcess) -> GpuSample:
    return GpuSample(0, name="NVIDIA H200", mem_total_gib=140.0, mem_free_gib=free, temp_c=37.0, processes=processes)


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_vllm_and_torch_as_they_should_be() -> None:
    checks = by_name(vllm_checks(CUDA_13))
    assert {check.state for check in checks.values()} == {"ok"}
    assert checks["torch"].found == "2.11.0, built for CUDA 13.0"


@pytest.mark.parametrize(
    ("reading", "name", "state", "told"),
    [
        (VllmReading(error="no vLLM on PATH: give --vllm"), "vLLM", "problem", "no vLLM on PATH"),
        (VllmReading(INSTALLATION), "torch", "warning", "not known"),
        (VllmReading(INSTALLATION, torch=TorchBuild(None)), "torch", "problem", "not installed"),
        (
            VllmReading(INSTALLATION, torch=TorchBuild("2.11.0", "13.0", headers=False)),
            "Python headers",
            "warning",
            "Python.h",
        ),
    ],
)
def test_vllm_and_torch_as_they_should_not_be(reading: VllmReading, name: str, state: str, told: str) -> None:
    check = by_name(vllm_checks(reading))[name]
    assert check.state == state
    assert told in check.found


def test_an_installation_is_asked_without_importing_torch(tmp_path: Path) -> None:
    """A torch whose import would break everything, with a version.py as 2.x has it."""
    for name, version in (("vllm", "0.25.1"), ("torch", "2.11.0")):
        info = tmp_path / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / "torch" / "version.py").write_text("cuda: Optional[str] = '12.8'\nhip: Optional[str] = None\n")
    reading = read_vllm(sys.executable, {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path)})
    assert reading.installation is not None
    assert reading.torch is not None
    assert (reading.installation.version, reading.torch.version, reading.torch.cuda) == ("0.25.1", "2.11.0", "12.8")
    assert not for_cpu(reading)


def test_no_vllm_is_an_answer(tmp_path: Path) -> None:
    reading = read_vllm(str(tmp_path / "none"), {"PATH": ""})
    assert reading.installation is None
    assert "does not exist" in str(reading.error)


@pytest.mark.parametrize(
    ("vllm", "state"), [(CPU, "ok"), (CUDA_13, "problem"), (None, "warning"), (VllmReading(error="none"), "warning")]
)
def test_no_gpu_matters_where_vllm_needs_one(vllm: VllmReading | None, state: str) -> None:
    (check,) = gpu_checks(GpuMachine(NONE), vllm, {})
    assert (check.name, check.state) == ("GPU", state)
    assert "NVML" in check.found


def test_gpus_are_counted_by_name() -> None:
    checks = by_name(gpu_checks(machine(card(), replace(card(), index=1), cuda="13.0"), CUDA_13, {}))
    assert checks["GPU"].found == "2 × NVIDIA H200, driver 580.159.04, up to CUDA 13.0"
    assert {check.state for check in checks.values()} == {"ok"}
    assert "GPU 1 memory" in checks


def test_a_gpu_that_is_not_used_or_does_not_answer() -> None:
    assert by_name(gpu_checks(machine(card()), CPU, {}))["GPU"].state == "warning"
    lost = replace(card(), mem_total_gib=None, mem_free_gib=None)
    assert by_name(gpu_checks(machine(lost), CUDA_13, {}))["GPU"].state == "problem"
    worn = replace(card(), ecc_errors=3.0)
    assert by_name(gpu_checks(machine(worn), CUDA_13, {}))["GPU 0 ECC"].state == "warning"


@pytest.mark.parametrize(
    ("driver", "cuda", "vllm", "state"),
    [
        ("580.65.06", None, CUDA_13, "ok"),
        ("570.124.06", "12.8", CUDA_13, "problem"),
        ("570.124.06", "13.0", CUDA_13, "ok"),  # a forward compatibility package
        ("525.60.13", "12.0", CUDA_12, "ok"),
        ("515.65.01", "11.7", CUDA_12, "problem"),
        ("unknown", None, CUDA_13, "warning"),
        ("600.1", None, VllmReading(INSTALLATION, torch=TorchBuild("3.0", "15.0")), "warning"),
    ],
)
def test_the_driver_against_torchs_cuda(driver: str, cuda: str | None, vllm: VllmReading, state: str) -> None:
    check = by_name(gpu_checks(machine(card(), driver=driver, cuda=cuda), vllm, {}))["driver"]
    assert check.state == state
    assert bool(check.advice) == (state != "ok")


def test_memory_that_somebody_holds() -> None:
    process = GpuProcess(693, 133.8, "VLLM::EngineCore")

    def check(free: float, ours: dict[int, str], here: set[int]) -> Check:
        return by_name(gpu_checks(machine(card(free, process), here=here), CUDA_13, ours))["GPU 0 memory"]

    ours = check(6.0, {693: "our server 3, chat"}, {693})
    assert ours.state == "problem"
    assert ours.found == "6.0 of 140.0 GiB free, held by pid 693 (VLLM::EngineCore, our server 3, chat) 133.8 GiB"
    assert "of ours" in ours.advice
    theirs = check(70.4, {}, {693})
    assert theirs.state == "warning"
    assert "--gpu-memory-utilization 0.5" in theirs.advice
    # A pid of the host's is never taken for a process of ours that has the same number here.
    hidden = check(70.4, {693: "our server 3, chat"}, set())
    assert "not visible from here" in hidden.found
    assert "our server" not in hidden.found
    assert "of ours" not in hidden.advice


def test_memory_that_nobody_seems_to_hold() -> None:
    check = by_name(gpu_checks(machine(card(20.0)), CUDA_13, {}))["GPU 0 memory"]
    assert check.state == "warning"
    assert "cannot be seen from here" in check.found


def test_pids_of_nvml_are_looked_up_in_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake NVML names a pid that is no process with a GPU open."""
    monkeypatch.setattr(gpu_module, "GpuReader", lambda: GpuReader(FakeNvml()))
    read = read_gpus()
    assert read.reading.gpus[0].processes
    assert read.here == frozenset()
