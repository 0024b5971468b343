"""The GPUs on the Monitor: one, two and eight of them, in little room and much, with what cannot be read absent."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from textual.app import App, ComposeResult

from engine.gpu_owners import ANOTHER, UNSEEN, Owner, Owners
from engine.gpus.gpu import GpuReader
from engine.gpus.gpu_json import gpu_kept
from engine.gpus.gpu_look import GpuLook
from engine.processes.ports import free_port
from engine.records import GpuSample
from engine.samples.window import Window
from store.records import SampleRecord
from tests.engine.fake_nvml import FakeNvml
from tests.tui.panel_samples import HOSTILE_NUMBERS, HOSTILE_TEXTS, at
from tui.monitor.foreign import ForeignServer
from tui.panels.gpu_reading import energy_j, energy_per_token, gpus_of
from tui.panels.gpus import gpu_rows, history_width, lines_wanted, memory_bar
from tui.panels.row import text_of, width_of
from tui.widgets.gpu_panel import GpuPanel

OWNERS: Owners = {693: Owner("ours", "our server 3, chat"), 7: UNSEEN}
SECONDS = 20


def window(gpus: Sequence[GpuSample], seconds: int = SECONDS) -> Window:
    """A server that generates 4,500 tokens a second on these, each of which takes 600 W; busier by the second."""
    found = Window(60.0)
    for second in range(seconds):
        now = [
            replace(
                gpu,
                energy_j=None if gpu.energy_j is None else gpu.energy_j + 600.0 * second,
                util_perc=None if gpu.util_perc is None else min(98.0, 5.0 * second),
            )
            for gpu in gpus
        ]
        energies = [gpu.energy_j for gpu in now if gpu.energy_j is not None]
        found.add(
            SampleRecord(
                at=at(second),
                running=5.0,
                generation_tokens=4500.0 * second,
                gpu_energy_j=sum(energies) if energies else None,
                raw={"gpus": [gpu_kept(gpu) for gpu in now]},
            )
        )
    return found


def h200s(count: int = 1, broken: set[str] | None = None, throttle: int = 0) -> tuple[GpuSample, ...]:
    return GpuReader(FakeNvml(count=count, broken=broken, throttle=throttle)).read().gpus


def shown(found: Window, width: int = 78, height: int = 12, **options: Any) -> list[str]:
    options = {"utilization": 0.92, "owners": OWNERS, **options}
    rows = gpu_rows(found, True, width, height, **options)
    assert len(rows) <= height
    assert all(width_of(row) == width for row in rows)
    return [text_of(row).rstrip() for row in rows]


def test_one_gpu_takes_two_lines_with_all_that_matters() -> None:
    memory, work = shown(window(h200s()), height=2, util=[50.0] * 40)
    assert memory == "GPU 0       130.7 GiB  ████████████████│  of 140.4 GiB  budget 128.6    40 °C"
    assert work == "H200             95 %  ▄▄▄▄▄▄▄▄▄▄▄▄    122 of 700 W  1,980 MHz  not throttled"


def test_the_budget_is_what_vllm_itself_reckons() -> None:
    """Its log of this GPU says "desired GPU memory utilization (0.92, 128.62 GiB)", of 139.8 GiB in all."""
    (gpu,) = gpus_of(window(h200s()).newest)
    assert gpu.budget_gib(0.92) == pytest.approx(128.62, abs=0.02)
    assert gpu.usable_gib == pytest.approx(139.8, abs=0.02)
    assert gpu.budget_gib(None) is None
    assert "budget 128.6 = 0.92 of 139.8, 2.0 over" in shown(window(h200s()))[2]


def test_a_third_line_has_what_is_left_and_what_a_token_costs() -> None:
    line = shown(window(h200s()), height=3, power=[350.0] * 12)[2]
    assert line == "power           122 W  ▄▄▄▄▄▄▄▄▄▄▄▄  free 9.2 GiB  0.133 J/output token  ECC 0"


def test_height_brings_the_details() -> None:
    lines = shown(window(h200s()))
    assert lines[2:] == [
        "memory    free 9.2  reserved 0.6 GiB  budget 128.6 = 0.92 of 139.8, 2.0 over",
        "power           122 W                11.4 kJ in 19 s  0.133 J/output token",
        "clocks    SM 1,980 of 1,980  mem 3,201 of 3,201 MHz  busy 41 %  limit 87 °C",
        "PCIe      gen 4 x8 of gen 5 x16  in 2.0 out 0.5 MiB/s  ECC 0, corrected 12",
        "on it       130.6 GiB  our server 3, chat: VLLM::EngineCore (pid 693)",
        "                    –  pid 7, not visible from here",
    ]
    assert lines_wanted(window(h200s())) >= len(lines)


@pytest.mark.parametrize(("height", "rows"), [(1, 1), (2, 2), (3, 3), (8, 8)])
def test_two_gpus_take_a_line_each_and_the_chosen_one_more(height: int, rows: int) -> None:
    lines = shown(window(h200s(2)), height=height, chosen=3)
    assert len(lines) == rows
    if height == 1:
        assert lines[0].startswith("▸GPU 1     130.7 of 140.4 GiB")
    else:
        assert lines[0] == " GPU 0     130.7 of 140.4 GiB  ████████░   95 %   122 of 700 W  40 °C ok"
        assert lines[1].startswith("▸GPU 1 ")
    if height == 3:
        assert lines[2].startswith("H200             95 %")
    if height == 8:
        assert lines[2].startswith("GPU 1       130.7 GiB")
        assert lines[3].startswith("H200             95 %")


def test_more_gpus_than_lines_are_summed_up_and_the_chosen_one_is_among_those_shown() -> None:
    found = window(h200s(8, throttle=0x4))
    total, memory, work = shown(found, height=3, chosen=5)
    assert total == "8 GPUs    1,045.2 of 1,123.2 GiB  util 95 to 95 %      975 W  ! 8 throttled"
    assert memory.startswith("GPU 5 ")
    assert work.endswith("! power cap")
    for chosen in range(8):
        lines = shown(found, height=6, chosen=chosen)
        assert len(lines) == 6
        assert lines[-2].startswith(f"GPU {chosen}  ")
        assert sum(line.startswith("▸") for line in lines) == 1
        assert any(line.startswith(f"▸GPU {chosen} ") for line in lines)
    assert [line[1:6] for line in shown(found, height=12)[:8]] == [f"GPU {index}" for index in range(8)]


@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize("width", [20, 40, 58, 78, 138])
@pytest.mark.parametrize("height", [1, 2, 3, 5, 12])
def test_any_room_is_kept_to(count: int, width: int, height: int) -> None:
    assert shown(window(h200s(count)), width, height, util=[1.0] * history_width(width), power=[None, 1.0])


def test_gpus_stand_as_the_server_numbers_them_and_a_history_follows_its_gpu() -> None:
    zero, one, two = h200s(3)
    lines = shown(window((two, zero)), height=2)
    assert [line[1:6] for line in lines] == ["GPU 2", "GPU 0"]
    (first, second) = gpus_of(window((two, zero)).newest)
    assert (first.key, second.key) == (two.uuid, zero.uuid)
    assert one.uuid not in (first.key, second.key)


FIELDS = {
    "nvmlDeviceGetName": "H200",
    "nvmlDeviceGetMemoryInfo": "130.7 GiB",
    "nvmlDeviceGetUtilizationRates": "95 %",
    "nvmlDeviceGetPowerUsage": "122 of",
    "nvmlDeviceGetEnforcedPowerLimit": "of 700 W",
    "nvmlDeviceGetTotalEnergyConsumption": "11.4 kJ",
    "nvmlDeviceGetClockInfo": "1,980 MHz",
    "nvmlDeviceGetMaxClockInfo": "of 1,980",
    "nvmlDeviceGetTemperature": "40 °C",
    "nvmlDeviceGetTemperatureThreshold": "87 °C",
    "nvmlDeviceGetPcieThroughput": "in 2.0",
    "nvmlDeviceGetCurrPcieLinkGeneration": "gen 4",
    "nvmlDeviceGetMaxPcieLinkWidth": "x16",
    "nvmlDeviceGetTotalEccErrors": "ECC 0",
    "nvmlDeviceGetComputeRunningProcesses": "VLLM::EngineCore",
}


@pytest.mark.parametrize("function", FIELDS)
def test_what_a_gpu_does_not_tell_is_absent_alone_and_never_nought(function: str) -> None:
    whole = "\n".join(shown(window(h200s())))
    lines = "\n".join(shown(window(h200s(broken={function}))))
    assert FIELDS[function] in whole
    assert FIELDS[function] not in lines
    for name, figure in FIELDS.items():  # the others stand where they stood
        if name != function and function != "nvmlDeviceGetMemoryInfo":
            assert figure in lines or "Limit" in function, name
    assert " 0 W" not in lines
    assert " 0 %" not in lines
    assert " 0 °C" not in lines


def test_throttling_is_said_in_words_with_all_its_reasons() -> None:
    lines = shown(window(h200s(throttle=0x44)), height=3)
    assert lines[1].endswith("! power cap +1")
    assert lines[2] == "          ! throttled: power cap, hardware thermal"
    unread = {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}
    assert shown(window(h200s(broken=unread)))[1].endswith("throttling –")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ecc_errors": 3.0}, "! 3 uncorrected memory errors since the driver was loaded"),
        ({"mig": True}, "! cut into MIG slices: the figures are of the whole GPU"),
    ],
)
def test_what_is_wrong_comes_first(changed: dict[str, Any], said: str) -> None:
    assert shown(window([replace(h200s()[0], **changed)]), height=4)[2].strip() == said


def test_heat_is_marked_by_a_sign() -> None:
    assert shown(window([replace(h200s()[0], temp_c=85.0)]))[0].endswith("! 85 °C")
    assert shown(window([replace(h200s()[0], temp_c=85.0, temp_slowdown_c=None)]))[0].endswith("   85 °C")


def test_memory_that_others_hold_beside_our_server_is_told_with_who_holds_it() -> None:
    gpu = h200s()[0]
    others = replace(gpu.processes[1], used_gib=20.0, name="/opt/[x]/python\x1b[31m")
    found = window([replace(gpu, processes=(gpu.processes[0], others))])
    ours = {693: OWNERS[693]}
    assert shown(found, owners={**ours, 7: ANOTHER})[2].strip() == "! 20.0 GiB held by /opt/[x]/python (pid 7)"
    assert shown(found, owners={**ours, 7: UNSEEN})[2].strip().endswith("(pid 7), not visible from here")
    assert "held by" not in "\n".join(shown(found, owners={693: ANOTHER, 7: ANOTHER}))  # it may be the watched one


def test_a_lost_gpu_is_one_line_and_the_others_are_whole() -> None:
    nvml = FakeNvml(count=2)
    reader = GpuReader(nvml)
    reader.read()
    nvml.lost = {0}
    reading = reader.read()
    found = window(reading.gpus)
    lines = shown(found, height=2)
    assert lines[0] == "▸GPU 0    ✗ cannot be read: GPU is lost"
    assert lines[1].startswith(" GPU 1     130.7 of 140.4 GiB")
    assert shown(window([*reading.gpus, *reading.gpus]), height=3)[0] == (
        "4 GPUs      261.3 of   280.8 GiB  util 95 to 95 %      244 W  ✗ 2 lost"
    )
    alone = window(reading.gpus[:1])
    assert shown(alone, height=3) == [" GPU 0    ✗ cannot be read: GPU is lost"]


def test_no_gpu_is_one_line_that_says_why() -> None:
    empty = Window(60.0)
    assert shown(empty) == ["GPU       no GPU reading"]
    note = "No GPU: no NVIDIA driver here (NVML Shared Library Not Found)."
    empty.add(SampleRecord(at=at(0), raw={"gpu_note": note}))
    assert shown(empty) == [f"GPU       {note}"]
    assert lines_wanted(empty) == 1
    assert shown(window(h200s()), note="no reading for 1:40") == ["GPU       no reading for 1:40"]


def test_sums_are_shown_where_no_gpu_was_kept_singly() -> None:
    found = Window(60.0, [SampleRecord(at=at(0), gpu_mem_used_gib=130.7, gpu_util_perc=98.0, gpu_power_w=612.0)])
    memory, work = shown(found, height=2)
    assert memory.startswith("GPU         130.7 GiB")
    assert "98 %" in work
    assert "612 W" in work


def test_energy_is_the_gpus_counter_and_not_the_servers() -> None:
    (gpu,) = h200s()
    found = window([gpu])
    joules = 600.0 * (SECONDS - 1)
    assert (energy_j(found), energy_j(found, gpu.uuid)) == (pytest.approx(joules), pytest.approx(joules))
    assert energy_per_token(found) == pytest.approx(600 / 4500)
    restarted = SampleRecord(at=at(SECONDS), generation_tokens=10.0, gpu_energy_j=(gpu.energy_j or 0) + 600.0 * SECONDS)
    found.add(restarted)
    assert energy_j(found) == pytest.approx(600.0 * SECONDS)
    found.add(SampleRecord(at=at(SECONDS + 1), generation_tokens=20.0, gpu_energy_j=5.0))
    assert energy_j(found) is None  # the driver was loaded anew


def test_the_bar_shows_use_what_is_kept_and_the_budget() -> None:
    gpu = replace(gpus_of(window(h200s()).newest)[0], used_gib=40.0, total_gib=100.0, reserved_gib=10.0)
    assert memory_bar(gpu, None, 10) == "████▒░░░░░"
    assert memory_bar(gpu, 90.0, 10) == "████▒░░░░│"
    assert memory_bar(replace(gpu, used_gib=None), 90.0, 10) == "░" * 10
    assert memory_bar(replace(gpu, used_gib=500.0), None, 10) == "█" * 10


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_names_from_outside_stay_in_their_place(text: str) -> None:
    gpu = {"index": text, "name": text, "uuid": text, "error": None, "throttle_reasons": [text] * 20, "util_perc": 5}
    gpu["processes"] = [{"pid": 7, "name": text, "used_gib": 3.0}, text, {"pid": text}]
    for error in (None, text):
        found = Window(60.0, [SampleRecord(at=at(0), raw={"gpus": [{**gpu, "error": error}, gpu], "gpu_note": text})])
        for width in (38, 78):
            lines = shown(found, width)
            assert not any(ord(char) < 32 or char == "\x1b" for line in lines for char in line)
        assert shown(found, note=text)


@pytest.mark.parametrize("value", [*HOSTILE_NUMBERS, -5.0, "7", [], True, 10**400])
def test_figures_that_are_none_are_shown_as_none(value: Any) -> None:
    names = set(gpu_kept(h200s()[0])) - {"index", "processes"}
    gpu = {"index": 0, **dict.fromkeys(names, value), "processes": [{"pid": 1, "used_gib": value}]}
    found = Window(60.0, [SampleRecord(at=at(second), raw={"gpus": [gpu, gpu]}) for second in range(3)])
    for height in (1, 3, 12):
        assert shown(found, height=height)
        assert "nan" not in "\n".join(shown(found, height=height)).lower()


@pytest.mark.parametrize(
    "raw", [{}, {"gpus": None}, {"gpus": "x"}, {"gpus": [1, None]}, {"gpus": [{}]}, {"gpu_note": 7}]
)
def test_rows_of_another_program_do_not_break_it(raw: dict[str, Any]) -> None:
    assert shown(Window(60.0, [SampleRecord(at=at(0), raw=raw)]))


class PanelApp(App[None]):
    CSS = "GpuPanel { height: 12; }"

    def compose(self) -> ComposeResult:
        yield GpuPanel()


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("count", [1, 2, 8])
async def test_on_a_terminal(count: int, width: int) -> None:
    app = PanelApp()
    async with app.run_test(size=(width, 24)) as pilot:
        panel = app.query_one(GpuPanel)
        panel.draw(window(h200s(count)), True, 0.0, utilization=0.92, chosen=1, owners=OWNERS)
        await pilot.pause()
        lines = panel.text.splitlines()
        chosen = 1 % count
        assert all(any(f"GPU {index}" in line for line in lines) for index in range(count))
        memory = next(line for line in lines if line.startswith(f"GPU {chosen} "))
        assert "budget 128.6" in memory
        history = lines[lines.index(memory) + 1]
        assert "▁" in history
        assert "▇" in history or "█" in history
        assert len(history.rstrip()) <= width - 2
        assert any(line.startswith("power           122 W  ") and "▁" in line for line in lines)


async def test_what_did_not_change_is_not_drawn_again() -> None:
    app = PanelApp()
    async with app.run_test(size=(80, 24)) as pilot:
        panel = app.query_one(GpuPanel)
        found = window(h200s(2))
        drawn: list[int] = []
        show = panel.show
        panel.show = lambda rows: (drawn.append(len(rows)), show(rows))[1]  # type: ignore[method-assign,func-returns-value]
        for _ in range(3):
            panel.draw(found, True, 0.0, utilization=0.92)
        assert len(drawn) == 1
        for options in ({"chosen": 1}, {"utilization": 0.5}, {"note": "no reading"}):
            panel.draw(found, True, 0.0, **options)  # type: ignore[arg-type]
        assert len(drawn) == 4
        panel.display = False
        await pilot.pause()
        panel.draw(found, True, 0.0, chosen=7)
        assert len(drawn) == 4


async def test_another_size_shows_more_or_less_at_once() -> None:
    app = PanelApp()
    async with app.run_test(size=(80, 24)) as pilot:
        panel = app.query_one(GpuPanel)

        async def until(width: int, height: int) -> None:
            for _ in range(500):
                await pilot.pause()
                if panel.content_size == (width, height) and len(panel.rows) == height:
                    return
                await asyncio.sleep(0.01)
            raise AssertionError(f"{panel.content_size} {panel.text}")

        panel.draw(window(h200s()), True, 0.0, utilization=0.92)
        panel.styles.height = 1
        await until(78, 1)
        panel.styles.height = 3
        await until(78, 3)
        assert panel.text.splitlines()[0].startswith("GPU 0       130.7 GiB")
        await pilot.resize_terminal(140, 24)
        await until(138, 3)
        assert all(width_of(row) == 138 for row in panel.rows)


@pytest.fixture
def started() -> Iterator[int]:
    """The pid of a process with CUDA_VISIBLE_DEVICES=2,0 in its environment."""
    environ = {**os.environ, "CUDA_VISIBLE_DEVICES": "2,0"}
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env=environ)
    yield process.pid
    process.kill()
    process.wait()


async def test_of_a_found_server_only_its_own_gpus_are_shown(started: int) -> None:
    """In its own order, also while nothing answers at its address."""
    server = ForeignServer(f"http://127.0.0.1:{free_port('127.0.0.1', 8700)}", 0.0, pid=started)
    came = asyncio.Event()
    nvml = FakeNvml(count=3)
    task = asyncio.create_task(server.run(GpuLook(GpuReader(nvml)), lambda _: came.set()))
    try:
        await asyncio.wait_for(came.wait(), 10)
        assert [gpu.index for gpu in gpus_of(server.newest)] == ["2", "0"]
        came.clear()
        nvml.lost = {0}
        await asyncio.wait_for(came.wait(), 10)
        assert [bool(gpu.error) for gpu in gpus_of(server.newest)] == [False, True]
        assert server.gpu_note is None  # nothing stands in place of the GPU that is left
    finally:
        task.cancel()
