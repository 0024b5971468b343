"""Exporting and deleting sessions. Blocking: the screens do it in worker threads."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.keeper.client import is_running
from engine.records import EngineError
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.errors import StoreError
from store.location import database_file
from store.private_files import make_private_folder, write_private
from store.records import SessionRecord
from tuning.checks.finding import KEY
from tuning.report import html, markdown, to_csv, to_json
from tuning.results import session_result
from tuning.sweeping.leftovers import close_session

if TYPE_CHECKING:
    from store.reader import Reader


def export(data_dir: Path, session_id: int, form: str) -> Path:
    """Write the session's report in `form` (csv, html, json, md) to the exports folder; the file's path.

    An earlier export of the session in this format is replaced. Raises StoreError, OSError.
    """
    with open_reader(database_file(data_dir)) as reader:
        text = report_text(reader, reader.session(session_id), form)
    target = data_dir / "exports" / f"session-{session_id}.{form}"
    make_private_folder(target.parent)
    write_private(target, text)
    return target


def delete(data_dir: Path, session_id: int) -> None:
    """Delete the session's rows. Raises StoreError, also while a keeper works on it.

    What a killed keeper left running is ended first: without its rows nobody would find it any more.
    """
    if is_running(data_dir, "session", session_id):
        raise StoreError(f"Session {session_id} has a keeper at work: stop it first, then delete it")
    with open_reader(database_file(data_dir)) as reader:
        left_open = reader.session(session_id).state in ("running", "paused")
    if left_open:
        try:
            close_session(data_dir, session_id)
        except EngineError as error:
            raise StoreError(str(error)) from error
    with open_writer(database_file(data_dir)) as writer:
        writer.delete_session(session_id)


def report_text(reader: "Reader", session: SessionRecord, form: str) -> str:
    """The session's report as it stands, in `form` (csv, html, json, md)."""
    assert session.id is not None
    launches, runs = reader.launches(session.id), reader.runs(session.id, with_raw=form == "json")
    if form == "csv":
        return to_csv(session, runs)
    result = session_result(session, launches, runs, utc_now())
    if form == "json":
        return to_json(result, session, launches, runs)
    evidence = reader.evidence(session.id)
    runs = [replace(run, raw={KEY: evidence[run.id]}) if run.id in evidence else run for run in runs]
    return (html if form == "html" else markdown)(result, session, launches, runs)
