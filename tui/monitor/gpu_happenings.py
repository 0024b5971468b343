"""What happened to the GPUs of a server, told from its samples: throttling that lasts, GPUs that go and come. Pure."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from engine.numbers import finite
from engine.samples.sample_record import kept_gpus
from engine.text import clean
from store.records import EventLevel, SampleRecord
from tui.format import number, span

Said = tuple[EventLevel, str]
Throttle = tuple[str, str]  # a GPU's index, a reason

# A power cap regulates: it comes and goes each second or two. It began once it held for so long of the last while, and
# ended when there was none for that while.
WHILE_S, HELD_S = 10.0, 5.0
LONGEST_S = 5.0  # what a sample stands for at most
CHOSEN = frozenset({"application clocks", "display clocks"})  # clocks that somebody set lower are no throttling


class GpuHappenings:
    """Fed with one server's samples in their order. The first tells what is, not what happened."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._throttling = _Throttling()
        self._errors: dict[str, str] = {}
        self._ecc: dict[str, float] = {}
        self._limits: dict[str, float] = {}
        self._readable: bool | None = None

    def add(self, at: float, sample: SampleRecord) -> list[Said]:
        """What the next sample tells; `at` is its time in unix seconds."""
        gpus = _gpus(sample)
        note = sample.raw.get("gpu_note")
        was, self._readable = self._readable, bool(gpus)
        if not gpus:
            return [("error", clean(note[:800], 200))] if was and isinstance(note, str) else []
        found: list[Said] = [("info", "the GPUs can be read again")] if was is False and self._at is not None else []
        for index, gpu in gpus.items():
            found += self._going(index, gpu) + self._memory_errors(index, gpu) + self._limit(index, gpu)
        seconds = 0.0 if self._at is None else min(at - self._at, LONGEST_S)
        found += self._throttling.add(at, seconds, _throttles(gpus), is_first=self._at is None)
        self._at = at
        return found

    def _going(self, index: str, gpu: Mapping[str, Any]) -> list[Said]:
        error = gpu.get("error")
        before = self._errors.pop(index, None)
        if error:
            self._errors[index] = clean(str(error), 80)
            return [] if before or self._at is None else [("error", f"GPU {index}: {self._errors[index]}")]
        return [("info", f"GPU {index} answers again")] if before else []

    def _memory_errors(self, index: str, gpu: Mapping[str, Any]) -> list[Said]:
        errors = finite(gpu.get("ecc_errors"))
        before = self._ecc.get(index)
        if errors is None:
            return []
        self._ecc[index] = errors
        more = errors - before if before is not None else 0.0
        return [("error", f"GPU {index}: {number(more)} uncorrected memory errors more")] if more > 0 else []

    def _limit(self, index: str, gpu: Mapping[str, Any]) -> list[Said]:
        limit = finite(gpu.get("power_limit_w"))
        before = self._limits.get(index)
        if limit is None:
            return []
        self._limits[index] = limit
        if before is None or abs(limit - before) < 1.0:
            return []
        return [("info", f"GPU {index}: power limit {number(limit)} W, was {number(before)} W")]


class _Throttling:
    """Which throttling lasts, over all GPUs."""

    def __init__(self) -> None:
        self._held: dict[Throttle, deque[tuple[float, float]]] = {}  # when, and for how long
        self._since: dict[Throttle, float] = {}

    def add(self, at: float, seconds: float, now: Iterable[Throttle], is_first: bool) -> list[Said]:
        for throttle in now:
            self._held.setdefault(throttle, deque()).append((at, seconds))
            if is_first:
                self._since[throttle] = at
        began, ended = [], []
        longest = 0.0
        for throttle, held in list(self._held.items()):
            last = held[-1][0]
            while held and held[0][0] <= at - WHILE_S:
                held.popleft()
            if throttle in self._since:
                if not held:
                    ended.append(throttle)
                    longest = max(longest, last - self._since.pop(throttle))
            elif sum(seconds for _, seconds in held) >= HELD_S:
                self._since[throttle] = held[0][0]
                began.append(throttle)
            if not held:
                del self._held[throttle]
        found: list[Said] = [("warning", f"throttling began, {_words(began)}")] if began else []
        if ended:
            found.append(("info", f"throttling ended, {_words(ended)}, after {span(longest)}"))
        return found


def _words(throttles: Iterable[Throttle]) -> str:
    """`GPU 0, 1: power cap; GPU 1: hardware thermal`."""
    by_reason: dict[str, list[str]] = {}
    for index, reason in throttles:
        by_reason.setdefault(reason, []).append(index)
    return "; ".join(f"GPU {', '.join(indices)}: {reason}" for reason, indices in sorted(by_reason.items()))


def _gpus(sample: SampleRecord) -> dict[str, Mapping[str, Any]]:
    return {clean(str(gpu.get("index", ""))[:20], 6): gpu for gpu in kept_gpus(sample)}


def _throttles(gpus: Mapping[str, Mapping[str, Any]]) -> list[Throttle]:
    return [
        (index, clean(reason[:200], 40))
        for index, gpu in gpus.items()
        if isinstance(reasons := gpu.get("throttle_reasons"), list)
        for reason in reasons[:12]
        if isinstance(reason, str) and reason not in CHOSEN
    ]
