"""What the Monitor shows: one server at one moment, ours or foreign, as one record."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from textual.content import Content

from engine.text import clean
from store.records import EventRecord, ServerRecord
from tui.foreign import ForeignServer
from tui.format import ABSENT, local_clock, since, span
from tui.history import NOTHING, Series, read_series
from tui.state_words import state_words

SILENT_S = 5.0  # without an answer for longer, a server is said to be silent


@dataclass(frozen=True, slots=True)
class Subject:
    """One server at one moment, ours or foreign, as the panel draws it. `state` None: there is none to show."""

    now: datetime
    window_s: float
    places: int
    frozen: bool
    state: Content | None = None
    words: tuple[str, ...] = ()
    trouble: str | None = None
    interval_s: float = 1.0
    series: Series = NOTHING
    kv_tokens: float | None = None
    max_seqs: float | None = None
    events: tuple[EventRecord, ...] = ()
    gpu_note: str | None = None

    @classmethod
    def ours(
        cls,
        server: ServerRecord | None,
        series: Series,
        events: tuple[EventRecord, ...],
        now: datetime,
        window_s: float,
        places: int,
        frozen: bool,
    ) -> "Subject":
        """A server that we started."""
        if server is None:
            return cls(now, window_s, places, frozen)
        state, trouble = state_words(server.state), None
        answered = series.answered_at
        if server.state == "ready":
            silent = now.timestamp() - answered if answered is not None else since(server.ready_at, now)
            if silent is not None and silent > SILENT_S:
                state = Content.styled("✗ silent", "bold $error")
                trouble = f"no answer for {span(silent)}; 1 Servers shows its log"
        elif server.failure:
            trouble = server.failure
        ended = server.stopped_at
        age = since(server.ready_at or server.started_at, now)
        return cls(
            now,
            window_s,
            places,
            frozen,
            state=state,
            words=(
                clean(server.served_name or server.name, 28),
                f"{clean(server.host, 20)}:{server.port}",
                f"vLLM {clean(server.vllm_version or ABSENT, 14)}",
                f"ended {local_clock(ended)}" if ended else f"up {span(age)}",
            ),
            trouble=trouble,
            series=series,
            kv_tokens=_number(server.facts.get("kv_cache_tokens")),
            max_seqs=_max_seqs(server.raw),
            events=events,
        )

    @classmethod
    def foreign(cls, server: ForeignServer, now: datetime, window_s: float, places: int, frozen: bool) -> "Subject":
        """A server of `--url`."""
        series = read_series(tuple(server.samples))
        newest, answered = server.newest, series.answered_at
        if server.error is not None:
            state = Content.styled("✗ silent", "bold $error")
        elif answered is None:
            state = Content.styled("◌ asking", "bold $warning")
        else:
            state = Content.styled("● answers", "bold $success")
        trouble = None
        if server.error is not None:
            asked = f"no answer for {span(now.timestamp() - answered)}: " if answered is not None else ""
            trouble = f"{asked}{server.error}"
        started = newest.process_start if newest is not None else None
        return cls(
            now,
            window_s,
            places,
            frozen,
            state=state,
            words=(
                clean(newest.model_name, 28) if newest is not None and newest.model_name else "not ours",
                clean(server.url, 40),
                f"up {span(now.timestamp() - started if started else None)}",
            ),
            trouble=trouble,
            interval_s=server.interval_s,
            series=series,
            kv_tokens=newest.kv_cache_tokens if newest is not None else None,
            gpu_note=server.gpu_note,
        )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _max_seqs(raw: dict[str, Any]) -> float | None:
    """`--max-num-seqs` where it was given; vLLM's own default depends on the device and is not guessed."""
    spec = raw.get("spec")
    flags = spec.get("flags") if isinstance(spec, dict) else None
    return _number(flags.get("max-num-seqs")) if isinstance(flags, dict) else None
