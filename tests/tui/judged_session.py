"""Sessions whose truth is known, in a data directory: one with a winner, as a sweep would have made it."""

from dataclasses import asdict, replace
from pathlib import Path

from store.database import open_writer
from store.location import database_file
from tests.tuning.played_sessions import Played, Truth, plan_of, play
from tuning.records import Budget, Plan

LIMIT = "chat.p99_ttft_ms <= 500"


def winner_plan(blocks: int = 4) -> Plan:
    """Three candidates and a limit, with a price."""
    plan = plan_of(3, blocks, limits=(LIMIT,))
    return replace(plan, budget=Budget(gpu_price_per_hour=2.5))


def with_winner(state: str = "done") -> Played:
    """The first candidate is better by 6 %, the second worse by 10 %, the third the same; 1 % noise of a launch."""
    return play(winner_plan(), Truth({1: 0.06, 2: -0.1}, launch_sd=0.004), seed=3, state=state)


def keep(data_dir: Path, played: Played) -> int:
    """Write it; the session's id."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with open_writer(database_file(data_dir)) as writer:
        plan = {**played.session.plan, **asdict(played.plan)}
        number = writer.insert(replace(played.session, id=None, plan=plan))
        launches = {one.id: writer.insert(replace(one, id=None, session_id=number)) for one in played.launches}
        for run in played.runs:
            writer.insert(replace(run, id=None, session_id=number, launch_id=launches[run.launch_id]))
    return number
