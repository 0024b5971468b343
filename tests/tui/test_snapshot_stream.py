"""`llmtune snapshot --watch --json` as a program reads it: through a pipe, over the server's death, until it ends. A
process each, in real seconds, since intervals, pipes and signals are what is tested."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from store.database import open_reader
from tests.lying_exporter import LyingExporter, exporter_thread
from tests.served_pages import HOSTILE_NAMES, Served
from tui.cli import main

EVERY_S = 0.4  # so long that a busy machine answers within


@contextmanager
def streaming(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    program = [sys.executable, "-m", "tui.cli", "snapshot", "--watch", str(EVERY_S), "--json", *arguments]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def exporter() -> Iterator[LyingExporter]:
    with exporter_thread(Served(model=HOSTILE_NAMES[0], generation_per_s=500)) as exporter:
        yield exporter


def payload(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The next object that holds a server: a busy machine may miss an interval."""
    while not (found := payload(process))["server"]:
        pass
    return found


def test_one_object_an_interval_over_death_and_return(exporter: LyingExporter) -> None:
    with streaming("--url", exporter.url) as process:
        first = answer(process)
        assert (first["schema"], first["url"], first["error"]) == (1, exporter.url, None)
        assert (first["server"]["rates"], first["server"]["latency"]) == (None, {})
        began = time.monotonic()
        second = answer(process)
        assert second["server"]["rates"]["generation_tok_per_s"] == pytest.approx(500, rel=0.6)
        assert second["server"]["latency"]["e2el"]["mean_ms"] == pytest.approx(2000.0)
        assert {"kind", "sentence", "evidence", "advice"} == second["limit"].keys()
        exporter.behave("refuse")
        dead = [payload(process) for _ in range(4)][-1]
        assert dead["server"] is None
        assert "Nothing answers" in dead["error"]
        exporter.served.restart()
        exporter.behave("answer")
        again = [answer(process)["server"] for _ in range(2)]
        assert time.monotonic() - began > 5.5 * EVERY_S
        assert again[0]["rates"]["restarted"]
        assert again[0]["counted_from"] == "restart"
        assert not again[-1]["rates"]["restarted"]


def test_an_interrupt_ends_it_with_130_and_without_a_word(exporter: LyingExporter) -> None:
    exporter.behave("hang")
    with streaming("--url", exporter.url) as process:
        assert "has not answered" in payload(process)["error"]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_reader_that_leaves_ends_it_without_a_word(exporter: LyingExporter) -> None:
    with streaming("--url", exporter.url, "--url", "http://127.0.0.1:9") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_each_of_several_servers_has_its_object_and_none_waits_for_another(exporter: LyingExporter) -> None:
    with exporter_thread(behaviour="hang") as hanging:
        urls = (exporter.url, hanging.url, "http://127.0.0.1:9")
        with streaming(*(part for url in urls for part in ("--url", url))) as process:
            payloads = [payload(process) for _ in range(12)]
        counts = {url: sum(one["url"] == url for one in payloads) for url in urls}
        assert min(counts.values()) >= 3
        assert all(one["server"] for one in payloads if one["url"] == exporter.url)
        assert all("has not answered" in one["error"] for one in payloads if one["url"] == hanging.url)


def test_a_window_gathers_what_came_in_it(exporter: LyingExporter) -> None:
    with streaming("--url", exporter.url, "--window", "1") as process:
        spans = [answer(process)["server"]["rates"] for _ in range(7)]
    assert spans[0] is None
    assert all(span["over_s"] > 0.9 for span in spans[4:])
    assert min(span["over_s"] for span in spans[4:]) < 2.5  # the window, not all that was seen


def test_what_is_recorded_of_a_foreign_server_is_a_server_that_has_ended(
    exporter: LyingExporter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "data"
    with streaming("--url", exporter.url, "--record", "--data-dir", str(place)) as process:
        shown = [payload(process)["at"] for _ in range(4)]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    with open_reader(place / "llmtune.db") as reader:
        (server,) = reader.servers()
        samples = reader.samples(server_id=server.id)
    assert (server.state, server.raw["foreign"], server.vllm_version) == ("stopped", exporter.url, "0.32.0")
    assert [sample.at for sample in samples][:4] == shown
    assert samples[0].generation_tokens is not None
    assert main(["server", "logs", "--data-dir", str(place)]) == 2
    assert main(["server", "list", "--all", "--data-dir", str(place)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[-1] == "others"  # who started it
    assert main(["server", "restart", "--data-dir", str(place)]) == 2
