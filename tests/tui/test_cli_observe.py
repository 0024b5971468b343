"""`llmtune snapshot` against a page that a real server gave, `llmtune explain` on logs of real servers."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from engine.discovery import FoundServer
from store.database import open_writer
from store.records import ServerRecord
from tui.cli import main
from tui.commands.explain import explanation_lines
from tui.commands.monitor import server_url
from tui.commands.snapshot import snapshot_line, snapshot_lines

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
(PAGE,) = sorted((FIXTURES / "h200-vllm-0.25.1" / "metrics").glob("*load*"))[:1]


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/metrics" else 404)
        self.end_headers()
        if self.path == "/metrics":
            self.wfile.write(PAGE.read_bytes())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_snapshot_for_people_and_programs(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "--url", f"{url}/metrics"]) == 0
    out = capsys.readouterr().out
    assert url in out
    assert "KV cache" in out
    assert main(["snapshot", "--url", url, "--json"]) == 0
    payload = json.loads(capsys.readouterr().out)
    assert payload["schema"] == 1
    assert payload["server"]["generation_tokens"] > 0


def test_our_own_running_server_is_meant_where_no_address_is_given(
    url: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place = tmp_path / "data"
    place.mkdir()
    port = int(url.rpartition(":")[2])
    with open_writer(place / "llmtune.db") as writer:
        for state, its_port in (("ready", port), ("stopped", 1)):
            writer.insert(ServerRecord("a", state, "m", "127.0.0.1", its_port, [], {}, "", "m"))  # type: ignore[arg-type]
    assert main(["snapshot", "--json", "--data-dir", str(place)]) == 0
    assert json.loads(capsys.readouterr().out)["server"]["url"] == url


def test_without_a_server_the_gpus_are_sampled_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.commands.targets.found_servers", lambda: ())
    assert main(["snapshot", "--json"]) == 0
    payload = json.loads(capsys.readouterr().out)
    assert payload["server"] is None
    assert "no server of ours" in payload["error"]


def test_servers_that_others_started_are_meant_where_we_have_none(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = (FoundServer(url, 1), FoundServer("http://127.0.0.1:9", 2))
    monkeypatch.setattr("tui.commands.targets.found_servers", lambda: here)
    assert main(["snapshot", "--json"]) == 1  # the second does not answer
    payloads = {payload["url"]: payload for payload in map(json.loads, capsys.readouterr().out.splitlines())}
    assert payloads[url]["server"]["model_name"] == "m"
    assert payloads["http://127.0.0.1:9"]["server"] is None


def test_gpus_of_another_machine_are_not_this_one_s(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.commands.snapshot.on_this_machine", lambda url: False)
    assert main(["snapshot", "--url", "http://127.0.0.1:9", "--json"]) == 1
    payload = json.loads(capsys.readouterr().out)
    assert (payload["gpus"], payload["note"]) == ([], "GPUs are those of the server's own machine: not read here")


@pytest.mark.parametrize("option", [["--window", "10"], ["--record"]])
def test_a_window_is_over_a_series(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "--url", "http://127.0.0.1:9", *option]) == 2
    assert "give --watch too" in capsys.readouterr().err


def test_a_server_that_does_not_answer_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "--url", "http://127.0.0.1:9"]) == 1
    assert "127.0.0.1:9" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("127.0.0.1:8000/v1/", "http://127.0.0.1:8000"),
        ("https://u:p@gpu.example/prefix/metrics", "https://u:p@gpu.example/prefix"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("8000", "http://127.0.0.1:8000"),
        (":8000", "http://127.0.0.1:8000"),
    ],
)
def test_addresses_as_people_write_them(written: str, url: str) -> None:
    assert server_url(written) == url


def test_lines_of_a_snapshot_show_absent_as_absent() -> None:
    gpu = {
        "index": 0, "name": "H200\x1b[31m", "mem_used_gib": None, "mem_total_gib": 140.4, "util_perc": 98.0,
        "power_w": 612.0, "power_limit_w": 700.0, "temp_c": None,
    }  # fmt: skip
    payload = {"at": "2026-11-30T10:00:00.000Z", "url": "http://[/x]", "server": None, "gpus": [gpu]}
    payload |= {"note": None, "error": None}
    (line,) = snapshot_lines(payload)
    assert "– of 140 GiB" in line
    assert "\x1b" not in line
    assert "612 W" in snapshot_line(payload)
    assert "http://[/x]" in snapshot_line(payload, several=True)


@pytest.mark.parametrize(
    ("log", "outcome", "says"),
    [
        ("cpu-vllm-0.32.0/logs/*.log", "ready", "KV cache"),
        ("h200-vllm-0.25.1/logs/fail-kvsmall.log", "failed", "kv_cache_too_small"),
        ("h200-vllm-0.25.1/logs/fail-badarg.log", "failed", "unknown_flag"),
    ],
)
def test_a_log_is_explained(log: str, outcome: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = sorted(FIXTURES.glob(log))[0]
    assert main(["explain", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(outcome)
    assert says in out
    assert main(["explain", str(path), "--json"]) == 0
    payload = json.loads(capsys.readouterr().out)
    assert (payload["schema"], payload["outcome"]) == (1, outcome)
    assert {"class", "cause", "numbers", "remedy", "lines", "facts", "vllm_version"} <= set(payload)


def test_an_empty_log_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_bytes(b"")
    assert main(["explain", str(tmp_path / "log")]) == 0
    assert capsys.readouterr().out.startswith("unknown")


def test_an_explanation_hides_nothing_and_runs_nothing() -> None:
    payload = {
        "outcome": "failed", "vllm_version": None, "class": "unknown", "cause": "x\x1b]0;title\x07y", "remedy": None,
        "facts": {}, "lines": ["[bold]a"],
    }  # fmt: skip
    lines = explanation_lines(payload)
    assert lines[1].startswith("unknown: x")
    assert not any("\x1b" in line or "\x07" in line for line in lines)
    assert lines[-1] == "  [bold]a"
