"""What the Monitor shows: one server at one moment, ours or foreign, as one record."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from textual.content import Content

from engine.text import clean
from store.clock import parse_utc
from store.records import EventRecord, ServerRecord
from tui.foreign import ForeignServer
from tui.format import ABSENT, local_clock, number, since, span
from tui.history import NOTHING, Series, read_series
from tui.server_text import checklist, details
from tui.state_words import state_words

SILENT_S = 5.0  # without an answer for longer, a server is said to be silent
LIVE = Content.styled("▶ live", "$success")
SILENT = Content.styled("✗ silent", "bold $error")
ENDED = Content.styled("■ ended", "bold reverse")


@dataclass(frozen=True, slots=True)
class Look:
    """How the Monitor is set when it looks: histories reach `window_s` back; `places` servers can be chosen from."""

    now: datetime
    window_s: float
    places: int
    frozen: bool


@dataclass(frozen=True, slots=True)
class Subject:
    """One server at one moment as the panel draws it. `state` None: there is none to show.

    `end` (unix seconds) is where the histories end: now, or where the server did. `answers` says whether the newest
    figures are of now; where they are not, none is shown. `mode` says the same in a word at the right edge.
    """

    look: Look
    end: float
    state: Content | None = None
    mode: Content = LIVE
    answers: bool = True
    words: tuple[str, ...] = ()
    trouble: str | None = None
    stages: tuple[Content, ...] = ()  # of a start that is under way
    interval_s: float = 1.0
    series: Series = NOTHING
    kv_tokens: float | None = None
    max_seqs: float | None = None
    utilization: float | None = None  # gpu-memory-utilization, a share
    facts: tuple[tuple[str, str], ...] = ()  # all that is known, clean
    events: tuple[EventRecord, ...] = ()
    gpu_note: str | None = None

    @classmethod
    def ours(
        cls, server: ServerRecord | None, series: Series, events: tuple[EventRecord, ...], kept: bool, look: Look
    ) -> "Subject":
        """A server that we started; `kept` says whether its keeper lives."""
        now = look.now.timestamp()
        if server is None:
            return cls(look, now)
        state, mode, trouble = state_words(server.state), LIVE, server.failure
        ended = server.stopped_at
        if ended or server.state in ("stopped", "failed"):
            mode = ENDED
        elif server.state == "ready" and (silent := _silence(server, series, look)) is not None:
            state = mode = SILENT
            trouble = (
                f"no answer for {span(silent)}; 1 Servers shows its log"
                if kept
                else f"not sampled for {span(silent)}: its keeper is gone; 3 Tune or 1 Servers starts it again"
            )
        age = since(server.ready_at or server.started_at, look.now)
        return cls(
            look,
            parse_utc(ended).timestamp() if ended else now,
            state=state,
            mode=mode,
            answers=mode is LIVE,
            words=(
                clean(server.served_name or server.name, 28),
                f"{clean(server.host, 20)}:{server.port}",
                f"vLLM {clean(server.vllm_version or ABSENT, 14)}",
                f"ended {local_clock(ended)}" if ended else f"up {span(age)}",
            ),
            trouble=trouble,
            stages=tuple(checklist(server, look.now)) if server.state == "starting" else (),
            series=series,
            kv_tokens=_number(server.facts.get("kv_cache_tokens")),
            max_seqs=_flag(server.raw, "max-num-seqs"),
            utilization=series.utilization or _flag(server.raw, "gpu-memory-utilization"),
            facts=tuple(details(server, look.now)),
            events=events,
            gpu_note=_gpu_note(series, look),
        )

    @classmethod
    def foreign(cls, server: ForeignServer, look: Look) -> "Subject":
        """A server of `--url`."""
        now = look.now.timestamp()
        series = read_series(tuple(server.samples))
        newest, answered = server.newest, series.answered_at
        mode, trouble = LIVE, None
        if server.error is not None:
            state = mode = SILENT
            trouble = f"{f'no answer for {span(now - answered)}: ' if answered is not None else ''}{server.error}"
        elif answered is None:
            state = Content.styled("◌ asking", "bold $warning")
        else:
            state = Content.styled("● answers", "bold $success")
        started = newest.process_start if newest is not None else None
        tokens = newest.kv_cache_tokens if newest is not None else None
        model = newest.model_name if newest is not None else None
        known = (
            ("model", clean(model or "", 200)),
            ("address", clean(server.shown, 200)),
            ("KV cache", "" if tokens is None else number(tokens, 0, " tokens")),
            ("engines", str(len(newest.engines)) if newest is not None and newest.engines else ""),
        )
        return cls(
            look,
            now,
            state=state,
            mode=mode,
            answers=mode is LIVE,
            words=(
                clean(model, 28) if model else "not ours",
                clean(server.shown, 40),
                f"up {span(now - started if started else None)}",
            ),
            trouble=trouble,
            interval_s=server.interval_s,
            series=series,
            kv_tokens=tokens,
            utilization=series.utilization,
            facts=tuple((name, value) for name, value in known if value),
            gpu_note=server.gpu_note,
        )


def _silence(server: ServerRecord, series: Series, look: Look) -> float | None:
    """Seconds since a ready server answered last, None where that is just now."""
    answered = series.answered_at
    silent = look.now.timestamp() - answered if answered is not None else since(server.ready_at, look.now)
    return silent if silent is not None and silent > SILENT_S else None


def _gpu_note(series: Series, look: Look) -> str | None:
    """Said in place of the GPUs where what was read of them last is of another time."""
    at = series.sampled_at
    if at is None or look.now.timestamp() - at <= SILENT_S:
        return None
    return f"no reading for {span(look.now.timestamp() - at)}"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _flag(raw: dict[str, Any], name: str) -> float | None:
    """A flag where it was given; vLLM's own defaults depend on version and device and are not guessed."""
    spec = raw.get("spec")
    flags = spec.get("flags") if isinstance(spec, dict) else None
    return _number(flags.get(name)) if isinstance(flags, dict) else None
