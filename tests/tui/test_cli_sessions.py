"""Commands about recorded sessions, on a database with one."""

import csv
import io
import json
from pathlib import Path

import pytest

from store.database import open_reader, open_writer
from store.records import EventRecord, RunRecord, SessionRecord
from tests.tui.recorded import AT, record
from tests.tuning.examples import plan
from tui import hindrance
from tui.cli import main
from tui.commands import keeper_watch, sweep
from tui.commands.follow import follow
from tuning.plans.plan_file import plan_toml, read_plan
from tuning.records import Plan


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLMTUNE_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def test_sessions_are_listed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(place)
    assert main(["sessions"]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert "state" in header
    assert "small" in line
    assert "done" in line
    assert main(["sessions", "--json"]) == 0
    (session,) = json.loads(capsys.readouterr().out)["sessions"]
    assert session["keeper"] is False
    assert session["model"] == "org/model"


def test_a_session_is_listed_with_its_verdict(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    number = record(place)
    with open_writer(place / "llmtune.db") as writer:
        writer.update(SessionRecord, number, raw={"sentence": "seqs 64 is better than the default"}, message="stopped")
    main(["sessions"])
    assert "seqs 64 is better than the default; stopped" in capsys.readouterr().out
    main(["sessions", "--json"])
    (session,) = json.loads(capsys.readouterr().out)["sessions"]
    assert session["sentence"] == "seqs 64 is better than the default"


def test_a_session_that_nobody_works_on_says_so(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(place, state="running")
    main(["sessions"])
    assert "running, no keeper" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["1", "small", "last"])
def test_a_report_in_each_format(place: Path, word: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    record(place)
    assert main(["report", word]) == 0
    assert "|" in capsys.readouterr().out
    assert main(["report", word, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == 1
    out = tmp_path / "out.csv"
    assert main(["report", word, "--format", "csv", "--out", str(out)]) == 0
    assert capsys.readouterr().out == ""
    assert list(csv.reader(io.StringIO(out.read_text())))
    page = tmp_path / "out.html"
    assert main(["report", word, "--out", str(page)]) == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert main(["report", word, "--format", "html"]) == 0
    assert capsys.readouterr().out == page.read_text(encoding="utf-8")
    assert main(["report", word, "--out", str(tmp_path / "no" / "folder")]) == 2
    assert main(["report", word, "--json", "--format", "csv"]) == 2


def test_attach_to_a_finished_session_tells_it_whole(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(place)
    assert main(["attach", "last", "--headless"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    lines = out.splitlines()
    assert sum("run " in line or "warm-up " in line for line in lines if line[2:3] == ":") == 24
    assert [line for line in lines if line.startswith("candidate 1 ")] == ["candidate 1 [seqs 4]: max-num-seqs 4"]
    table = [line for line in lines if line.strip().startswith(("0  default", "1  seqs 4"))]
    assert len(table) == 4, "two candidates on two workloads"
    assert "+9.9 %" in table[1] or "+10" in table[1]


def test_a_session_in_which_no_run_counts_has_failed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(place)
    with open_writer(place / "llmtune.db") as writer, open_reader(place / "llmtune.db") as reader:
        for run in reader.runs(1):
            assert run.id is not None
            writer.update(RunRecord, run.id, state="rejected", reason="none of 8 requests succeeded: Bad Request")
    assert main(["attach", "last", "--headless"]) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert told.endswith("session 1 measured nothing, since no run counts: none of 8 requests succeeded: Bad Request")


def test_attach_as_json_is_one_object_a_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(place)
    assert main(["attach", "last", "--json"]) == 0
    stream = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {each["schema"] for each in stream} == {1}
    assert [each["type"] for each in stream].count("run") == 24
    assert stream[-1]["type"] == "result"


def test_following_ends_with_the_session(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session_id = record(place, state="running")
    monkeypatch.setattr(keeper_watch, "is_running", lambda *_: True)

    def keeper_fails(_: float) -> None:
        with open_writer(place / "llmtune.db") as writer:
            writer.insert(EventRecord(AT.format(58), "error", "the baseline does not start", session_id=session_id))
            writer.update(SessionRecord, session_id, state="failed", message="the baseline does not start")

    assert follow(place, session_id, sleep=keeper_fails) == 1
    said = capsys.readouterr()
    assert said.out.count("error: the baseline does not start") == 1
    assert said.out.count("block 1 of 2") == 1
    assert said.err == f"llmtune: session {session_id} failed: the baseline does not start\n"


def test_a_keeper_that_cannot_write_is_told_once(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session_id = record(place, state="running")
    monkeypatch.setattr(keeper_watch, "is_running", lambda *_: True)
    answers = iter(["no space is left\x1b[2J", "no space is left\x1b[2J", None])
    monkeypatch.setattr(hindrance, "call", lambda *_: {"blocked": next(answers)})
    looks = iter(range(3))

    def ends(_: float) -> None:
        if next(looks) == 2:
            with open_writer(place / "llmtune.db") as writer:
                writer.update(SessionRecord, session_id, state="done")

    assert follow(place, session_id, sleep=ends) == 0
    assert capsys.readouterr().err == "llmtune: the session waits, and loses nothing: no space is left\n"


def test_interrupting_leaves_the_session_going_and_says_so(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session_id = record(place, state="running")
    monkeypatch.setattr(keeper_watch, "is_running", lambda *_: True)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    assert follow(place, session_id, sleep=interrupt) == 130
    assert "goes on" in (told := capsys.readouterr().err)
    assert f"llmtune stop {session_id}" in told


def test_a_lost_keeper_is_told_after_a_grace(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session_id = record(place, state="running")
    now = iter(range(0, 1000, 4))
    assert follow(place, session_id, sleep=lambda _: None, monotonic=lambda: next(now)) == 1
    assert f"llmtune resume {session_id}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("state", "line", "says", "status"),
    [
        ("done", "pause 1", "there is nothing to pause", 2),
        ("done", "resume 1", "session 1 is done", 2),
        ("running", "pause 1", "llmtune resume 1", 1),
        ("running", "skip 1 7", "has no candidate 7", 2),
    ],
)
def test_control_without_a_keeper(
    place: Path, state: str, line: str, says: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    record(place, state=state)
    assert main(line.split()) == status
    (told,) = capsys.readouterr().err.splitlines()
    assert says in told


def test_a_session_that_nothing_works_on_can_be_stopped(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session_id = record(place, state="running")
    assert main(["stop", "last"]) == 0
    assert "nothing worked on it" in capsys.readouterr().out
    with open_reader(place / "llmtune.db") as reader:
        assert reader.session(session_id).state == "stopped"


def test_resume_starts_a_keeper_where_none_is(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record(place, state="paused")
    started: list[tuple[Path, int]] = []
    monkeypatch.setattr("tui.commands.control.start_keeper", lambda *args, **_: started.append(args))
    assert main(["resume", "last", "--json"]) == 0
    assert started == [(place, 1)]
    assert json.loads(capsys.readouterr().out)["session"] == 1


def test_what_limited_the_runs_stands_beside_them(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session_id = record(place)
    sentence = "KV-bound: KV above 95 % for all 7 s, about 9 waiting. Raise gpu-memory-utilization (now 0.9)."
    with open_writer(place / "llmtune.db") as writer:
        with open_reader(place / "llmtune.db") as reader:
            runs = reader.runs(session_id)
        for run in runs:
            assert run.id is not None
            writer.update(RunRecord, run.id, limited_by=sentence if run.candidate else "Cannot tell: no reading of it.")
    assert follow(place, session_id, as_json=True) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {one["limited_by"] for one in told if one["type"] == "run" and one["candidate"] == 1} == {sentence}
    assert follow(place, session_id) == 0
    lines = capsys.readouterr().out.splitlines()
    of_runs = [line for line in lines if ", candidate " in line]
    assert of_runs
    assert all(line.endswith(", KV-bound") == (", candidate 1 " in line) for line in of_runs)
    assert sum("limited by" in line for line in lines) == 2  # a table a workload


def test_a_plan_can_be_calibrated_and_given_more_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Plan] = []
    texts: list[str] = []

    def begin(args: object, plan: Plan, text: str) -> tuple[Path, int]:
        begun.append(plan)
        texts.append(text)
        return tmp_path, 1

    monkeypatch.setattr(sweep, "begin", begin)
    monkeypatch.setattr(sweep, "watch", lambda args, place, session: 0)
    path = tmp_path / "plan.toml"
    path.write_text(plan_toml(plan()))
    for options in ((), ("--calibrate",), ("--calibrate", "--blocks", "4"), ("--blocks", "5")):
        assert main(["sweep", str(path), *options]) == 0
    assert [(each.calibrate, each.decide.blocks) for each in begun] == [(False, 2), (True, 6), (True, 4), (False, 5)]
    assert [read_plan(text, str(path)) for text in texts] == begun  # what is kept as given is what is carried out


def test_blocks_that_decide_nothing_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(plan_toml(plan()))
    assert main(["sweep", str(path), "--blocks", "1"]) == 2
    assert "2 to 13 blocks" in capsys.readouterr().err


def test_what_a_session_came_to_is_told_with_its_verdicts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session_id = record(place)
    assert follow(place, session_id) == 0
    told = capsys.readouterr().out.splitlines()
    sentence = next(at for at, line in enumerate(told) if line.startswith("seqs 4 is better than the default"))
    header = next(at for at, line in enumerate(told) if "vs default" in line)
    assert sentence < header
    assert "verdict" in told[header]
    assert "✓ better" not in told[header + 1]  # the default itself
    assert told[header + 2].index("✓ better") == told[header].index("verdict")
