"""What `llmtune explain` prints beyond outcome and cause: the numbers as flags take them, and nearer flags."""

from pathlib import Path

import pytest

from engine.records import Installation
from tests.engine.observed import H200
from tui.cli import main
from tui.commands import explain as command


def test_numbers_stand_as_the_log_has_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(H200 / "logs/fail-kvsmall.log")]) == 0
    lines = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    shown = {line[0]: line[-1].strip() for line in lines if len(line) > 1 and line[0]}
    assert shown["max model len"] == "32768"
    assert shown["short"] == "1.72 GiB"
    assert shown["longest model len"] == "464"


def test_the_remedy_stands_before_the_facts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(H200 / "logs/fail-second.log")]) == 0
    out = capsys.readouterr().out
    assert out.index("--gpu-memory-utilization to 0.86") < out.index("highest utilization") < out.index("ERROR")


def test_an_installation_is_asked_only_for_a_flag_it_did_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def known(installation: Installation, ask: bool) -> frozenset[str]:
        asked.append(installation.path)
        return frozenset({"lora-modules", "max-cudagraph-capture-size"})

    monkeypatch.setattr(command, "find_vllm", lambda path, environ: Installation(path, "p", ("v",), "b", "0.33.0"))
    monkeypatch.setattr(command, "known_flags", known)
    log = tmp_path / "log"
    log.write_text("vllm: error: unrecognized arguments: --lora-module a=b\n")
    assert main(["explain", str(log), "--vllm", "/venv"]) == 0
    assert "Did you mean --lora-modules?" in capsys.readouterr().out
    assert main(["explain", str(H200 / "logs/fail-len.log"), "--vllm", "/venv"]) == 0
    assert asked == ["/venv"]
