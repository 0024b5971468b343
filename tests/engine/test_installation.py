import os
import sys
from pathlib import Path

import pytest

from engine.launch.installation import find_vllm, script_interpreter, version_numbers
from engine.records import Installation, VllmNotFound, VllmTooOld


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """What `pip install --target` leaves, reduced to what is read of it: a script and a dist-info."""
    folder = tmp_path / "target"
    metadata(folder, "0.25.1")
    executable(folder / "bin" / "vllm", f"#!{sys.executable}\nimport vllm\n")
    return folder


def metadata(folder: Path, version: str) -> None:
    info = folder / "vllm-0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")


def environ(target: Path, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(target), **more}


def test_a_script_a_python_and_an_environment_lead_to_the_same_vllm(target: Path) -> None:
    script = find_vllm(str(target / "bin" / "vllm"), environ(target))
    assert (script.version, script.python) == ("0.25.1", sys.executable)
    assert script.command == (str(target / "bin" / "vllm"),)
    assert script.bin_dir == str(target / "bin")
    python = find_vllm(sys.executable, environ(target))
    assert python.command == (sys.executable, "-m", "vllm.entrypoints.cli.main")
    assert python.version == "0.25.1"
    assert find_vllm(str(target), environ(target)).command == script.command


def test_it_is_looked_for_in_order(target: Path) -> None:
    path = f"{target / 'bin'}{os.pathsep}{os.environ['PATH']}"
    assert find_vllm(None, environ(target, PATH=path)).path == str(target / "bin" / "vllm")
    assert find_vllm("vllm", environ(target, PATH=path)).path == str(target / "bin" / "vllm")
    assert find_vllm(None, environ(target, PATH=path, LLMTUNE_VLLM=sys.executable)).path == sys.executable
    assert find_vllm(None, environ(target, PATH="/nowhere")).path == sys.executable


@pytest.mark.parametrize("version", ["0.9.2", "0.9.2.post1", "0.6.0"])
def test_a_version_before_0_10_is_too_old(target: Path, version: str) -> None:
    metadata(target, version)
    with pytest.raises(VllmTooOld, match="llmtune needs") as error:
        find_vllm(str(target), environ(target))
    assert "\n" not in str(error.value)


def test_a_build_without_a_tag_is_not_taken_for_an_old_one(target: Path) -> None:
    metadata(target, "0.1.dev10042+g1b2c3d4")
    assert find_vllm(str(target), environ(target)).version.startswith("0.1.dev")
    assert version_numbers("0.10.0rc1") == (0, 10)
    assert version_numbers("0.32.0+cpu") == (0, 32)


def test_what_is_no_vllm_is_one_line_each(tmp_path: Path) -> None:
    broken = executable(tmp_path / "broken" / "vllm", "#!/nowhere/bin/python\n")
    wrapper = executable(tmp_path / "wrapper" / "vllm", "#!/bin/bash\nexec other\n")
    liar = executable(tmp_path / "liar" / "python", "#!/bin/sh\necho hello\n")
    failing = executable(tmp_path / "failing" / "python", "#!/bin/sh\necho it is broken >&2\nexit 3\n")
    (tmp_path / "plain").write_text("no script")
    (tmp_path / "empty").mkdir()
    for path in (broken, wrapper, liar, failing, tmp_path / "plain", tmp_path / "empty", tmp_path / "missing"):
        with pytest.raises(VllmNotFound) as error:
            find_vllm(str(path), {"PATH": os.environ["PATH"]})
        assert "\n" not in str(error.value)
        assert str(path.name) in str(error.value) or str(path) in str(error.value)
    with pytest.raises(VllmNotFound, match="it is broken"):
        find_vllm(str(failing), {"PATH": os.environ["PATH"]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#!/venv/bin/python3.12\n", "/venv/bin/python3.12"),
        ("#! /venv/bin/python -E\n", "/venv/bin/python"),
        ("#!/bin/sh\n'''exec' \"/a long/bin/python\" \"$0\" \"$@\"\n' '''\n", "/a long/bin/python"),
        ("#!/bin/sh\n'''exec' /venv/bin/python \"$0\" \"$@\"\n", "/venv/bin/python"),
        ("#!/bin/bash\nexec python\n", None),
        ("no shebang", None),
        ("", None),
    ],
)
def test_the_python_of_a_script_is_on_its_first_lines(tmp_path: Path, text: str, expected: str | None) -> None:
    assert script_interpreter(executable(tmp_path / "vllm", text), {}) == expected


def test_a_relocatable_script_names_the_python_beside_it(tmp_path: Path) -> None:
    text = "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python' \"$0\" \"$@\"\n' '''\n"
    script = executable(tmp_path / "bin" / "vllm", text)
    assert script_interpreter(script, {}) == str(tmp_path / "bin" / "python")


def test_env_in_a_shebang_is_looked_up(tmp_path: Path) -> None:
    python = executable(tmp_path / "bin" / "python3", "")
    script = executable(tmp_path / "vllm", "#!/usr/bin/env python3\n")
    assert script_interpreter(script, {"PATH": str(tmp_path / "bin")}) == str(python)


@pytest.mark.vllm
def test_the_real_one_is_found_by_its_python_too(installation: Installation) -> None:
    found = find_vllm(installation.python, os.environ)
    assert found.version == installation.version
    assert version_numbers(found.version) is not None
