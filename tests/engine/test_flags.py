import json
import os
import stat
from pathlib import Path

import pytest

from engine.launch.flags import cache_file, known_flags
from engine.records import EngineError, Installation

PYTHON = """#!/bin/sh
echo asked >> {calls}
echo some warning
echo 'LLMTUNE_FLAGS {flags}'
"""


def stand_in(folder: Path, flags: list[str]) -> Installation:
    """A virtual environment whose Python answers as vLLM's parser would, and counts how often."""
    (folder / "bin").mkdir(parents=True)
    (folder / "lib/python3.12/site-packages/vllm-0.25.1.dist-info").mkdir(parents=True)
    python = folder / "bin/python"
    python.write_text(PYTHON.format(calls=folder / "calls", flags=json.dumps(flags)))
    python.chmod(0o755)
    return Installation(str(folder), str(python), (str(python),), str(folder / "bin"), "0.25.1")


def calls(installation: Installation) -> int:
    file = Path(installation.path) / "calls"
    return len(file.read_text().splitlines()) if file.exists() else 0


MANY = [f"--flag-{number}" for number in range(60)] + ["-q", "--no-flag-1"]


def test_flags_are_asked_for_once(tmp_path: Path) -> None:
    vllm = stand_in(tmp_path / "venv", MANY)
    assert known_flags(vllm, ask=False) is None
    assert calls(vllm) == 0
    flags = known_flags(vllm, ask=True)
    assert flags is not None
    assert {"flag-7", "no-flag-1"} <= flags
    assert "q" not in flags
    assert known_flags(vllm, ask=True) == flags
    assert known_flags(vllm, ask=False) == flags
    assert calls(vllm) == 1


def test_another_installation_at_the_same_place_is_asked_again(tmp_path: Path) -> None:
    vllm = stand_in(tmp_path / "venv", MANY)
    known_flags(vllm, ask=True)
    os.utime(tmp_path / "venv/lib/python3.12/site-packages/vllm-0.25.1.dist-info", (1, 1))
    assert known_flags(vllm, ask=False) is None
    known_flags(vllm, ask=True)
    assert calls(vllm) == 2


def test_the_cache_is_for_its_owner_alone_and_a_broken_one_is_written_anew(tmp_path: Path) -> None:
    vllm = stand_in(tmp_path / "venv", MANY)
    file = cache_file(os.environ)
    file.parent.mkdir(parents=True)
    file.write_text("{broken")
    assert known_flags(vllm, ask=False) is None
    known_flags(vllm, ask=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert known_flags(vllm, ask=False) is not None


def test_a_parser_that_does_not_answer_is_said_in_one_line(tmp_path: Path) -> None:
    vllm = stand_in(tmp_path / "venv", ["--only"])
    with pytest.raises(EngineError, match="does not say its flags"):
        known_flags(vllm, ask=True)
    Path(vllm.python).unlink()
    with pytest.raises(EngineError, match="does not start"):
        known_flags(vllm, ask=True)


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({"XDG_CACHE_HOME": "/c"}, "/c/llmtune/flags.json"),
        ({"XDG_CACHE_HOME": "c", "HOME": "/h"}, "/h/.cache/llmtune/flags.json"),
        ({"HOME": "/h"}, "/h/.cache/llmtune/flags.json"),
    ],
)
def test_the_place_follows_the_xdg_variables(environ: dict[str, str], place: str) -> None:
    assert str(cache_file(environ)) == place


@pytest.mark.vllm
def test_a_real_parser_says_its_flags(installation: Installation) -> None:
    flags = known_flags(installation, ask=True)
    assert flags is not None
    assert {"max-num-seqs", "gpu-memory-utilization", "max-lora-rank", "port"} <= flags
    assert "max-paddings" not in flags
