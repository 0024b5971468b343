"""What a rule is: one wording of a log → class, cause, numbers, remedy.

To add one, add a `rule(…)` to the module of its theme. Named groups of its pattern are what cause and remedy may speak
of; a group that is a number becomes a number of the explanation under its own name, and `x_size` ("270.00 MiB") becomes
`x_gib`. `derive` computes further ones from those and from what stands around them. In cause and remedy a part in
[[double brackets]] is left out where something it names is missing. A remedy names the flag and a value.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.launch.installation import version_numbers
from engine.records import LogFacts

Number = float | int
Numbers = dict[str, Number]

NUM = r"\d{1,9}(?:\.\d{1,9})?"  # bounded, so that no log can make float() fail or give an infinity
INT = r"\d{1,12}"

_UTILIZATION_FLAGS = ("gpu-memory-utilization", "device-memory-utilization")  # the second is an alias from 0.32 on


@dataclass(frozen=True, slots=True)
class Around:
    """What is known besides the wording itself: the log's facts up to it, the flags of the start without their dashes,
    the functions of the traceback that led to it (outermost first), and what the caller knows of machine and vLLM."""

    facts: LogFacts = field(default_factory=LogFacts)
    flags: Mapping[str, Any] = field(default_factory=dict)
    frames: tuple[str, ...] = ()
    serving: bool = False
    known_flags: frozenset[str] | None = None
    gpu_total_gib: float | None = None
    version: str | None = None

    def at_least(self, major: int, minor: int) -> bool | None:
        """Whether this vLLM is that version or newer; None where its version is not known."""
        numbers = version_numbers(self.version) if self.version else None
        return None if numbers is None else numbers >= (major, minor)

    def whole(self, flag: str) -> int | None:
        """A flag's value where it is a whole number above 0."""
        value = self.flags.get(flag)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    @property
    def default_utilization(self) -> float | None:
        newer = self.at_least(0, 20)  # 0.92 from 0.20.2 on, 0.9 up to 0.19.1
        return None if newer is None else 0.92 if newer else 0.9

    @property
    def utilization(self) -> float | None:
        """The gpu-memory-utilization of the start, as asked for or by default."""
        for name in _UTILIZATION_FLAGS:
            value = self.flags.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1:
                return float(value)
        return self.default_utilization


Derive = Callable[[Numbers, Mapping[str, str], Around], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One wording. `derive` gets numbers, words and what is around; what it returns may be spoken of too, its numbers
    are numbers of the explanation, and its "class" replaces `failure_class`. Of several rules that match, the one with
    the earliest line counts (what follows a cause are its consequences), on one line the first in the table; those of
    class "unknown" come last. `closer` marks a wording raised from an earlier, vaguer one of GPU memory, and is
    preferred to that; `ending` one that tells how a process ended, which an exception before it explains better."""

    failure_class: str
    pattern: re.Pattern[str]
    cause: str
    remedy: str
    derive: Derive | None = None
    closer: bool = False
    ending: bool = False


def rule(
    failure_class: str,
    pattern: str,
    cause: str,
    remedy: str,
    derive: Derive | None = None,
    *,
    closer: bool = False,
    ending: bool = False,
) -> Rule:
    return Rule(failure_class, re.compile(pattern), cause, remedy, derive, closer, ending)


def floor_2(value: float) -> float:
    """Two decimals, rounded down: a utilization that is asked for must not exceed what is free."""
    return math.floor(100 * value + 1e-9) / 100


def ceil_2(value: float) -> float:
    return math.ceil(100 * value - 1e-9) / 100
