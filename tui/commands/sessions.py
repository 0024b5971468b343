"""`llmtune sessions`: what was measured here."""

import argparse
from pathlib import Path
from typing import Any

from engine.keeper.client import is_running
from engine.text import clean
from store.clock import parse_utc
from store.errors import NotFound
from store.records import SessionRecord
from tui.commands.places import data_place, reading
from tui.output import columns, say, say_json


def session_json(session: SessionRecord, kept: bool) -> dict[str, Any]:
    """One session for `--json`; `kept` is whether a keeper works on it now."""
    keys = ("id", "name", "state", "created_at", "started_at", "finished_at", "message")
    return {
        **{key: getattr(session, key) for key in keys},
        "model": session.plan.get("model"),
        "candidates": session.candidates,
        "keeper": kept,
    }


def state_words(session: SessionRecord, kept: bool) -> str:
    """The state, and that nobody works on it where it says running."""
    return session.state if kept or session.state not in ("running", "waiting") else f"{session.state}, no keeper"


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
    kept = {session.id: _kept(place, session) for session in sessions}
    if args.json:
        say_json({"sessions": [session_json(session, kept[session.id]) for session in sessions]})
    elif not sessions:
        say(f"no session in {place} yet: llmtune sweep PLAN.toml starts one")
    else:
        for line in columns(["", "name", "state", "created", "model", "points", ""], map(_row(kept), sessions)):
            say(line)
    return 0


def _kept(place: Path, session: SessionRecord) -> bool:
    return session.id is not None and is_running(place, "session", session.id)


def _row(kept: dict[int | None, bool]) -> Any:
    def row(session: SessionRecord) -> list[str]:
        return [
            str(session.id),
            clean(session.name, 40),
            state_words(session, kept[session.id]),
            parse_utc(session.created_at).astimezone().strftime("%Y-%m-%d %H:%M"),
            clean(Path(str(session.plan.get("model", ""))).name, 40),
            str(len(session.candidates)),
            clean(session.message or "", 100),
        ]

    return row
