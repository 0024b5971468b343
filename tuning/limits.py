"""The limits of `[decide] limits`: `chat.p99_ttft_ms <= 500` for one workload, `error_rate == 0` for all."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

from tuning.records import RUN_METRICS

_LIMIT = re.compile(r"\s*(?:(?P<workload>[\w-]+)\.)?(?P<metric>\w+)\s*(?P<op><=|>=|==|<|>|=)\s*(?P<value>\S+)\s*")


@dataclass(frozen=True, slots=True)
class Limit:
    """`metric` `op` `value` must hold; `workload` None means in every one. `op` is one of <= >= == < >."""

    workload: str | None
    metric: str
    op: str
    value: float


def read_limit(text: str, workloads: Collection[str]) -> Limit:
    """Parse one limit; ValueError says in one line what is wrong with it."""
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise ValueError(f'{text!r} is not a limit; write "WORKLOAD.METRIC <= NUMBER", as in "chat.p99_ttft_ms <= 500"')
    workload, metric, op = match["workload"], match["metric"], match["op"]
    if workload is not None and workload not in workloads:
        raise ValueError(f"{text!r} names no workload of this plan; it has {', '.join(workloads) or 'none'}")
    check_metric(metric)
    if op == "=":
        raise ValueError(f"{text!r}: write == for equality")
    try:
        value = float(match["value"])
    except ValueError:
        raise ValueError(f"{text!r}: {match['value']!r} is not a number") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"{text!r}: the limit must be a finite number")
    return Limit(workload, metric, op, value)


def check_metric(name: str) -> None:
    """ValueError with the nearest name unless `name` is a metric of a run."""
    if name not in RUN_METRICS:
        near = get_close_matches(name, RUN_METRICS, 1)
        raise ValueError(f"{name!r} is not a metric" + (f"; did you mean {near[0]}?" if near else ""))
