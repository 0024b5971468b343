"""Two measured sessions in a database, for tests of what compares them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from store.database import open_writer
from store.records import LaunchRecord, RunRecord, SessionRecord
from store.writer import Writer
from tests.tuning.compared.measured import a_plan, a_session


def insert(writer: Writer, rows: tuple[SessionRecord, list[LaunchRecord], list[RunRecord]]) -> int:
    """Write a session with new ids; its own."""
    session, launches, runs = rows
    number = writer.insert(replace(session, id=None))
    ids = {each.id: writer.insert(replace(each, id=None, session_id=number)) for each in launches}
    for run in runs:
        writer.insert(replace(run, id=None, session_id=number, launch_id=ids[run.launch_id] or 0))
    return number


def record_three(data_dir: Path, **second: Any) -> None:
    """1 "before" and 2 "after", in which seqs 256 loses a tenth; 3 "other" of another model."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with open_writer(data_dir / "llmtune.db") as writer:
        insert(writer, a_session(a_plan(name="before"), {1: 0.04}, environment={"vllm": "0.32.0"}))
        insert(writer, a_session(a_plan(name="after"), {1: 0.04, 2: -0.1}, seed=2, begins=200_000, **second))
        other = a_plan(name="other", model="org/other")
        insert(writer, a_session(other, seed=3, begins=400_000, environment={"vllm": "0.33.0"}))
