"""The readings of a real H200, idle and loaded, against what nvidia-smi printed of it in the same moment."""

import ast
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.gpus.gpu import GpuReader
from engine.records import GpuReading
from engine.samples.sample_record import to_record
from engine.samples.window import Window
from tests.benchmarks.gpu_against_nvidia_smi import FIELDS, compared, number, parse, screen
from tests.engine.fake_nvml import MIB, NVMLError, NVMLError_NotSupported
from tui.panels.gpus import gpu_rows
from tui.panels.row import text_of

RECORDED = Path(__file__).parents[1] / "fixtures" / "h200-vllm-0.25.1" / "nvml"
NAMES = ["index", "name", "uuid", "memory.used", "memory.total", "utilization.gpu", "power.draw", "temperature.gpu"]
APPS = ["pid", "used_memory", "process_name"]


def printed(moment: str) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The GPU and its processes as nvidia-smi listed them below its table."""
    lines = (RECORDED / f"{moment}.txt").read_text().splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("index, "))
    (gpu,) = parse(lines[first + 1], NAMES)
    return gpu, parse("\n".join(lines[first + 3 :]), APPS)


class RecordedNvml:
    """NVML as it answered then. Of structures only their addresses were recorded: memory, utilization and processes
    are nvidia-smi's of that moment. Nothing else was asked, and is not supported here."""

    NVMLError = NVMLError
    nvmlMemory_v2 = 33554472

    def __init__(self, moment: str) -> None:
        self._told = json.loads((RECORDED / f"nvml-{moment}.json").read_text())
        self._gpu, self._applications = printed(moment)

    def nvmlInit(self) -> None:
        pass

    def nvmlShutdown(self) -> None:
        pass

    def nvmlDeviceGetCount(self) -> int:
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int, version: int | None = None) -> SimpleNamespace:
        total, used = (int((number(self._gpu[name]) or 0) * MIB) for name in ("memory.total", "memory.used"))
        return SimpleNamespace(total=total, used=used, free=total - used, reserved=0)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(gpu=int(number(self._gpu["utilization.gpu"]) or 0), memory=0)

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> int:
        return int(self._told["temp"])

    def nvmlDeviceGetClockInfo(self, handle: int, kind: int) -> int:
        if kind != 1:
            raise NVMLError_NotSupported
        return int(self._told["smclk"])

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(pid=int(one["pid"]), usedGpuMemory=int((number(one["used_memory"]) or 0) * MIB))
            for one in self._applications
        ]

    def nvmlSystemGetProcessName(self, pid: int) -> str:
        return next(one["process_name"] for one in self._applications if int(one["pid"]) == pid)

    def __getattr__(self, name: str) -> Any:
        told = self._told.get(name.removeprefix("nvmlDeviceGet"))
        if told is None:
            raise AttributeError(name)

        def answer(*_: object) -> Any:
            if told.startswith("NVMLError"):
                raise NVMLError_NotSupported
            return ast.literal_eval(told)

        return answer


def read(moment: str) -> GpuReading:
    return GpuReader(RecordedNvml(moment), now=lambda: "2026-11-30T08:38:52.000Z").read()


@pytest.mark.parametrize("moment", ["idle", "loaded"])
def test_every_figure_that_nvidia_smi_told_is_ours(moment: str) -> None:
    gpu, applications = printed(moment)
    found = read(moment).gpus[0]
    assert (found.name, found.uuid, str(found.index)) == (gpu["name"], gpu["uuid"], gpu["index"])
    fields = compared(gpu, found, found)
    assert len(fields) == len([name for name in NAMES if name in FIELDS]) == 5
    assert [one for one in fields if not one["agrees"]] == []
    assert [(one.pid, one.name) for one in found.processes] == [
        (int(one["pid"]), one["process_name"]) for one in applications
    ]


@pytest.mark.parametrize(
    ("moment", "figures"),
    [
        ("idle", ("0.0 GiB", "of 140.4 GiB", "37 °C", "0 %", "78 of 700 W", "345 MHz", "not throttled", "–")),
        (
            "loaded",
            ("130.7 GiB", "of 140.4 GiB", "40 °C", "0 %", "122 of 700 W", "1,980 MHz", "not throttled", "130.6"),
        ),
    ],
)
def test_the_screen_shows_them_rounded(moment: str, figures: tuple[str, ...]) -> None:
    shown = "\n".join(screen(read(moment)))
    assert all(figure in shown for figure in figures), shown
    # 143,771 and 133,789 MiB are 140.4 and 130.7 GiB; the limit is NVML's 700,000 mW.


def test_energy_between_the_two_is_the_difference_of_the_counter() -> None:
    idle, loaded = read("idle"), read("loaded")
    window = Window(300.0)
    for reading, at in ((idle, "2026-11-30T08:37:00.000Z"), (loaded, "2026-11-30T08:38:52.000Z")):
        window.add(replace(to_record(None, reading), at=at))
    shown = "\n".join(text_of(row) for row in gpu_rows(window, True, 78, 12))
    assert "11.8 kJ in 112 s" in shown  # 17,666,862 − 5,820,190 mJ


def test_what_nvidia_smi_does_not_support_is_not_taken_for_nought() -> None:
    (row,) = parse("0, [N/A], [Not Supported], 0 MiB", ["index", "power.draw", "clocks.sm", "memory.used"])
    assert (number(row["power.draw"]), number(row["clocks.sm"]), number(row["memory.used"])) == (None, None, 0.0)
