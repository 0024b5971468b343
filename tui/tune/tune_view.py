"""One session as the screens show it, and what its candidates and states are called. No widgets here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.text import clean
from store.records import EventRecord, LaunchRecord, RunRecord, SessionRecord
from tui.tune.grid_text import DEFAULT
from tuning.plans.grid import shown_setting
from tuning.records import Candidate, Plan, SessionResult
from tuning.report import serve_command

STATE_GLYPHS = {"waiting": "○", "running": "▶", "paused": "‖", "done": "✓", "stopped": "■", "failed": "✗"}
SHORT_FLAGS = {
    "max-num-batched-tokens": "batched",
    "gpu-memory-utilization": "util",
    "max-num-seqs": "seqs",
    "max-model-len": "len",
    "kv-cache-dtype": "kv dtype",
    "tensor-parallel-size": "tp",
}
LIVE_STATES = frozenset({"waiting", "running", "paused"})


@dataclass(frozen=True, slots=True)
class TuneView:
    """One session as the screen shows it, read at one moment. `dropped` are candidates that a person skipped."""

    session: SessionRecord
    plan: Plan | None
    result: SessionResult
    launch: LaunchRecord | None = None  # the one that runs now
    run: RunRecord | None = None
    keeper_alive: bool = False
    dropped: frozenset[int] = frozenset()
    failures: tuple[tuple[int, str], ...] = ()  # (candidate, why its last launch did not start)
    foregone: tuple[tuple[int, str], ...] = ()  # (candidate, why it was not tried)
    offers: tuple[tuple[int, dict[str, Any]], ...] = ()  # (candidate that did not start, settings that would)
    events: tuple[EventRecord, ...] = ()

    @property
    def workloads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.workload for one in self.result.results)) or tuple(self.result.metric)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return tuple({one.candidate.index: one.candidate for one in self.result.results}.values())


def short_flag(flag: str) -> str:
    """A column title for a setting: the usual ones by a word, any other by its last words."""
    return SHORT_FLAGS.get(flag) or clean(flag).replace("max-num-", "").replace("-", " ")[-14:]


def setting_flags(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Every flag that some candidate sets, in the order of first use."""
    return tuple(dict.fromkeys(flag for one in candidates for flag in one.settings))


def state_word(state: str, keeper_alive: bool) -> str:
    """The state as glyph and word. A running session whose keeper is gone says so."""
    if state in LIVE_STATES and not keeper_alive:
        return "! interrupted"
    return f"{STATE_GLYPHS.get(state, '·')} {state}"


def launch_name(view: TuneView, candidate: int) -> str:
    """`[2048, 0.9, 256]` where it sets every flag of the table, else its label (`util 0.98`), or `default`."""
    if candidate == 0:
        return DEFAULT
    found = next((one for one in view.candidates if one.index == candidate), None)
    if found is None:
        return f"candidate {candidate}"
    if not found.settings or len(found.settings) < len(setting_flags(view.candidates)):
        return clean(found.label, 60)
    return f"[{', '.join(clean(shown_setting(flag, value), 16) for flag, value in found.settings.items())}]"


def serve_line(plan: Plan, candidate: Candidate) -> str:
    """The command that serves this candidate by hand, ready for a shell."""
    return clean(serve_command(plan, candidate))
