"""What the Monitor shows: one server at one moment, ours or another's, as one record."""

from dataclasses import dataclass, field
from datetime import datetime

from engine.gpu_owners import Owners
from engine.limiting.knobs import Knobs
from engine.numbers import finite
from engine.samples.sample_record import kept_engines, kept_gpus
from engine.text import clean
from store.clock import unix_seconds
from store.records import EventRecord
from tui.format import called, local_clock, since, span
from tui.monitor.foreign import ForeignServer
from tui.monitor.liveness import Liveness
from tui.monitor.watched import Watched
from tui.monitor.watching import Key, OurServer, Watching
from tui.panels.row import ERROR, GOOD, MUTED, STRONG, WARNING, Piece
from tui.servers.server_text import checklist

OLDEST_S = 10 * 366 * 86400.0  # a server that says it is older says nonsense
NAME_LIMIT = 28  # characters
NOT_OURS = "not ours"  # in place of a name that is not known
NO_KNOBS = Knobs()
NO_SERVER: Piece = ("○ no server runs", MUTED)
LOOKING: Piece = ("◌ looking", MUTED)  # before anything was read
LIVE: Piece = ("▶ live", GOOD)
STALLED: Piece = ("✗ stalled", ERROR)
ENDED: Piece = ("■ ended", STRONG)
STATES: dict[str, Piece] = {
    "starting": ("◐ starting", WARNING),
    "ready": ("● ready", GOOD),
    "stopping": ("◌ stopping", WARNING),
    "stopped": ("○ stopped", MUTED),
    "failed": ("✗ failed", ERROR),
}


@dataclass(frozen=True, slots=True)
class Look:
    """How the Monitor is set when it looks; `places` servers can be chosen from, the shown one is number `place`."""

    now: datetime
    window_s: float
    interval_s: float
    place: int
    places: int
    frozen: bool
    chosen_gpu: int = 0
    owners: Owners = field(default_factory=dict)  # of the processes on the GPUs


@dataclass(frozen=True, slots=True)
class Subject:
    """One server at one moment as the panels draw it. `watched` None: there is none to show.

    `end` (unix seconds) is where the histories end: at the newest sample, or now where none came, or where the server
    ended. `answers` says whether the newest figures are of now; where they are not, none is shown. `mode` says the same
    in a word at the right edge.
    """

    look: Look
    end: float
    watched: Watched | None = None
    state: Piece = NO_SERVER
    mode: Piece = LIVE
    answers: bool = True
    words: tuple[str, ...] = ()
    trouble: str | None = None
    stages: tuple[str, ...] = ()  # of a start that is under way
    kv_tokens: float | None = None  # of one engine: the share in use is the fullest one's
    knobs: Knobs = NO_KNOBS
    events: tuple[EventRecord, ...] = ()
    gpu_note: str | None = None
    url: str = ""

    @classmethod
    def ours(cls, watched: OurServer, look: Look) -> "Subject":
        """A server that we started."""
        now = look.now.timestamp()
        server, kept, events = watched.reading.server, watched.reading.kept, watched.reading.events
        state, mode, answers, trouble = STATES[server.state], LIVE, False, server.failure
        ended = server.stopped_at
        end = now
        if ended or server.state in ("stopped", "failed"):
            mode = ENDED
            end = unix_seconds(ended) if ended else now
        elif server.state == "ready":
            life = watched.liveness(now)
            if life.life == "silent" and life.since_s is None:
                life = Liveness("silent", now - watched.began, life.error)
            state, mode, answers = _state(life, state)
            trouble = _trouble(life) if kept else _unkept(life)
            end = _end(watched, life, now)
        else:
            mode = state
        age = since(server.ready_at or server.started_at, look.now)
        return cls(
            look,
            end,
            watched,
            state,
            mode,
            answers,
            words=(
                clean(called(server.served_name or server.name, NAME_LIMIT), NAME_LIMIT),
                clean(server.address, 40),
                *([f"vLLM {clean(server.vllm_version, 14)}"] if server.vllm_version else []),
                f"ended {local_clock(ended)}" if ended else f"{'up' if server.state == 'ready' else 'for'} {span(age)}",
            ),
            trouble=trouble,
            stages=tuple(item.plain for item in checklist(server, look.now)) if server.state == "starting" else (),
            kv_tokens=finite(server.facts.get("kv_cache_tokens")) or _one_cache(watched),
            knobs=watched.knobs,
            events=_joined(events, watched.events),
            gpu_note=_gpu_note(watched, now),
            url=server.url,
        )

    @classmethod
    def foreign(cls, server: ForeignServer, look: Look) -> "Subject":
        """A server that is not ours."""
        now = look.now.timestamp()
        life = server.liveness(now)
        state, mode, answers = _state(life, ("● answers", GOOD))
        told = server.answered.raw if server.answered is not None else {}
        started = _told(server, "process_start")
        model, version = told.get("model_name") or server.name, told.get("version")
        return cls(
            look,
            _end(server, life, now),
            server,
            state,
            mode,
            answers,
            words=(
                clean(called(str(model), NAME_LIMIT), NAME_LIMIT) if model else NOT_OURS,
                clean(server.shown, 40).removeprefix("http://"),
                *([f"vLLM {clean(str(version), 14)}"] if version else []),
                *([f"up {span(now - started)}"] if started and answers and 0 <= now - started < OLDEST_S else []),
            ),
            trouble=_trouble(life),
            kv_tokens=_one_cache(server),
            knobs=server.knobs,
            events=server.events,
            gpu_note=server.gpu_note or _gpu_note(server, now),
            url=server.shown,
        )

    @property
    def ended(self) -> bool:
        return self.mode is ENDED

    @property
    def gpu_count(self) -> int:
        """How many GPUs the newest sample has."""
        return len(kept_gpus(self.watched.window.newest)) if self.watched is not None else 0

    @property
    def limited(self) -> bool:
        """Whether it can be said what limits it: nothing limits what stands still."""
        return self.answers and self.mode is not STALLED

    @property
    def engines(self) -> int:
        """Data-parallel ranks."""
        return _engines(self.watched) if self.watched is not None else 1

    @property
    def max_seqs(self) -> float | None:
        return self.knobs.max_num_seqs.value

    @property
    def utilization(self) -> float | None:
        """gpu-memory-utilization, a share."""
        return self.knobs.gpu_memory_utilization.value


def subject_of(watching: Watching, key: Key | None, look: Look) -> Subject:
    """The server of that key; None is none."""
    if key is None:
        return Subject(look, look.now.timestamp(), state=NO_SERVER if watching.is_read else LOOKING)
    if isinstance(key, int):
        return Subject.ours(watching.ours[key], look)
    return Subject.foreign(watching.foreign[key], look)


def _state(life: Liveness, well: Piece) -> tuple[Piece, Piece, bool]:
    """The state with how long it has held, the mode at the right edge, whether the figures are of now."""
    ago = "" if life.since_s is None else f" {span(life.since_s)}"
    if life.life == "silent":
        return (f"✗ silent{ago}", ERROR), ("✗ silent", ERROR), False
    if life.life == "asking":
        return ("◌ asking", WARNING), ("◌ asking", WARNING), False
    if life.life == "stalled":
        return (f"✗ stalled{ago}", ERROR), STALLED, True
    if life.life == "slow":
        return (f"◍ no token{ago}", WARNING), LIVE, True
    if life.life == "asleep":
        return ("◌ asleep", WARNING), LIVE, True
    return well, LIVE, True


def _trouble(life: Liveness) -> str | None:
    if life.life == "silent":
        last = f"no figures for {span(life.since_s)}" if life.since_s is not None else "no figures yet"
        return f"{last}: {life.error}" if life.error else last
    if life.life == "stalled":
        return f"it answers, but its engine has computed nothing for {span(life.since_s)} while requests run"
    return None


def _unkept(life: Liveness) -> str:
    lead = f"not sampled for {span(life.since_s)}: " if life.life == "silent" else ""
    return f"{lead}its keeper is gone; 3 Tune or 1 Servers starts it again"


def _end(watched: Watched, life: Liveness, now: float) -> float:
    """Up to the newest sample while all is well, so that no column is empty because it has only begun."""
    return watched.newest_at if life.answers and watched.newest_at is not None else now


def _gpu_note(watched: Watched, now: float) -> str | None:
    """Said in place of the GPUs where what was read of them last is of another time."""
    at = watched.newest_at
    limit = max(3.0, 3 * watched.interval_s)
    return f"no reading for {span(now - at)}" if at is not None and now - at > limit else None


def _joined(stored: tuple[EventRecord, ...], derived: tuple[EventRecord, ...]) -> tuple[EventRecord, ...]:
    return tuple(sorted((*stored, *derived), key=lambda event: event.at)) if derived else stored


def _engines(watched: Watched) -> int:
    return max(1, len(kept_engines(watched.answered)))


def _one_cache(watched: Watched) -> float | None:
    """A sample has the size of all engines' caches."""
    told = _told(watched, "kv_cache_tokens")
    return told / _engines(watched) if told is not None else None


def _told(watched: Watched, name: str) -> float | None:
    return finite(watched.answered.raw.get(name)) if watched.answered is not None else None
