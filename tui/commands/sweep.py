"""`llmtune sweep PLAN.toml`: start a session from a plan, and follow it."""

import argparse
import os
from pathlib import Path

from engine.keeper.client import is_running
from engine.launch.installation import find_vllm
from engine.launch.model import check_model
from engine.records import EngineError
from tui.commands.follow import finish, follow
from tui.commands.places import keeping, reading
from tui.commands.screens import have_terminal, open_screens
from tui.output import UsageError, say
from tuning.judgement.calibration import calibration, with_blocks
from tuning.plans.plan_file import plan_toml, read_plan
from tuning.records import Plan
from tuning.sessions import create_session, start_keeper


def read_text(path: Path) -> str:
    """A plan's text. Raises UsageError where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): give the plan's TOML file") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a text file: give the plan's TOML file") from None


def begin(args: argparse.Namespace, plan: Plan, plan_text: str) -> tuple[Path, int]:
    """Create the session and start its keeper; the data directory and the session's id.

    Raises UsageError, VllmNotFound or VllmTooOld, before anything is written, where the model or vLLM is not what the
    plan says."""
    try:
        check_model(plan.model)
    except EngineError as error:
        raise UsageError(str(error)) from error
    installation = find_vllm(args.vllm or plan.vllm, os.environ)
    with keeping(args) as place:
        session_id = create_session(place, plan, plan_text, installation)
        # The plan's secrets are kept nowhere, so the keeper gets them now.
        start_keeper(place, session_id, plan.server_env)
    return place, session_id


def watch(args: argparse.Namespace, place: Path, session_id: int) -> int:
    """Follow a session: on the screen where there is a terminal and nothing else was asked for, else as lines."""
    if args.headless or args.json or not have_terminal():
        if not args.json:
            say(f"session {session_id}, kept in {place}")
        return follow(place, session_id, as_json=args.json)
    status = open_screens(args, place, session=session_id)
    if status == 0 and not is_running(place, "session", session_id):
        # What was measured stays in the terminal when the screen is gone.
        with reading(place) as reader:
            return finish(reader, reader.session(session_id), as_json=False)
    return status


def run(args: argparse.Namespace) -> int:
    path = Path(args.plan)
    text = read_text(path)
    plan = read_plan(text, where=args.plan)
    if args.calibrate or args.blocks is not None:
        plan = calibration(plan, args.blocks) if args.calibrate else with_blocks(plan, args.blocks)
        text = plan_toml(plan)
    return watch(args, *begin(args, plan, text))
