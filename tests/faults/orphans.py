"""Kill a real server by its API server, under load and during load, and start the next at once: what then happens.

    python -m tests.faults.orphans --model MODEL [--vllm PATH] [--out FILE] [-- flags of `vllm serve`]

A tool for a machine with a GPU, run by hand; it prints one JSON object a case. SIGKILL of the API server leaves the
engine, which holds the GPU memory. Each case is done twice: with the server's keeper alive, which clears up itself, and
with the keeper killed in the same moment, so that the next start has to. `gpu_gib` are (seconds since the kill, GiB in
use over all GPUs), read every quarter of a second; [] without a GPU.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from engine.gpus.gpu import GpuReader
from engine.processes.ports import free_port
from engine.processes.process import marked
from store.database import open_reader
from store.location import database_file
from store.records import ServerRecord

READY_WITHIN_S = 600.0
INTO_THE_LOAD_S = 12.0  # vLLM's processes are up by then and read the model, where there is no GPU to tell it by
HELD_GIB = 2.0  # more than before: the engine has begun to fill the GPU
CLIENTS = 32
CASES = tuple((moment, keeper) for moment in ("under load", "while loading") for keeper in ("alive", "killed"))


class Place:
    """One data directory, and what the tool asks of it."""

    def __init__(self, data_dir: Path, model: str, vllm: str | None, flags: list[str]) -> None:
        self.data_dir = data_dir
        self._model = model
        self._vllm = ["--vllm", vllm] if vllm else []
        self._flags = flags

    def llmtune(self, *words: str, serve: tuple[str, ...] = ()) -> None:
        command = [sys.executable, "-m", "tui.cli", *words, "--data-dir", str(self.data_dir)]
        if serve:
            command += [*self._vllm, "--", *serve]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)

    def start(self, name: str) -> int:
        """Start a server and return its id; it then loads."""
        port = free_port("127.0.0.1", 8200)
        self.llmtune("server", "start", name, "--no-wait", serve=(self._model, "--port", str(port), *self._flags))
        with open_reader(database_file(self.data_dir)) as reader:
            return max(server.id or 0 for server in reader.servers())

    def stop(self, number: int) -> None:
        self.llmtune("server", "stop", str(number))
        until(lambda: self.row(number).state in ("stopped", "failed"), 120, f"server {number} has stopped")

    def stop_all(self) -> None:
        with open_reader(database_file(self.data_dir)) as reader:
            active = reader.servers(active=True)
        for server in active:
            self.stop(server.id or 0)

    def row(self, number: int) -> ServerRecord:
        with open_reader(database_file(self.data_dir)) as reader:
            return reader.server(number)

    def said(self, number: int) -> list[str]:
        with open_reader(database_file(self.data_dir)) as reader:
            return [event.text for event in reader.events(server_id=number)]


def until(condition: Callable[[], object], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(0.1)


@contextmanager
def load(url: str, model: str) -> Iterator[None]:
    """Requests without end from some clients at once; what fails is asked again."""
    over = threading.Event()

    def ask() -> None:
        body = {"model": model, "prompt": "once upon a time", "max_tokens": 256, "ignore_eos": True}
        while not over.is_set():
            try:
                httpx.post(f"{url}/v1/completions", json=body, timeout=30, trust_env=False)
            except httpx.HTTPError:
                over.wait(0.2)

    clients = [threading.Thread(target=ask, daemon=True) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        over.set()


def in_use(gpu: GpuReader) -> float | None:
    """GiB over all GPUs; None without one."""
    used = [each.mem_used_gib for each in gpu.read().gpus if each.mem_used_gib is not None]
    return sum(used) if used else None


@contextmanager
def watched(gpu: GpuReader, began: float) -> Iterator[list[tuple[float, float]]]:
    """The GPU memory in use, as a list that grows."""
    readings: list[tuple[float, float]] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.25):
            if (used := in_use(gpu)) is not None:
                readings.append((round(time.monotonic() - began, 2), round(used, 2)))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield readings
    finally:
        over.set()
        looking.join()


def case(place: Place, gpu: GpuReader, moment: str, keeper: str) -> dict[str, Any]:
    """One kill and the start after it."""
    before = in_use(gpu)
    first = place.start(f"first {moment} {keeper}")
    until(lambda: place.row(first).pid, 60, "the server's process is there")
    if moment == "under load":
        until(lambda: place.row(first).state == "ready", READY_WITHIN_S, "the server is ready")
    elif before is None:
        time.sleep(INTO_THE_LOAD_S)
    else:
        floor = before + HELD_GIB
        until(lambda: (in_use(gpu) or 0.0) > floor, READY_WITHIN_S, "the engine holds GPU memory")
    row = place.row(first)
    assert row.pid is not None
    with load(f"http://{row.host}:{row.port}", row.served_name or row.model):
        if moment == "under load":
            time.sleep(5)
        family = len(marked(row.marker))
        began = time.monotonic()
        with watched(gpu, began) as gpu_gib:
            if keeper == "killed" and row.keeper_pid is not None:
                os.kill(row.keeper_pid, signal.SIGKILL)
            os.kill(row.pid, signal.SIGKILL)
            time.sleep(0.05)
            left = len(marked(row.marker))
            second = place.start(f"second {moment} {keeper}")
            until(lambda: place.row(second).pid, 120, "the next server's process is there")
            process_after_s = time.monotonic() - began
            still_there = len(marked(row.marker))
            until(lambda: place.row(second).state != "starting", READY_WITHIN_S, "the next server is ready")
            ready_after_s = time.monotonic() - began
    state = place.row(second).state
    place.stop(second)
    return {
        "moment": moment, "keeper": keeper, "processes": family, "left_after_the_kill": left,
        "next_process_after_s": round(process_after_s, 2), "left_when_it_began": still_there,
        "next": state, "next_ready_after_s": round(ready_after_s, 2), "gpu_gib": gpu_gib,
        "said": {"first": place.said(first), "next": place.said(second)},
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--vllm")
    parser.add_argument("--out", type=Path)
    parser.add_argument("flags", nargs="*")
    args = parser.parse_args()
    gpu = GpuReader()
    with tempfile.TemporaryDirectory(prefix="orphans-") as folder:
        place = Place(Path(folder) / "data", args.model, args.vllm, args.flags)
        try:
            for moment, keeper in CASES:
                line = json.dumps(case(place, gpu, moment, keeper))
                print(line, flush=True)
                if args.out:
                    with args.out.open("a", encoding="utf-8") as file:
                        file.write(line + "\n")
        finally:
            place.stop_all()
    gpu.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
