"""The limits of `[decide] limits`: `chat.p99_ttft_ms <= 500` for one workload, `error_rate == 0` for all."""

import math
import re
from collections.abc import Collection
from difflib import get_close_matches
from typing import Literal

from tuning.judged import Limit
from tuning.records import RUN_METRICS

_LIMIT = re.compile(r"\s*(?:(?P<workload>[\w-]+)\.)?(?P<metric>\w+)\s*(?P<op><=|>=|==|<|>|=)\s*(?P<value>\S+)\s*")
_SIGN: dict[str, Literal["<=", ">=", "=="]] = {"<=": "<=", "<": "<=", ">=": ">=", ">": ">=", "==": "=="}


class LimitError(ValueError):
    """A limit that cannot be read or kept; one line."""


def read_limit(text: str, workloads: Collection[str] | None = None) -> Limit:
    """Parse one limit; LimitError says in one line what is wrong with it. `workloads`: the plan's, where known.

    A measured number is never exactly another, so `<` is read as `<=`, and `==` stands before 0 only: what must not
    happen at all. So does `<= 0`. A bound that every number keeps, or none, is refused.
    """
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise LimitError(f'{text!r} is not a limit; write "WORKLOAD.METRIC <= NUMBER", as in "chat.p99_ttft_ms <= 500"')
    workload, metric, op = match["workload"], match["metric"], match["op"]
    if workload is not None and workloads is not None and workload not in workloads:
        raise LimitError(f"{text!r} names no workload of this plan; it has {', '.join(workloads) or 'none'}")
    try:
        check_metric(metric)
    except ValueError as error:
        raise LimitError(str(error)) from None
    if op == "=":
        raise LimitError(f"{text!r}: write == for equality")
    try:
        bound = float(match["value"])
    except ValueError:
        raise LimitError(f"{text!r}: {match['value']!r} is not a number") from None
    if not math.isfinite(bound):
        raise LimitError(f"{text!r}: the limit must be a finite number")
    return Limit(workload, metric, _sign(text, op, bound), bound, text.strip())


def check_metric(name: str) -> None:
    """ValueError with the nearest name unless `name` is a metric of a run."""
    if name not in RUN_METRICS:
        near = get_close_matches(name, RUN_METRICS, 1)
        raise ValueError(f"{name!r} is not a metric" + (f"; did you mean {near[0]}?" if near else ""))


def _sign(text: str, op: str, bound: float) -> Literal["<=", ">=", "=="]:
    sign = _SIGN[op]
    if sign == "==" and bound != 0:
        raise LimitError(f"{text!r}: == is for 0 only, since no measurement meets a number exactly; write <= or >=")
    if bound < 0 or (bound == 0 and op == "<"):
        raise LimitError(f"{text!r}: a metric is never below 0; write a bound above it, or == 0")
    if sign == ">=" and bound == 0:
        raise LimitError(f"{text!r}: every measurement keeps this; write a bound above 0")
    return "==" if bound == 0 else sign
