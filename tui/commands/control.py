"""`llmtune pause|resume|skip|stop SESSION`: what the session's keeper is asked."""

import argparse
import sys
from pathlib import Path

from engine.keeper.client import KeeperGone, call, is_running
from engine.text import clean
from store.records import SessionRecord
from tui.commands.places import data_place, reading
from tui.output import UsageError, complain, say, say_json
from tuning.sessions import MachineChanged, start_keeper
from tuning.sweeping.leftovers import close_session


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    with reading(place) as reader:
        session = reader.find_session(args.session)
    assert session.id is not None
    if args.command == "resume" and not is_running(place, "session", session.id):
        message = revive(place, session, args.accept_changes)
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
        if args.command == "stop":
            close_session(place, session.id)
            return f"session {session.id}: stopped; nothing worked on it any more"
        raise KeeperGone(
            f"nothing works on session {session.id} now: `llmtune resume {session.id}` goes on with it"
        ) from None
    return f"session {session.id}: {clean(str(answer.get('message', 'done')), 500)}"


def revive(place: Path, session: SessionRecord, accept_changes: bool) -> str:
    """A new keeper for a session whose keeper is gone: it first ends what its predecessor left.

    On a machine that is another now, a person at a terminal is asked; without one, MachineChanged says the option.
    """
    assert session.id is not None
    if session.state == "done":
        raise UsageError(f"session {session.id} is done: `llmtune report {session.id}` shows its results")
    try:
        start_keeper(place, session.id, accept_changes=accept_changes)
    except MachineChanged as error:
        if not (sys.stdin.isatty() and sys.stderr.isatty()) or not agreed(session.id, error):
            raise
        start_keeper(place, session.id, accept_changes=True)
    return f"session {session.id}: goes on at its first run without a result"


def agreed(session_id: int, error: MachineChanged) -> bool:
    """Whether the person at the terminal wants to go on in spite of the differences."""
    complain(f"session {session_id} was measured on another machine:")
    for difference in error.differences:
        print(f"  {difference}", file=sys.stderr)
    print("Its numbers would be mixed. Go on all the same? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
