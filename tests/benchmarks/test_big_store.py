"""How soon each screen stands when the store holds 10,000 runs and a week of samples, and what looking at it costs.
Times are of this machine and printed, never judged here; the goals are for an idle one.

    make bench ARGS="-k big_store"
"""

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.keeper.lock import KeeperLock
from engine.keeper.places import KeeperKind, keeper_places
from store.database import open_reader, open_writer
from store.location import database_file
from store.reader import Reader
from store.records import SampleRecord
from store.writer import Writer
from tests.benchmarks.big_store import build, insert_many, sample_row
from tests.terminal import Terminal
from tui.app import LlmtuneApp
from tui.poller import going_on
from tui.screens.base import LlmtuneScreen

if TYPE_CHECKING:
    from textual.pilot import Pilot

pytestmark = pytest.mark.benchmark

ROOT = Path(__file__).resolve().parents[2]
SIZE = (140, 45)
ROUNDS = int(os.environ.get("LLMTUNE_BENCH_ROUNDS", "5"))
GOAL_S = 0.2
READ_GOAL_MS = 3.0
LOOKS = 9
LOOKED_AT = {
    "Servers": ["1"],
    "Monitor": ["2"],
    "Tune": ["3"],
    "Sessions": ["4"],
    "session report": ["enter"],
    "plot": ["g"],
}
"""Screens by the keys that lead there, one after another."""

# What is pressed one after another, each from where the last one led, and what stands on the screen when all is drawn.
WALK: tuple[tuple[str, bytes, str], ...] = (
    ("Sessions", b"4", r"sweep-42 .*[\s\S]*sweep-30 [\s\S]*(default|candidate)"),
    ("session report", b"\r", r"begun [\s\S]*Cost and energy"),
    ("plot", b"g", r"total tok/s against[\s\S]*mean and 95 %"),
    ("back to the report", b"\x1b", r"begun [\s\S]*Cost and energy"),
    ("runs of a session", b"r", r"\d+ runs[\s\S]*chat +run 2"),
    ("charts of a run", b"\r", r"KV cache mean[\s\S]*GPU power mean"),
    ("back to the runs", b"\x1b", r"\d+ runs[\s\S]*chat +run 2"),
    ("report once more", b"\x1b", r"begun [\s\S]*Cost and energy"),
    ("back to Sessions", b"\x1b", r"sweep-30 "),
    ("Tune", b"3", r'Session 42 "sweep-42"[\s\S]*decide by[\s\S]*default[\s\S]*x skip'),
    ("Servers", b"1", r"by-hand[\s\S]*KV cache[\s\S]*n new"),
    ("life of a server", b"h", r"by-hand[\s\S]*KV cache mean[\s\S]*GPU power mean"),
    ("back to Servers", b"\x1b", r"by-hand[\s\S]*KV cache[\s\S]*n new"),
    ("Monitor", b"2", r"KV cache +\d[\s\S]*running +\d"),
    ("help", b"?", r"KV cache[\s\S]*share of the KV"),
    ("back to Monitor", b"\x1b", r"\A(?![\s\S]*share of the KV)[\s\S]*KV cache +\d[\s\S]*running +\d"),
    ("Sessions again", b"4", r"sweep-42 .*[\s\S]*sweep-30 [\s\S]*(default|candidate)"),
    ("Tune again", b"3", r'Session 42 "sweep-42"[\s\S]*decide by[\s\S]*default[\s\S]*x skip'),
    ("Servers again", b"1", r"by-hand[\s\S]*KV cache[\s\S]*n new"),
)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten thousand runs of 42 sessions and a week of one server, as thinning leaves it."""
    folder = tmp_path_factory.mktemp("big")
    begun = time.perf_counter()
    runs = build(database_file(folder), datetime.now(UTC))
    size = database_file(folder).stat().st_size / 2**20
    print(f"\n{runs} runs, a week of samples: {size:.0f} MiB, made in {time.perf_counter() - begun:.0f} s")
    assert runs > 9_900
    return folder


def environ(data_dir: Path) -> dict[str, str]:
    return {"LLMTUNE_DATA_DIR": str(data_dir), "LLMTUNE_RUNTIME_DIR": str(data_dir / "run")}


@pytest.fixture
def alive(data_dir: Path) -> Iterator[None]:
    """The session's keeper and the server's are alive, and both write a sample each second."""
    stop = threading.Event()

    def feed() -> None:
        with open_writer(database_file(data_dir)) as writer, open_reader(database_file(data_dir)) as reader:
            servers = [server.id for server in reader.servers(active=True)]
            while not stop.wait(1.0):
                now = datetime.now(UTC)
                rows = [sample_row(now, server or 0, None, now.timestamp(), 1) for server in servers]
                with writer.transaction():
                    insert_many(writer, SampleRecord, rows)

    with open_reader(database_file(data_dir)) as reader:
        held: list[tuple[KeeperKind, int]] = [("session", session.id or 0) for session in reader.sessions(("running",))]
        held += [("server", server.id or 0) for server in reader.servers(active=True) if server.session_id is None]
    with ExitStack() as stack:
        for kind, number in held:
            lock = KeeperLock.acquire(keeper_places(data_dir, kind, number, environ(data_dir)).lock)
            assert lock is not None
            stack.callback(lock.release)
        feeder = threading.Thread(target=feed)
        feeder.start()
        yield
        stop.set()
        feeder.join()


def test_screens_open(data_dir: Path, alive: None) -> None:
    """Each round is another start of the program, so that every screen is opened for the first time in it."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name, _, _ in WALK}
    for _ in range(ROUNDS):
        with Terminal([sys.executable, "-m", "tui.cli"], SIZE, environ(data_dir), ROOT) as terminal:
            terminal.wait_for("Session 42")  # it attaches to what runs
            time.sleep(1.0)
            terminal.press(b"1")
            terminal.wait_for("by-hand")
            for name, key, drawn in WALK:
                time.sleep(0.6)
                begun = terminal.use()
                terminal.press(key)
                drawn_at = terminal.wait_for(drawn, 60)
                times[name].append((drawn_at - begun.at, terminal.use().cpu_s - begun.cpu_s))
    print(f"\nfrom the key to the whole screen at {SIZE[0]}x{SIZE[1]}, median of {ROUNDS}, goal {GOAL_S * 1000:g} ms")
    for name, found in times.items():
        wall, cpu = (1000 * statistics.median(each) for each in zip(*found, strict=True))
        print(f"{name:<20} {wall:6.0f} ms, CPU {cpu:6.0f} ms{'  over' if wall > 1000 * GOAL_S else ''}")


def test_a_report_is_opened_at_once(data_dir: Path, alive: None) -> None:
    """By one who presses the keys a second after the first screen stands, while the rest is still being imported."""
    found: dict[str, list[float]] = {"Sessions": [], "session report": []}
    for _ in range(ROUNDS):
        with Terminal([sys.executable, "-m", "tui.cli"], SIZE, environ(data_dir), ROOT) as terminal:
            terminal.wait_for("Session 42")
            time.sleep(1.0)
            for name, key, drawn in WALK[:2]:
                begun = time.monotonic()
                terminal.press(key)
                found[name].append(terminal.wait_for(drawn, 60) - begun)
    print("\none second after the start, ms: ", end="")
    print(", ".join(f"{name} {1000 * statistics.median(took):.0f}" for name, took in found.items()))


def test_commands(data_dir: Path) -> None:
    print()
    for words in (
        ["--help"],
        ["sessions"],
        ["report", "last"],
        ["report", "last", "--format", "csv"],
        ["server", "list"],
    ):
        took = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            command = [sys.executable, "-m", "tui.cli", *words]
            done = subprocess.run(
                command, capture_output=True, cwd=ROOT, check=False, env={**os.environ, **environ(data_dir)}
            )
            assert done.returncode == 0, done.stderr
            took.append(time.perf_counter() - begun)
        print(f"llmtune {' '.join(words):<25} {statistics.median(took) * 1000:6.0f} ms")


async def test_a_look_of_the_poller(data_dir: Path) -> None:
    """What each screen's reading takes of this thread's own time, a second after the last, when nothing but samples
    came in: Python runs one thread at once, so this is time that the screens do not have."""
    print(f"\na look of the poller, median of {LOOKS}, goal {READ_GOAL_MS:g} ms")
    app = LlmtuneApp(data_dir, None)
    async with app.run_test(size=SIZE) as pilot:
        for name, keys in LOOKED_AT.items():
            await pilot.press(*keys)
            await fed(app, pilot)
            database = database_file(data_dir)
            with open_writer(database) as writer, open_reader(database, remembers=True) as reader:
                took = [look_ms(app, writer, reader, at) for at in range(LOOKS)]
            print(f"{name:<20} {statistics.median(took):7.2f} ms   worst {max(took):7.2f} ms")


def look_ms(app: LlmtuneApp, writer: Writer, reader: Reader, at: int) -> float:
    """CPU milliseconds of one look, after a sample of the server that runs."""
    screen = app.screen
    assert isinstance(screen, LlmtuneScreen)
    begun = time.thread_time()
    going_on(reader)
    screen.refresh_from_store(reader)
    took = 1000 * (time.thread_time() - begun)
    server = reader.servers(active=True)[-1]
    now = datetime.now(UTC)
    insert_many(writer, SampleRecord, [sample_row(now, server.id or 0, None, now.timestamp(), 1)])
    return took


async def fed(app: LlmtuneApp, pilot: "Pilot[object]") -> None:
    before = app.readings
    for _ in range(600):
        await pilot.pause(0.05)
        if app.readings > before + 1:
            return
    raise AssertionError("the screen was not fed")
