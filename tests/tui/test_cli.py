"""The command line as a whole: what it accepts, and what becomes of errors and signals."""

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.records import EngineError, VllmTooOld
from store.errors import NotFound, StoreFull
from tui.cli import build_parser, main, split_rest
from tui.commands.screens import have_terminal
from tuning.records import PlanError

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "demo --headless --model m --vllm v",
        "server start chat -- m --max-model-len 4096",
        "server list --all --json",
        "server logs chat -f -n 5",
        "monitor --url http://a:1 --url http://b:2",
        "snapshot --url http://a:1 --watch 2 --json",
        "sweep plan.toml --headless --data-dir d",
        "attach last --headless",
        "pause 3",
        "resume 3",
        "skip 3 2",
        "stop 3 --json",
        "sessions --json",
        "report last --format csv --out f",
        "report last --format html --out f",
        "explain log --json",
    ],
)
def test_the_contracts_lines_are_understood(line: str) -> None:
    own, _ = split_rest(line.split())
    args = build_parser().parse_args(own)
    assert (ROOT / "tui" / "commands" / f"{args.module}.py").is_file()


@pytest.mark.parametrize("argv", [["--data-dir", "d", "sessions"], ["sessions", "--data-dir", "d"]])
def test_shared_options_stand_before_or_after_the_command(argv: list[str]) -> None:
    assert build_parser().parse_args(argv).data_dir == "d"


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "sweep",
        "skip 3 two",
        "report last --format pdf",
        "snapshot --watch never",
        "snapshot --watch nan",
        "server",
        "sessions -- --x",
        "sweep plan.toml --head",
    ],
)
def test_wrong_arguments_end_with_2(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("llmtune: ")
    assert "--help`" in told


@pytest.mark.parametrize("command", ["fit", "inspect", "pull", "smoke", "chat"])
def test_commands_that_do_not_exist_yet_are_not_promised(command: str) -> None:
    assert command not in build_parser().format_help().split()
    with pytest.raises(SystemExit):
        build_parser().parse_args([command])


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (EngineError("no vLLM here"), 1),
        (StoreFull("no space is left"), 1),
        (NotFound("no such session"), 2),
        (VllmTooOld("vLLM 0.9 is too old"), 2),
        (PlanError("plan.toml:1: a\nplan.toml:2: b"), 2),
        (KeyboardInterrupt(), 130),
    ],
)
def test_an_error_is_its_line_and_a_status(
    error: BaseException, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(args: argparse.Namespace) -> int:
        raise error

    monkeypatch.setattr("tui.commands.sessions.run", fail)
    assert main(["sessions"]) == status
    said = capsys.readouterr()
    assert said.err.splitlines() == [f"llmtune: {line}" for line in str(error).splitlines()]
    assert said.out == ""


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(args: argparse.Namespace) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr("tui.commands.sessions.run", fail)
    with pytest.raises(ZeroDivisionError):
        main(["sessions"])


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"(APIServer pid=1) ERROR 11-30 00:00:00 [x.py:1] ValueError: {i}\n" for i in range(50_000)))
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "tui.cli", "explain", "--json", str(log)]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("line", [["--version"], ["sessions"]])
def test_an_output_that_takes_nothing_is_told(line: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tui.cli", "--data-dir", str(tmp_path), *line]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    assert done.returncode == 1
    (told,) = done.stderr.splitlines()
    assert "standard output cannot be written (No space left on device)" in told


def test_the_version_of_a_source_that_was_never_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", unknown)
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert "without having been installed" in capsys.readouterr().out


def test_version_and_screens_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("llmtune 0.")
    assert main([]) == 2
    assert main(["monitor"]) == 2
    assert "terminal" in capsys.readouterr().err


def test_nothing_recorded_yet_is_a_normal_state(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    place = tmp_path / "fresh"
    assert main(["sessions", "--data-dir", str(place)]) == 0
    assert "nothing has been recorded" in capsys.readouterr().out
    assert main(["sessions", "--json", "--data-dir", str(place)]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": 1, "sessions": []}
    assert main(["server", "list", "--json", "--data-dir", str(place)]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": 1, "servers": []}
    assert main(["report", "last", "--data-dir", str(place)]) == 2
    assert main(["stop", "3", "--data-dir", str(place)]) == 2
    assert not (place / "llmtune.db").exists(), "asking must not create anything"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("sweep missing.toml", "missing.toml"),
        ("explain missing.log", "missing.log cannot be read"),
        ("monitor --url ftp://x", "not a server's address"),
        ("server start", "say what to serve"),
        ("server start -- /no/such/model", "/no/such/model does not exist"),
        ("server stop", "there is no running server"),
        ("server logs nobody", "no server is called nobody"),
        ("demo --headless --model /no/such/model", "/no/such/model does not exist"),
    ],
)
def test_bad_input_is_one_line_and_2(
    line: str, says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("llmtune: ")
    assert says in told


def test_a_plans_mistakes_are_told_together(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('nam = "x"\nmodel = "org/name"\n')
    assert main(["sweep", str(plan)]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) >= 2
    assert all(line.startswith(f"llmtune: {plan}") for line in told)


def test_screens_want_a_terminal_for_standard_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for stream in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True, raising=False)
    assert have_terminal()
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    assert not have_terminal()  # Textual draws there: `2> file` left an empty screen


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_lead_nowhere(closed: str, tmp_path: Path) -> None:
    program = f"{sys.executable} -c 'import sys; from tui.cli import main; sys.exit(main())'"
    for command, status in (("snapshot --json --url http://127.0.0.1:9", 1), ("monitor", 2)):
        found = subprocess.run(
            ["sh", "-c", f"exec {program} {command} --data-dir {tmp_path / 'data'} {closed}"],
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert found.returncode == status, found.stderr
        assert "Traceback" not in found.stderr
