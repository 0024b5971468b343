"""A session in progress as plain lines: what happened, each run as it finishes, the table at the end."""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.text import clean
from store.records import EventRecord, RunRecord, SessionRecord
from tui.commands.keeper_watch import KeeperWatch
from tui.commands.places import reading
from tui.commands.result_table import result_lines, result_of
from tui.format import local_clock
from tui.hindrance import hindrance
from tui.metric_text import metric_name, metric_value
from tui.output import complain, say, say_json
from tuning.limited_by import UNTOLD, finding

if TYPE_CHECKING:
    from store.reader import Reader

LOOK_EVERY_S = 0.5
EVENTS_AT_ONCE = 1000
ENDED = ("done", "stopped", "failed")
HEADLINE = ("total_tok_per_s", "mean_ttft_ms", "p99_ttft_ms", "mean_itl_ms")


def run_line(run: RunRecord, labels: dict[int, str]) -> str:
    """One finished run for a person."""
    what = f"{run.workload} {'warm-up' if run.kind == 'warmup' else 'run'} {run.repeat + 1}"
    head = f"block {run.block + 1}, candidate {run.candidate} [{labels.get(run.candidate, '')}], {what}"
    if run.state != "done":
        return f"{head}: {run.state}, {clean(run.reason or 'no reason given', 300)}"
    shown = [f"{metric_name(key)} {metric_value(key, run.metrics.get(key))}" for key in HEADLINE]
    limited = [finding(run.limited_by)] if run.limited_by and not run.limited_by.startswith(UNTOLD) else []
    return f"{head}: {', '.join([*shown, *limited])}"


def candidate_line(candidate: dict[str, Any]) -> str:
    """What a candidate is, once, so that the lines of its runs can be short."""
    settings = [f"{name} {value}" for name, value in candidate["settings"].items()]
    what = clean(", ".join(settings), 300) if settings else "the baseline, as [server] of the plan says"
    return f"candidate {candidate['index']} [{clean(str(candidate['label']), 80)}]: {what}"


def run_json(run: RunRecord) -> dict[str, Any]:
    """One finished run as the stream of `--json` has it."""
    keys = ("id", "block", "candidate", "slot", "workload", "kind", "repeat", "seed", "state", "reason", "finished_at")
    return {
        "type": "run",
        **{key: getattr(run, key) for key in keys},
        "limited_by": run.limited_by,
        "metrics": run.metrics,
    }


@dataclass
class Progress:
    """What has been told already, so that each look tells only what is new."""

    told_candidates: set[int] = field(default_factory=set)
    told_events: set[int] = field(default_factory=set)
    told_runs: set[int] = field(default_factory=set)

    def new(self, reader: "Reader", session_id: int) -> Iterator[EventRecord | RunRecord]:
        """Events and finished runs not told yet, in the order in which they happened."""
        news: list[tuple[str, EventRecord | RunRecord]] = []
        for event in reader.events(session_id=session_id, limit=EVENTS_AT_ONCE):
            if event.id is not None and event.id not in self.told_events:
                self.told_events.add(event.id)
                news.append((event.at, event))
        for run in reader.runs(session_id):
            if run.id is not None and run.state != "running" and run.id not in self.told_runs:
                self.told_runs.add(run.id)
                news.append((run.finished_at or "", run))
        return (item for _, item in sorted(news, key=lambda pair: pair[0]))


def tell(item: EventRecord | RunRecord, labels: dict[int, str], as_json: bool) -> None:
    """One line: text for a person, or a JSON object."""
    if isinstance(item, EventRecord):
        if as_json:
            say_json({"type": "event", "at": item.at, "level": item.level, "text": item.text}, compact=True)
        else:
            mark = "" if item.level == "info" else f"{item.level}: "
            say(f"{local_clock(item.at)}  {mark}{clean(item.text, 500)}")
    elif as_json:
        say_json(run_json(item), compact=True)
    elif item.state not in ("rejected", "failed"):  # of those the keeper's own event tells more
        say(f"{local_clock(item.finished_at):8}  {run_line(item, labels)}")


def follow(
    place: Path,
    session_id: int,
    *,
    as_json: bool = False,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> int:
    """Tell a session's progress until it ends, then its results. Exit status: 0 done or stopped, 1 failed or left
    without a keeper, 130 on Ctrl-C, which leaves the session going."""
    progress = Progress()
    keeper = KeeperWatch(place, "session", session_id, monotonic)
    held_up: str | None = None
    with reading(place) as reader:
        try:
            while True:
                # The state is read before the rows: what is written in between is told by the next look or the last.
                session = reader.session(session_id)
                for candidate in session.candidates:  # some may be added while it runs
                    if candidate["index"] not in progress.told_candidates and not as_json:
                        say(candidate_line(candidate))
                    progress.told_candidates.add(candidate["index"])
                labels = {int(c["index"]): clean(str(c["label"]), 80) for c in session.candidates}
                for item in progress.new(reader, session_id):
                    tell(item, labels, as_json)
                if session.state in ENDED:
                    return finish(reader, session, as_json)
                blocked = hindrance(place, session_id)
                if blocked is not None and blocked != held_up:
                    complain(blocked)
                held_up = blocked
                if keeper.gone():
                    complain(
                        f"nothing works on session {session_id} now: `llmtune resume {session_id}` goes on with it"
                    )
                    return 1
                sleep(LOOK_EVERY_S)
        except KeyboardInterrupt:
            complain(
                f"session {session_id} goes on without this terminal: "
                f"`llmtune attach {session_id}` comes back to it, `llmtune stop {session_id}` ends it"
            )
            return 130


def finish(reader: "Reader", session: SessionRecord, as_json: bool) -> int:
    """The results of a session that has ended; its exit status, which is 1 also where it is done and nothing counts."""
    assert session.id is not None
    result = result_of(reader, session)
    if as_json:
        say_json({"type": "result", **asdict(result)}, compact=True)
    else:
        say()
        for line in result_lines(result):
            say(line)
        if session.state == "done":
            say(f"the whole report: llmtune report {session.id}")
    if session.state == "failed":
        complain(f"session {session.id} failed: {clean(session.message or 'its keeper says no more', 500)}")
        return 1
    if session.state == "done" and not any(row.summaries for row in result.results):
        reasons = [run.reason for run in reader.runs(session.id) if run.state != "done" and run.reason]
        why = clean(reasons[-1], 300) if reasons else "see its events above"
        complain(f"session {session.id} measured nothing, since no run counts: {why}")
        return 1
    return 0
