"""`llmtune pause|resume|skip|stop SESSION`: what the session's keeper is asked."""

import argparse
from pathlib import Path

from engine.keeper.client import KeeperGone, call, is_running
from engine.text import clean
from store.records import SessionRecord
from tui.commands.places import data_place, reading
from tui.output import UsageError, say, say_json
from tuning.sessions import start_keeper


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    with reading(place) as reader:
        session = reader.find_session(args.session)
    assert session.id is not None
    if args.command == "resume" and not is_running(place, "session", session.id):
        message = revive(place, session)
    else:
        message = ask(place, session, args)
    if args.json:
        say_json({"session": session.id, "command": args.command, "message": message})
    else:
        say(message)
    return 0


def ask(place: Path, session: SessionRecord, args: argparse.Namespace) -> str:
    """Send the command; what to tell. Raises KeeperGone with what to do, KeeperRefused."""
    assert session.id is not None
    details = {"candidate": args.candidate} if args.command == "skip" else {}
    if details and not any(int(c["index"]) == args.candidate for c in session.candidates):
        known = ", ".join(f"{c['index']} ({c['label']})" for c in session.candidates)
        raise UsageError(f"session {session.id} has no candidate {args.candidate}: it has {known}")
    try:
        answer = call(place, "session", session.id, args.command, **details)
    except KeeperGone:
        if session.state in ("done", "stopped", "failed"):
            raise UsageError(f"session {session.id} is {session.state}: there is nothing to {args.command}") from None
        raise KeeperGone(
            f"nothing works on session {session.id} now: `llmtune resume {session.id}` goes on with it"
        ) from None
    return f"session {session.id}: {clean(str(answer.get('message', 'done')), 500)}"


def revive(place: Path, session: SessionRecord) -> str:
    """A new keeper for a session whose keeper is gone: it first ends what its predecessor left."""
    assert session.id is not None
    if session.state == "done":
        raise UsageError(f"session {session.id} is done: `llmtune report {session.id}` shows its results")
    start_keeper(place, session.id)
    return f"session {session.id}: goes on at its first run without a result"
