"""How fast a store that has grown opens and answers. Times are of this machine and printed, never judged here; the goal
is that a list of 1,000 sessions or 10,000 runs is there before a person notices (0.5 s)."""

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from store.database import open_reader, open_writer
from store.reader import Reader
from store.run_columns import RUN_COLUMNS
from tests.store.examples import a_launch, a_run, a_sample, a_server, a_session

pytestmark = pytest.mark.benchmark

ROUNDS = 7
SESSIONS, RUNS, SAMPLES = 1000, 10_000, 20_000


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """1,000 sessions; the first has 10,000 runs with 20 KiB of raw result each, its server 20,000 samples."""
    path: Path = tmp_path_factory.mktemp("grown") / "llmtune.db"
    candidates = [{"index": i, "label": f"{i}", "settings": {"max-num-seqs": i, "x": 0.9}} for i in range(12)]
    metrics: dict[str, float | None] = dict.fromkeys(RUN_COLUMNS, 1.5)
    with open_writer(path) as writer, writer.transaction():
        sessions = [writer.insert(a_session(candidates=candidates)) for _ in range(SESSIONS)]
        server = writer.insert(a_server(sessions[0]))
        for session in sessions:
            launch = writer.insert(a_launch(session))
        launch = writer.insert(a_launch(sessions[0]))
        for number in range(RUNS):
            raw = {"itls": "0.0123," * 3000}
            writer.insert(a_run(sessions[0], launch, repeat=number, metrics=metrics, raw=raw))
        writer.insert_samples(
            [
                a_sample(at=f"2026-11-30T{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}.000Z", server_id=server)
                for i in range(SAMPLES)
            ]
        )
    with open_reader(path) as reader:
        yield reader


def timed(name: str, ask: Callable[[], object]) -> None:
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        ask()
        times.append(time.perf_counter() - begun)
    print(f"{name}: {statistics.median(times) * 1000:.1f} ms")


def test_a_grown_store(grown: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    first = grown.sessions()[0].id
    assert first is not None
    with capsys.disabled():
        print()
        timed("open a reader", lambda: open_reader(grown.path).close())
        timed("list 1,000 sessions", grown.sessions)
        timed("progress of 1,000 sessions", grown.progress)
        timed("list 10,000 runs", lambda: grown.runs(first))
        timed("the newest 600 samples of 20,000", lambda: grown.samples(server_id=1, limit=600))
        timed("version", grown.version)
    assert len(grown.runs(first)) == RUNS
