"""What a person can get wrong, on the command line: one line that says what to do, and nothing begun."""

import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.store.rights import unwritable
from tests.tui.recorded import record
from tui.cli import main

PLAN = """\
model = "./model"
[grid]
max-num-seqs = [8]
[[workload]]
name = "chat"
dataset = "random"
requests = 4
"""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A plan, a model and a vLLM that pass, in a folder that another user can enter: pytest's own are closed."""
    folder = Path(tempfile.mkdtemp(prefix="llmtune-test-"))
    folder.chmod(0o755)
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text("{}")
    (folder / "plan.toml").write_text(PLAN)
    monkeypatch.setenv("LLMTUNE_DATA_DIR", str(folder / "data"))
    monkeypatch.setenv("LLMTUNE_VLLM", str(vllm(folder / "venv", "0.32.0")))
    monkeypatch.chdir(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def place(folder: Path) -> Path:
    return folder / "data"


def vllm(folder: Path, version: str | None) -> Path:
    """An environment whose Python says that it has this vLLM."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\necho '{'null' if version is None else chr(34) + version + chr(34)}'\n")
    python.chmod(0o755)
    return folder


def told(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("llmtune: ")
    return line


def test_a_plan_that_is_none(place: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "binary.toml").write_bytes(bytes(range(256)))
    assert main(["sweep", "binary.toml"]) == 2
    assert "is not a text file: give the plan's TOML file" in told(capsys)
    assert main(["sweep", str(folder)]) == 2
    assert "cannot be read (Is a directory): give the plan's TOML file" in told(capsys)
    assert not (place / "llmtune.db").exists()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[grid]", "colour = 1\n[grid]", "plan.toml:2: colour: unknown key"),
        ("max-num-seqs = [8]", "", "plan.toml:2: [grid] is empty: name at least one flag"),
        ('"random"', '"sharegpt"\npath = "no.json"', "plan.toml:7: [[workload]] path: there is no file"),
        ("./model", "./nowhere", "nowhere does not exist: give a model folder"),
        ("./model", "./venv", "venv is not a model folder: it has no config.json"),
    ],
)
def test_a_plan_with_a_mistake(
    old: str, new: str, says: str, place: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "plan.toml").write_text(PLAN.replace(old, new))
    assert main(["sweep", "plan.toml", "--headless"]) == 2
    assert says in told(capsys)
    assert not (place / "llmtune.db").exists()


@pytest.mark.parametrize("line", ["sweep plan.toml --headless --vllm VLLM", "server start --vllm VLLM -- ./model"])
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: vllm(folder, "0.9.2"), "vLLM 0.9.2 at"),
        (lambda folder: vllm(folder, None), "has no vLLM installed: give --vllm"),
        (lambda folder: folder, "does not exist: give --vllm"),
        (lambda folder: Path(shutil.copy("plan.toml", folder)), "may not be read and run by this user"),
    ],
)
def test_a_vllm_that_is_none_or_too_old(
    line: str,
    make: Callable[[Path], Path],
    says: str,
    place: Path,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(line.replace("VLLM", str(make(folder / "other"))).split()) == 2
    assert says in told(capsys)
    assert not (place / "llmtune.db").exists()


def test_a_port_that_is_taken(place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.processes.ports._ANSWER_WITHIN_S", 0.2)  # it takes connections and says nothing
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["server", "start", "--", "./model", "--port", str(port)]) == 1
    line = told(capsys)
    assert f"port {port} on 127.0.0.1 is taken by process" in line
    assert "stop it or choose another port" in line
    assert main(["server", "list", "--all"]) == 0
    assert "no server" in capsys.readouterr().out


def damage(file: Path) -> None:
    file.write_bytes(b"no database " * 400)


def update(file: Path) -> None:
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()


@pytest.mark.parametrize(("spoil", "says"), [(damage, "is damaged"), (update, "written by a newer llmtune")])
@pytest.mark.parametrize("line", ["sessions", "report last", "attach last", "server list", "sweep plan.toml"])
def test_a_database_that_cannot_be_used(
    spoil: Callable[[Path], None],
    says: str,
    line: str,
    place: Path,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    record(place)
    spoil(place / "llmtune.db")
    before = (place / "llmtune.db").read_bytes()
    assert main(line.split()) == 1
    assert says in told(capsys)
    assert (place / "llmtune.db").read_bytes() == before


def test_a_database_that_cannot_be_written_is_still_read(
    place: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(place)
    # Now, since the other user may not even read our Python's own modules.
    assert (main(["report", "last"]), main(["sweep", "none.toml"])) == (0, 2)
    capsys.readouterr()
    with unwritable(place):
        assert main(["report", "last"]) == 0
        assert "|" in capsys.readouterr().out
        assert main(["sweep", "plan.toml", "--headless"]) == 1
    assert "cannot be written: make file and folder writable, or name another with --data-dir" in told(capsys)
