"""`llmtune sessions`: what was measured here."""

import argparse
from pathlib import Path
from typing import Any

from engine.keeper.client import is_running
from engine.text import clean
from store.errors import NotFound
from store.records import SessionRecord
from tui.commands.follow import ENDED
from tui.commands.places import data_place, reading
from tui.format import local_minute
from tui.output import columns, say, say_json


def session_json(session: SessionRecord, kept: bool) -> dict[str, Any]:
    """One session for `--json`; `kept` is whether a keeper works on it now."""
    keys = ("id", "name", "state", "created_at", "started_at", "finished_at", "message")
    return {
        **{key: getattr(session, key) for key in keys},
        "model": session.plan.get("model"),
        "candidates": session.candidates,
        "sentence": verdict(session),
        "keeper": kept,
    }


def session_row(session: SessionRecord, kept: bool) -> list[str]:
    """A row of the list; where nobody works on a session that has not ended, it says so."""
    return [
        str(session.id),
        clean(session.name, 40),
        session.state if kept or session.state in ENDED else f"{session.state}, no keeper",
        local_minute(session.created_at),
        clean(Path(str(session.plan.get("model", ""))).name, 40),
        str(len(session.candidates)),
        "; ".join(clean(text, 200) for text in (verdict(session), session.message) if text),
    ]


def verdict(session: SessionRecord) -> str | None:
    """The verdict's sentence as its keeper kept it after the last look; None where none was."""
    kept = session.raw.get("sentence")
    return kept if isinstance(kept, str) and kept else None


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    try:
        with reading(place) as reader:
            sessions = reader.sessions()
    except NotFound as error:
        if args.json:
            say_json({"sessions": []})
        else:
            say(str(error))
        return 0
    kept = [session.id is not None and is_running(place, "session", session.id) for session in sessions]
    if args.json:
        say_json({"sessions": list(map(session_json, sessions, kept))})
    elif not sessions:
        say(f"no session in {place} yet: llmtune sweep PLAN.toml starts one")
    else:
        for line in columns(["", "name", "state", "created", "model", "points", ""], map(session_row, sessions, kept)):
            say(line)
    return 0
