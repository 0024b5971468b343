"""`llmtune doctor` as a command: its lines, its JSON, its exit status."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.preflight.check import Check
from tui.cli import main
from tui.commands import doctor

FINE = Check("memory", "ok", "60.0 GiB of 64.0 GiB available")
MEAGRE = Check("ninja", "warning", "none on the PATH that vLLM gets", "install it into vLLM's environment")
BROKEN = Check("disk: data directory", "problem", "a quota lets 12 MiB be written", "free some")


def found(monkeypatch: pytest.MonkeyPatch, *checks: Check) -> list[Any]:
    asked: list[Any] = []

    def examine(*arguments: Any) -> list[Check]:
        asked.extend(arguments)
        return list(checks)

    monkeypatch.setattr(doctor, "examine", examine)
    return asked


@pytest.mark.parametrize(
    ("checks", "status", "last"),
    [
        ([FINE], 0, "nothing stands in the way of a start"),
        ([FINE, MEAGRE], 0, "0 problems, 1 warning"),
        ([FINE, MEAGRE, BROKEN], 1, "1 problem, 1 warning"),
    ],
)
def test_only_a_problem_fails(
    checks: list[Check], status: int, last: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, *checks)
    assert main(["doctor"]) == status
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_each_line_has_glyph_word_finding_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, FINE, MEAGRE, BROKEN)
    main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "✔ ok       memory                60.0 GiB of 64.0 GiB available"
    assert lines[1].startswith("▲ warning  ninja ")
    assert lines[2].strip() == "→ install it into vLLM's environment"
    assert lines[3].startswith("✗ problem  disk: data directory  a quota")


def test_in_a_terminal_lines_are_wrapped_under_themselves() -> None:
    lines = doctor.check_lines([MEAGRE, Check("a", "ok", "many words " * 12)], columns=70)
    assert max(map(len, lines)) <= 70
    assert len(lines) == 5
    assert lines[-1].startswith(" " * 18 + "many")


def test_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked = found(monkeypatch, FINE, BROKEN)
    assert main(["doctor", "--json", "--vllm", "/v/bin/vllm", "--data-dir", str(tmp_path / "d")]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["problems"], told["warnings"]) == (1, 1, 0)
    assert told["data_dir"] == str(tmp_path / "d")
    assert told["checks"][1] == {
        "name": "disk: data directory", "state": "problem", "found": "a quota lets 12 MiB be written",
        "advice": "free some",
    }  # fmt: skip
    assert asked[:3] == [tmp_path / "d", "--data-dir", "/v/bin/vllm"]


def test_a_data_directory_that_cannot_be_is_a_problem_among_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    asked = found(monkeypatch, FINE)
    assert main(["doctor", "--data-dir", str(tmp_path / "file" / "d")]) == 1
    assert "disk: data directory" in capsys.readouterr().out
    assert asked[0] is None


def test_it_can_be_read_where_the_locale_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch, MEAGRE)
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    assert main(["doctor"]) == 0
    lines = raw.getvalue().decode("ascii").splitlines()
    assert lines[0].startswith("! warning  ninja")
    assert "-> install" in lines[1]
    raw.truncate(0)
    raw.seek(0)
    found(monkeypatch, Check("GPU", "ok", "2 × NVIDIA H200"))
    assert main(["doctor", "--json"]) == 0
    assert json.loads(raw.getvalue().decode("ascii"))["checks"][0]["found"] == "2 × NVIDIA H200"


def test_the_real_command_on_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) in (0, 1)
    told = json.loads(capsys.readouterr().out)
    assert {check["state"] for check in told["checks"]} <= {"ok", "warning", "problem"}
    assert len(told["checks"]) > 12
