from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from store.database import open_writer
from store.errors import StoreError
from store.file_system import Mount
from store.location import DataDir, data_dir, database_file
from tests.store.rights import unwritable

ROOT = Mount(Path("/"), "ext4")


class Machine:
    """A machine without a container and without a persistent mount, whose home lies in `root`."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.workspace = root / "workspace"
        self.mounts: tuple[Mount, ...] = (ROOT,)
        self.in_container = False

    def ask(self, explicit: str | None = None, environ: Mapping[str, str] | None = None) -> DataDir:
        return data_dir(
            explicit,
            environ or {},
            home=self.home,
            mounts=self.mounts,
            persistent=(self.workspace,),
            in_container=self.in_container,
        )

    def mount_workspace(self, type: str = "fuse.mfs") -> None:
        self.workspace.mkdir(exist_ok=True)
        self.mounts = (*self.mounts, Mount(self.workspace, type))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_order(machine: Machine, tmp_path: Path) -> None:
    xdg = machine.ask()
    assert xdg == DataDir(machine.home / ".local/share/llmtune", "the data directory of this user", None)

    fresh = Machine(tmp_path / "second")
    fresh.home.mkdir(parents=True)
    fresh.mount_workspace()
    assert fresh.ask().path == fresh.workspace / "llmtune"

    environ = {"LLMTUNE_DATA_DIR": str(tmp_path / "by-environment")}
    assert fresh.ask(None, environ) == DataDir(tmp_path / "by-environment", "LLMTUNE_DATA_DIR", None)
    assert fresh.ask(None).path == tmp_path / "by-environment"
    assert fresh.ask(None).why == "used last on this machine"
    assert fresh.ask(str(tmp_path / "given"), environ) == DataDir(tmp_path / "given", "--data-dir", None)
    assert fresh.ask().path == tmp_path / "given"
    (tmp_path / "given").rmdir()
    assert fresh.ask().path == fresh.workspace / "llmtune"


def test_it_is_made_for_its_owner_alone(machine: Machine) -> None:
    path = machine.ask().path
    assert path.stat().st_mode & 0o777 == 0o700
    assert database_file(machine.ask().path) == path / "llmtune.db"


def test_the_xdg_variables_count_where_they_are_absolute(machine: Machine, tmp_path: Path) -> None:
    environ = {"XDG_DATA_HOME": str(tmp_path / "share"), "XDG_STATE_HOME": str(tmp_path / "state")}
    assert machine.ask(None, environ).path == tmp_path / "share" / "llmtune"
    assert (tmp_path / "state" / "llmtune" / "data-dir").read_text() == f"{tmp_path / 'share' / 'llmtune'}\n"
    assert machine.ask(None, {"XDG_DATA_HOME": "share"}).path == machine.home / ".local/share/llmtune"


def test_relative_places_are_of_the_folder_one_stands_in(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert machine.ask("here").path == tmp_path / "here"
    assert machine.ask("~/there").path == machine.home / "there"


@pytest.mark.parametrize("types", [(), ("tmpfs",)])
def test_a_workspace_that_is_no_disk_of_its_own_is_not_taken(machine: Machine, types: tuple[str, ...]) -> None:
    machine.workspace.mkdir()
    for type in types:
        machine.mount_workspace(type)
    assert machine.ask().path == machine.home / ".local/share/llmtune"


def test_a_workspace_that_cannot_be_written_is_not_taken(open_folder: Path, tmp_path: Path) -> None:
    machine = Machine(open_folder)
    machine.mount_workspace()
    machine.home.mkdir()
    machine.home.chmod(0o777)
    with unwritable(machine.workspace):
        assert machine.ask().path == machine.home / ".local/share/llmtune"


def test_a_memory_that_makes_no_sense_is_passed_over(machine: Machine) -> None:
    expected = machine.ask().path
    memory = machine.home / ".local/state/llmtune/data-dir"
    for text in ("", "not/absolute", "/no\0such", "/nowhere/at/all"):
        memory.write_text(text)
        assert machine.ask().path == expected


def test_a_memory_that_cannot_be_kept_is_said(machine: Machine, tmp_path: Path) -> None:
    machine.home.mkdir()
    (machine.home / ".local").mkdir()
    (machine.home / ".local/state").touch()
    warning = machine.ask(str(tmp_path / "given")).warning
    assert warning is not None
    assert "give --data-dir next time too" in warning


def test_a_place_that_goes_with_the_container_is_said(machine: Machine, tmp_path: Path) -> None:
    machine.in_container = True
    assert "goes when the container is recreated" in str(machine.ask().warning)
    machine.mount_workspace()
    assert machine.ask(str(machine.workspace / "kept")).warning is None


def test_a_place_in_memory_is_said(machine: Machine, tmp_path: Path) -> None:
    machine.mounts = (ROOT, Mount(tmp_path, "tmpfs"))
    assert "lies in memory" in str(machine.ask().warning)


@pytest.mark.parametrize(
    ("environ", "root"), [({"RUNPOD_POD_ID": "x"}, "ext4"), ({"container": "podman"}, "ext4"), ({}, "overlay")]
)
def test_a_container_is_known_by_variable_or_root(
    environ: dict[str, str], root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = data_dir(None, environ, home=tmp_path, mounts=(replace(ROOT, type=root),), persistent=())
    assert "container is recreated" in str(found.warning)


def test_a_given_place_that_cannot_be_used_is_one_line(machine: Machine, tmp_path: Path, open_folder: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"file.* cannot be used .*--data-dir"):
        machine.ask(str(tmp_path / "file"))
    with unwritable(open_folder):
        for place in (open_folder, open_folder / "below"):
            with pytest.raises(StoreError, match="cannot be written: make"):
                data_dir(str(place), {}, home=open_folder, mounts=(ROOT,), in_container=False)


def test_a_read_only_place_with_a_database_can_still_be_read(open_folder: Path) -> None:
    open_writer(open_folder / "llmtune.db").close()
    with unwritable(open_folder):
        arguments: dict[str, Any] = {"home": open_folder, "mounts": (ROOT,), "in_container": False}
        assert "can be read, nothing new" in str(data_dir(str(open_folder), {}, **arguments).warning)
