"""Everything that is looked at before a server or a sweep is started, in one call of a few seconds."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from engine.preflight.bounded import Probe, Unread
from engine.preflight.check import Check
from engine.preflight.clock import clock_check, installed_at
from engine.preflight.gpu import GpuMachine, gpu_checks, read_gpus
from engine.preflight.installation import VllmReading, for_cpu, read_vllm, vllm_checks
from engine.preflight.limits import LimitsReading, limits_checks, read_limits
from engine.preflight.memory import MemoryReading, memory_check, read_memory
from engine.preflight.ours import OursReading, ours_checks, read_ours
from engine.preflight.places import NAMES, Place, PlaceReading, place_check, places, read_place
from engine.preflight.ports import PortsReading, ports_check, read_ports
from engine.preflight.terminal import TerminalReading, terminal_checks
from engine.preflight.tools import ToolsReading, read_tools, tools_checks
from engine.text import clean, redact
from store.clock import parse_utc
from store.file_system import Mount, read_mounts
from store.location import is_container

T = TypeVar("T")
WITHIN_S = 4.5
TOOLS_WITHIN_S = 0.5


@dataclass(frozen=True, slots=True)
class Readings:
    """The machine as it was read; `Unread` stands for what failed or did not answer."""

    vllm: VllmReading | Unread
    gpus: GpuMachine | Unread
    memory: MemoryReading | Unread
    limits: LimitsReading | Unread
    places: tuple[tuple[Place, PlaceReading | Unread], ...]
    tools: ToolsReading | Unread
    ports: PortsReading | Unread
    ours: OursReading | Unread
    terminal: TerminalReading
    now: datetime
    installed: datetime
    in_container: bool


def read_machine(
    data_dir: Path | None,
    why: str,
    vllm: str | None,
    terminal: TerminalReading,
    environ: Mapping[str, str],
    within_s: float = WITHIN_S,
) -> Readings:
    """All readings at once, each given up after `within_s` seconds. `data_dir` None: there is none to be had."""
    mounts = read_mounts()
    found = places(data_dir, why, environ)
    deadline = time.monotonic() + within_s
    asked_vllm = Probe(lambda: read_vllm(vllm, environ))
    asked_gpus, asked_memory, asked_limits, asked_ports = (
        Probe(read_gpus), Probe(read_memory), Probe(read_limits), Probe(read_ports),
    )  # fmt: skip
    asked_ours = Probe(lambda: OursReading() if data_dir is None else read_ours(data_dir, environ))
    turns: dict[int, threading.Lock] = {}
    asked_places = [(place, Probe(_place_reader(place, mounts, turns))) for place in found]
    now = datetime.now(UTC)
    found_vllm = asked_vllm.answer(deadline)
    asked_tools = Probe(lambda: read_tools(_bin_dir(found_vllm), environ))
    return Readings(
        found_vllm,
        asked_gpus.answer(deadline),
        asked_memory.answer(deadline),
        asked_limits.answer(deadline),
        tuple((place, probe.answer(deadline)) for place, probe in asked_places),
        asked_tools.answer(deadline + TOOLS_WITHIN_S),  # vLLM itself may have taken all of the time
        asked_ports.answer(deadline),
        asked_ours.answer(deadline),
        terminal,
        now,
        installed_at(now),
        is_container(environ, mounts),
    )


def judge(readings: Readings) -> list[Check]:
    """One check for each thing, in the order in which a start needs them. What could not be read is a warning."""
    vllm = readings.vllm if isinstance(readings.vllm, VllmReading) else None
    cpu = vllm is not None and for_cpu(vllm)
    gpus = len(readings.gpus.reading.gpus) if isinstance(readings.gpus, GpuMachine) else 0
    ours = readings.ours.names() if isinstance(readings.ours, OursReading) else {}
    newest = readings.ours.newest if isinstance(readings.ours, OursReading) else None
    checks = [
        *_checked("vLLM", readings.vllm, vllm_checks),
        *_checked("GPU", readings.gpus, lambda machine: gpu_checks(machine, vllm, ours)),
        *_checked("memory", readings.memory, lambda reading: [memory_check(reading)]),
    ]
    for place, reading in readings.places:
        name = f"disk: {NAMES[place.use]}"
        checks += _checked(name, reading, lambda one: [place_check(one, readings.in_container)], str(place.path))
    checks += [
        *_checked("tools", readings.tools, lambda reading: tools_checks(reading, cpu)),
        *_checked("limits", readings.limits, lambda reading: limits_checks(reading, gpus)),
        *_checked("ports", readings.ports, lambda reading: [ports_check(reading, ours)]),
        *terminal_checks(readings.terminal),
        clock_check(readings.now, readings.installed, parse_utc(newest) if newest else None),
        *_checked("servers", readings.ours, ours_checks),
    ]
    return [replace(check, found=_safe(check.found), advice=_safe(check.advice)) for check in checks]


def _checked(name: str, reading: T | Unread, judged: Callable[[T], Iterable[Check]], what: str = "") -> Iterable[Check]:
    if isinstance(reading, Unread):
        found = f"could not be read: {reading.why}{f' ({what})' if what else ''}"
        return [Check(name, "warning", found, "look at it by hand: it may hang a start just the same")]
    return judged(reading)


def _bin_dir(vllm: VllmReading | Unread) -> str | None:
    installation = vllm.installation if isinstance(vllm, VllmReading) else None
    return None if installation is None else installation.bin_dir


def _place_reader(
    place: Place, mounts: tuple[Mount, ...], turns: dict[int, threading.Lock]
) -> Callable[[], PlaceReading]:
    return lambda: read_place(place, mounts, turns)


def _safe(text: str) -> str:
    return redact(clean(text))


def examine(
    data_dir: Path | None,
    why: str,
    vllm: str | None,
    terminal: TerminalReading,
    environ: Mapping[str, str] = os.environ,
) -> list[Check]:
    """Read the machine and say what is to be said. Takes up to about five seconds; starts nothing, keeps nothing."""
    return judge(read_machine(data_dir, why, vllm, terminal, environ))
