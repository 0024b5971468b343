"""The lock, the socket and the journal of a keeper."""

import asyncio
import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.keeper.client import KeeperGone, KeeperRefused, answers, call, is_running
from engine.keeper.control import ControlSocket, Handler
from engine.keeper.hold import hold, only_keeper
from engine.keeper.journal import Journal
from engine.keeper.lock import KeeperLock, is_held
from engine.keeper.places import keeper_places, runtime_dir
from engine.keeper.secrets import (
    pass_secrets,
    pass_spec,
    redacted_spec,
    refuse_hidden,
    restore_secrets,
    secrets_to_env,
    take_secrets,
    take_spec,
)
from engine.records import EngineError, ServerSpec
from engine.text import redact
from store.database import open_reader, open_writer
from store.errors import StoreFull
from store.records import EventRecord, ServerRecord

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
    monkeypatch.setenv("LLMTUNE_RUNTIME_DIR", str(folder))
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


async def test_a_journal_that_is_to_end_gives_up_and_says_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise StoreFull("no space is left")

    with open_writer(tmp_path / "llmtune.db") as writer:
        journal = Journal(writer)
        monkeypatch.setattr(writer, "insert", full)
        monkeypatch.setattr(writer, "update", full)
        waiting = asyncio.create_task(journal.update(ServerRecord, 3, state="stopped"))
        await asyncio.sleep(0.05)
        assert journal.blocked == "no space is left"
        journal.end_within(0.1)
        await asyncio.wait_for(waiting, 2)
        await asyncio.wait_for(journal.event("stopped"), 0.5)
        with pytest.raises(StoreFull):
            await asyncio.wait_for(journal.insert(EventRecord("2026-01-01T00:00:00.000Z", "info", "lost")), 0.5)
    assert journal.lost == ["server 3 stopped", "an event", "a new event"]


async def test_a_log_on_the_full_disk_does_not_end_the_keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "no space is left")

    monkeypatch.setattr("engine.keeper.journal.os.write", full)
    with open_writer(tmp_path / "llmtune.db") as writer, open_reader(tmp_path / "llmtune.db") as reader:
        await Journal(writer).event("ready")
        assert [event.text for event in reader.events()] == ["ready"]


class EndsWhenTold:
    """A keeper that works until it is told to end."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self._ended = asyncio.Event()

    def commands(self) -> dict[str, Handler]:
        return {"break": self._break}

    async def work(self) -> None:
        await self._ended.wait()

    def terminate(self, reason: str) -> None:
        self.told.append(reason)
        self._ended.set()

    async def _break(self, request: Mapping[str, Any]) -> dict[str, Any]:
        raise StoreFull("no space is left")


async def test_a_keeper_is_alone_answers_and_ends_on_sigterm(runtime: Path, tmp_path: Path) -> None:
    keeper = EndsWhenTold()
    at_hang_up = signal.getsignal(signal.SIGHUP)
    with only_keeper(tmp_path, "session", 1) as socket:
        socket.touch()  # what a killed keeper left
        assert not answers(tmp_path, "session", 1)
        holding = asyncio.create_task(hold(keeper, socket))
        while not answers(tmp_path, "session", 1):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        with pytest.raises(KeeperRefused, match="no space is left"):
            await asyncio.to_thread(call, tmp_path, "session", 1, "break")
        with pytest.raises(EngineError, match="has a keeper already"), only_keeper(tmp_path, "session", 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(holding, 5)
    signal.signal(signal.SIGHUP, at_hang_up)
    assert keeper.told == ["the keeper was sent SIGTERM"]
    assert not is_running(tmp_path, "session", 1)


def test_who_only_asks_does_not_turn_a_keeper_away(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    path.touch()
    asker = os.open(path, os.O_RDONLY)
    fcntl.flock(asker, fcntl.LOCK_SH)
    threading.Timer(0.1, os.close, [asker]).start()
    assert KeeperLock.acquire(path) is not None


def test_a_keeper_is_found_from_a_login_that_has_another_runtime_folder(tmp_path: Path) -> None:
    ours = keeper_places(tmp_path, "session", 1, {"XDG_RUNTIME_DIR": "/run/user/1"})
    assert ours == keeper_places(tmp_path, "session", 1, {"TMPDIR": str(tmp_path)})


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
    with pytest.raises(EngineError, match="export HF_TOKEN with") as missing:
        restore_secrets(kept, {}, {})
    assert redact(str(missing.value)) == str(missing.value), "what to do is not taken for a secret itself"


def test_a_key_among_the_flags_moves_to_the_environment() -> None:
    flags = {"api_key": ["s3cret"], "hf-token": "hf", "max-num-seqs": 4}
    moved = secrets_to_env(ServerSpec("m", "127.0.0.1", 8000, flags, env={"A": "1"}))
    assert moved.flags == {"max-num-seqs": 4}
    assert moved.env == {"A": "1", "VLLM_API_KEY": "s3cret", "HF_TOKEN": "hf"}
    extra = ServerSpec("m", "127.0.0.1", 8000, extra_args=("--api-key", "one", "--hf-token=two", "--seed", "1"))
    moved = secrets_to_env(extra)
    assert (moved.extra_args, moved.env) == (("--seed", "1"), {"VLLM_API_KEY": "one", "HF_TOKEN": "two"})
    plain = ServerSpec("m", "127.0.0.1", 8000, {"max-num-seqs": 4, "hf-token": True})
    assert secrets_to_env(plain) == plain
    with pytest.raises(EngineError, match="give one"):
        secrets_to_env(ServerSpec("m", "127.0.0.1", 8000, {"api-key": ["a", "b"]}))


def test_a_spec_with_secrets_is_kept_redacted_and_passed_whole() -> None:
    spec = ServerSpec(
        "m", "127.0.0.1", 8000, {"otlp-traces-endpoint": "http://me:pass@h"}, env={"K": "v"}, extra_args=("--x",)
    )
    kept = redacted_spec(spec)
    assert kept["flags"] == {"otlp-traces-endpoint": "http://me:***@h"}
    environ = pass_spec({"PATH": "/bin"}, spec)
    real = take_spec(environ)
    assert real is not None
    assert real["flags"] == spec.flags
    assert environ == {"PATH": "/bin"}
    assert take_spec(pass_spec({}, ServerSpec("m", "127.0.0.1", 8000))) is None
    with pytest.raises(EngineError, match="type it anew"):
        refuse_hidden(ServerSpec("m", "127.0.0.1", 8000, kept["flags"]))
