"""The lock, the socket and the journal of a keeper."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.keeper.client import KeeperGone, KeeperRefused, call, is_running
from engine.keeper.control import ControlSocket
from engine.keeper.journal import Journal
from engine.keeper.lock import KeeperLock, is_held
from engine.keeper.places import keeper_places, runtime_dir
from engine.keeper.secrets import pass_secrets, restore_secrets, secret_flags_to_env, take_secrets
from engine.records import EngineError
from store.database import open_reader, open_writer
from store.errors import StoreFull
from store.records import EventRecord

HOLDS_THE_LOCK = """
import sys, time
from pathlib import Path
from engine.keeper.lock import KeeperLock
assert KeeperLock.acquire(Path(sys.argv[1])) is not None
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


def test_a_second_keeper_does_not_get_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    first = KeeperLock.acquire(path)
    assert first is not None
    assert is_held(path)
    assert KeeperLock.acquire(path) is None
    first.release()
    assert not is_held(path)
    assert KeeperLock.acquire(path) is not None


def test_a_killed_keeper_leaves_no_lock_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLDS_THE_LOCK, str(path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    assert is_held(path)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    assert not is_held(path)
    assert KeeperLock.acquire(path) is not None


def test_the_runtime_folder_must_be_ours_alone(runtime: Path) -> None:
    folder = runtime_dir(os.environ)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    with pytest.raises(EngineError, match="chmod 700"):
        runtime_dir(os.environ)


def test_two_data_directories_have_keepers_of_their_own(runtime: Path, tmp_path: Path) -> None:
    one, other = (keeper_places(tmp_path / name, "session", 1) for name in ("one", "other"))
    assert one.socket != other.socket
    assert len(os.fsencode(one.socket)) < 108


async def echo(request: Mapping[str, Any]) -> dict[str, Any]:
    return {"heard": request.get("word")}


async def refuse(request: Mapping[str, Any]) -> dict[str, Any]:
    raise EngineError("not now")


async def test_the_socket_answers_and_is_private(runtime: Path, tmp_path: Path) -> None:
    places = keeper_places(tmp_path, "session", 7)
    control = ControlSocket(places.socket, {"echo": echo, "refuse": refuse})
    await control.start()
    try:
        assert stat.S_IMODE(places.socket.stat().st_mode) == 0o600
        answer = await asyncio.to_thread(call, tmp_path, "session", 7, "echo", word="[/mnt/x]")
        assert answer == {"heard": "[/mnt/x]"}
        with pytest.raises(KeeperRefused, match="not now"):
            await asyncio.to_thread(call, tmp_path, "session", 7, "refuse")
        with pytest.raises(KeeperRefused, match="knows echo, refuse"):
            await asyncio.to_thread(call, tmp_path, "session", 7, "dance")
    finally:
        await control.close()
    assert not places.socket.exists()
    with pytest.raises(KeeperGone, match="no keeper runs for session 7"):
        call(tmp_path, "session", 7, "echo")
    assert not is_running(tmp_path, "session", 7)


async def test_nonsense_on_the_socket_is_answered_and_harms_nobody(runtime: Path, tmp_path: Path) -> None:
    places = keeper_places(tmp_path, "server", 1)
    control = ControlSocket(places.socket, {"echo": echo})
    await control.start()
    try:
        reader, writer = await asyncio.open_unix_connection(places.socket)
        writer.write(b"\xff{[\n[1]\n")
        assert b"not a JSON object" in await reader.readline()
        assert b"not a JSON object" in await reader.readline()
        writer.write(b"x" * 200_000 + b"\n")
        assert await reader.read() == b""
        writer.close()
        answer = await asyncio.to_thread(call, tmp_path, "server", 1, "echo", word="still here")
        assert answer == {"heard": "still here"}
    finally:
        await control.close()


async def test_the_journal_waits_for_a_full_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.keeper.journal.TRY_AGAIN_S", 0.01)
    with open_writer(tmp_path / "llmtune.db") as writer:
        journal = Journal(writer, session_id=None)
        real, refusals = writer.insert, iter([StoreFull("the disk is full"), StoreFull("the disk is full")])

        def insert(record: Any) -> int:
            for refusal in refusals:
                raise refusal
            return real(record)

        monkeypatch.setattr(writer, "insert", insert)
        number = await asyncio.wait_for(journal.insert(EventRecord("2026-01-01T00:00:00.000Z", "info", "kept")), 5)
    assert journal.blocked is None
    with open_reader(tmp_path / "llmtune.db") as reader:
        assert [(event.id, event.text) for event in reader.events()] == [(number, "kept")]


def test_secrets_reach_the_keeper_and_not_the_record() -> None:
    env = {"HF_TOKEN": "hf_abcdefghijklmnopqrstuvwxyz012345", "HF_HOME": "/data/hf"}
    passed = pass_secrets({"PATH": "/bin"}, env)
    environ = dict(passed)
    secrets = take_secrets(environ)
    assert secrets == {"HF_TOKEN": env["HF_TOKEN"]}
    assert environ == {"PATH": "/bin"}
    kept = {"HF_TOKEN": "***", "HF_HOME": "/data/hf"}
    assert restore_secrets(kept, secrets, {}) == env
    assert restore_secrets(kept, {}, {"HF_TOKEN": "hf_other"})["HF_TOKEN"] == "hf_other"
    with pytest.raises(EngineError, match="export HF_TOKEN="):
        restore_secrets(kept, {}, {})


def test_a_key_among_the_flags_moves_to_the_environment() -> None:
    flags, env = secret_flags_to_env({"api-key": "s3cret", "max-num-seqs": 4}, {"A": "1"})
    assert flags == {"max-num-seqs": 4}
    assert env == {"A": "1", "VLLM_API_KEY": "s3cret"}
    assert secret_flags_to_env({"max-num-seqs": 4}, {}) == ({"max-num-seqs": 4}, {})
