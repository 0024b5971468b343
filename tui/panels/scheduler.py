"""The scheduler and its caches over a window: who waits and why, who is thrown out, what the caches save."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from engine.numbers import finite
from engine.samples.sample_record import kept_engines
from engine.samples.window import Window
from store.clock import format_utc, unix_seconds
from store.records import SampleRecord
from tui.format import ABSENT, local_clock
from tui.panels.reading import MOST_LABELS, a_second, growths, last_answer, numbers, share_perc
from tui.panels.row import (
    ERROR,
    GOOD,
    GROUP_W,
    MUTED,
    PLAIN,
    STRONG,
    WARNING,
    Row,
    brief,
    decimals_of,
    figure,
    fit,
    group,
    named,
    outside,
    title,
)

AWAKE = "awake"
SLEEP_WORDS = {"weights_offloaded": "asleep, weights offloaded", "discard_all": "asleep, weights discarded"}
REFUSALS = {"max_num_queued_reqs": "requests", "max_num_queued_tokens": "tokens"}
SOURCES = {"local_compute": "computed", "local_cache_hit": "cached", "external_kv_transfer": "external"}


def scheduler_rows(window: Window, answers: bool, width: int, kv_tokens: float | None = None) -> list[Row]:
    """The panel, `width` cells wide. `kv_tokens` is the size of the KV cache where it is known from elsewhere."""
    newest, known = window.newest if answers else None, last_answer(window)
    rows = [
        title("scheduler", width, window.seconds),
        _kv(newest, known, kv_tokens),
        *_caches(window, answers),
        *_preempted(window, newest, answers),
        *_waiting(window, newest, width),
        *_finished(window, answers, width),
        *_rejected(window, answers, width),
        *_prompt_sources(window, answers, width),
        *_sleep(newest, known),
    ]
    return [fit(row, width) for row in rows]


def _kv(newest: SampleRecord | None, known: SampleRecord | None, kv_tokens: float | None) -> Row:
    """Of several engines the fullest: a sample has its share, and the sum of all their sizes; a log has one's size."""
    told = finite(known.raw.get("kv_cache_tokens")) if known is not None else None
    engines = max(1, len(kept_engines(known)))
    size = told / engines if told is not None else kv_tokens
    share = finite(newest.kv_perc) if newest is not None else None
    used = None if share is None or size is None else size * share / 100
    name = "KV tokens" if engines == 1 else "KV fullest"
    return named(name, figure(used, 11), f"of {brief(size)}" if size is not None else "")


def _caches(window: Window, answers: bool) -> list[Row]:
    """Shares of what was looked for in each cache that was found there. A cache that nobody asks has no row."""
    queried = window.increase(lambda sample: finite(sample.prefix_queries)) if answers else None
    hit = window.increase(lambda sample: finite(sample.prefix_hits)) if answers else None
    rows = [_cache("prefix hits", hit, queried, window)]
    totals = numbers(last_answer(window), "counters")
    for name, queries, hits in (
        ("external", "external_prefix_queries", "external_prefix_hits"),
        ("multi-modal", "mm_queries", "mm_hits"),
    ):
        if totals.get(queries):
            found = window.total("counters", hits) if answers else None
            rows.append(_cache(name, found, window.total("counters", queries) if answers else None, window))
    return rows


def _cache(name: str, hit: float | None, queried: float | None, window: Window) -> Row:
    asked = a_second(queried, window)
    note = f"of {brief(asked, decimals_of(asked), '/s')}"
    return named(name, figure(share_perc(hit, queried), 11, 1, " %"), note)


def _preempted(window: Window, newest: SampleRecord | None, answers: bool) -> list[Row]:
    total = finite(newest.preemptions) if newest is not None else None
    lately = window.increase(lambda sample: finite(sample.preemptions)) if answers else None
    a_s = a_second(lately, window)
    a_minute = None if a_s is None else 60 * a_s
    note = f"+{brief(a_minute, decimals_of(a_minute) if a_minute else 0)}/min" if a_minute is not None else ""
    began = finite(newest.raw.get("process_start")) if newest is not None else None
    last = _last_preemption(window) if lately else None
    return [
        named("preempted", figure(total, 11), note, note_kind=WARNING if lately else PLAIN),
        ((" " * GROUP_W, PLAIN), (f"since {_clock(began):<8}  last {_clock(last)}", MUTED)),
    ]


def _last_preemption(window: Window) -> float | None:
    """When the counter grew last within the window, unix seconds."""
    later: SampleRecord | None = None
    for sample in reversed(window.samples):
        if sample.preemptions is None:
            continue
        if later is not None and later.preemptions is not None and later.preemptions > sample.preemptions:
            return unix_seconds(later.at)
        later = sample
    return None


def _waiting(window: Window, newest: SampleRecord | None, width: int) -> list[Row]:
    """By reason, where the server tells any; else how many in all."""
    names = list(numbers(last_answer(window), "waiting_by_reason"))[:MOST_LABELS]
    now: Mapping[str, float | None] = numbers(newest, "waiting_by_reason")
    if not names:
        names, now = ["in all"], {"in all": finite(newest.waiting) if newest is not None else None}
    return group("waiting", [(name, figure(now.get(name), 5), _weight(now.get(name))) for name in names], width)


def _rates(name: str, of: str, names: Sequence[str], window: Window, answers: bool, width: int) -> list[Row]:
    """How much each total of a group grew, per second."""
    grown = growths(window, of) if answers else {}
    cells = []
    for each in names[:MOST_LABELS]:
        a_s = a_second(grown.get(each), window)
        kind = ERROR if a_s and each == "error" else _weight(a_s)
        cells.append((REFUSALS.get(each, each), figure(a_s, 5, decimals_of(a_s)), kind))
    return group(name, cells, width)


def _finished(window: Window, answers: bool, width: int) -> list[Row]:
    """By reason. What only goes wrong now and then has a cell once it has."""
    totals = numbers(last_answer(window), "requests_finished")
    names = [name for name, total in totals.items() if total or name in ("stop", "length")]
    return _rates("ended /s", "requests_finished", names, window, answers, width)


def _rejected(window: Window, answers: bool, width: int) -> list[Row]:
    """Requests not admitted; only where a server counts them."""
    names = list(numbers(last_answer(window), "rejections"))
    return _rates("refused/s", "rejections", names, window, answers, width)


def _prompt_sources(window: Window, answers: bool, width: int) -> list[Row]:
    """Where the prompt tokens of the window came from, in percent."""
    totals = numbers(last_answer(window), "prompt_by_source")
    grown = growths(window, "prompt_by_source") if answers else {}
    whole = window.total("prompt_by_source") if answers else None
    cells = []
    for name in [name for name, total in totals.items() if total or name in ("local_compute", "local_cache_hit")]:
        share = share_perc(grown.get(name), whole)
        cells.append((SOURCES.get(name, name), figure(share, 5, 0), _weight(share)))
    return group("prompt %", cells[:MOST_LABELS], width)


def _sleep(newest: SampleRecord | None, known: SampleRecord | None) -> list[Row]:
    """Only where a server tells it."""
    if known is None or not isinstance(known.raw.get("sleep_state"), str):
        return []
    state = newest.raw.get("sleep_state") if newest is not None else None
    if not isinstance(state, str):
        return [named("sleep", ABSENT)]
    if state == AWAKE:
        return [named("sleep", "● awake", kind=GOOD)]
    return [named("sleep", f"◌ {SLEEP_WORDS.get(state) or outside(state, 20).rstrip()}", kind=WARNING)]


def _weight(value: float | None) -> str:
    """What is not 0 stands out."""
    return STRONG if value else PLAIN


def _clock(unix_s: float | None) -> str:
    if unix_s is None:
        return ABSENT
    try:
        return local_clock(format_utc(datetime.fromtimestamp(unix_s, UTC)))
    except (OverflowError, OSError, ValueError):  # a server may say anything of its own start
        return ABSENT
