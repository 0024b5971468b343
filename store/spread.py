"""Some of many samples, evenly spread over their time, chosen in the index alone."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from store.clock import format_utc, parse_utc

Ask = Callable[[str, Sequence[Any]], Sequence[Any]]


def spread(ask: Ask, where: str, values: Sequence[Any], count: int) -> tuple[str, tuple[Any, ...]]:
    """A WHERE clause with its values for at most `count` of the samples of another; that other where it has no more.

    The time from the first to the last is cut into slots: of each the newest is taken, and the first of all. `ask`
    answers a query; each look into a slot is one in the index of `where`'s column with `at`.
    """
    enough = f"SELECT COUNT(*) FROM (SELECT 1 FROM sample WHERE {where} LIMIT ?)"
    if ask(enough, (*values, count + 1))[0][0] <= count:
        return where, tuple(values)
    ends = ask(
        f"SELECT * FROM (SELECT id, at FROM sample WHERE {where} ORDER BY at, id LIMIT 1) UNION ALL "
        f"SELECT * FROM (SELECT id, at FROM sample WHERE {where} ORDER BY at DESC, id DESC LIMIT 1)",
        (*values, *values),
    )
    if len(ends) < 2:  # deleted meanwhile
        return where, tuple(values)
    (first, begin), (_, end) = ends
    start = parse_utc(begin)
    step = (parse_utc(end) - start) / (count - 1)
    times = json.dumps([*(format_utc(start + step * slot) for slot in range(1, count - 1)), end])
    newest = f"SELECT id FROM sample WHERE {where} AND at <= slot.value ORDER BY at DESC, id DESC LIMIT 1"
    chosen = ask(f"SELECT DISTINCT ({newest}) FROM json_each(?) AS slot", (*values, times))
    return "id IN (SELECT value FROM json_each(?))", (json.dumps([first, *(id for (id,) in chosen)]),)
