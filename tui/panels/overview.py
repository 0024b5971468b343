"""All watched servers, a line each: state, load, KV cache, throughput, time to first token, what limits it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from engine.limiting.bottleneck import Limit
from engine.scrape.histograms import Percentile, percentile
from tui.format import ABSENT, called, number, rate
from tui.monitor.subject import NOT_OURS, Subject
from tui.panels.row import ACCENT, MUTED, PLAIN, STRONG, Row, figure, fit, outside

STATE_W, NAME_W, ADDRESS_W = 18, 16, 17
LIMIT_W, WHOLE_W = 93, 112  # narrower, first the address goes, then what limits it
LIMITS = {
    "kv": "KV cache",
    "sequences": "max-num-seqs",
    "token_budget": "token budget",
    "compute": "compute",
    "power": "power",
    "host": "host",
    "client": "client",
    "idle": "idle",
}


@dataclass(frozen=True, slots=True)
class Overview:
    """One server in the list."""

    subject: Subject
    is_shown: bool

    @property
    def name(self) -> str:
        name, address = self.subject.words[:2]
        return address if name == NOT_OURS else called(name, NAME_W)

    def row(self, width: int, name: str) -> Row:
        """Its line; a narrow one loses its address first, then what limits it."""
        subject = self.subject
        watched = subject.watched if subject.answers else None
        newest = watched.window.newest if watched is not None else None
        ttft = percentile(watched.window.histogram("ttft"), 50) if watched is not None else None
        state, kind = subject.state
        limit = watched.limit(subject.knobs) if watched is not None and subject.limited else None
        address = ((outside(subject.words[1], ADDRESS_W), MUTED), ("  ", PLAIN)) if width >= WHOLE_W else ()
        return fit(
            (
                ("▸ " if self.is_shown else "  ", ACCENT),
                (outside(state, STATE_W), kind),
                (outside(name, NAME_W), STRONG if self.is_shown else PLAIN),
                ("  ", PLAIN),
                *address,
                (figure(newest.running if newest else None, 6), PLAIN),
                (figure(newest.waiting if newest else None, 6), PLAIN),
                (figure(newest.kv_perc if newest else None, 8, 1, " %"), PLAIN),
                (f"{rate(watched.rate('output') if watched is not None else None):>10}", PLAIN),
                (f"{_milliseconds(ttft):>10}", PLAIN),
                (f"  {_limit(limit)}" if width >= LIMIT_W else "", MUTED),
            ),
            width,
        )


def overview_rows(servers: Sequence[Overview], width: int, height: int) -> list[Row]:
    """A heading and as many servers as there are lines, the shown one among them."""
    address = f"{'address':<{ADDRESS_W}}  " if width >= WHOLE_W else ""
    columns = f"{'run':>6}{'wait':>6}{'KV':>8}{'output':>10}{'TTFT p50':>10}"
    head = f"  {'state':<{STATE_W}}{'name':<{NAME_W}}  {address}{columns}"
    rows = [fit(((f"{head}  limited by" if width >= LIMIT_W else head, MUTED),), width)]
    room = max(1, height - 1)
    at = next((place for place, one in enumerate(servers) if one.is_shown), 0)
    first = max(0, min(at - room // 2, len(servers) - room))
    # Without a column for addresses, those that share a name are told apart by them.
    often = Counter(one.name for one in servers if width < WHOLE_W)
    seen = servers[first : first + room]
    return rows + [one.row(width, one.subject.words[1] if often[one.name] > 1 else one.name) for one in seen]


def _limit(limit: Limit | None) -> str:
    return LIMITS.get(limit.kind, ABSENT) if limit is not None else ABSENT


def _milliseconds(found: Percentile | None) -> str:
    if found is None:
        return ABSENT
    if found.value is not None:
        return number(1000 * found.value, 0, " ms")
    bound = found.upper if found.upper is not None else found.lower
    if bound is None:
        return ABSENT
    return f"{'<' if found.upper is not None else '>'}{number(1000 * bound, 0, ' ms')}"
