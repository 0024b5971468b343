"""What limits a server, in one sentence with its evidence: from the samples of a window or of a run.

The reasons are those of vLLM's V1 scheduler (vllm/v1/core/sched/scheduler.py). In each step it first gives tokens of
the budget to what runs; where one of these finds no free block for its next token, another is preempted. Then it lets
in from the queue while fewer than max-num-seqs run, tokens of the budget are left, and blocks for the prompt can be
had. So where requests wait, one of the three ran out, and which is told by what is left of the others. KV use counts
blocks that requests hold; what the prefix cache merely keeps counts as free. Where nothing waits, no setting of the
scheduler holds anything back: the load that comes, or the GPU, is the limit. docs/method.md says what looks alike.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engine.limiting import limit_words as words
from engine.limiting.knobs import Knobs
from engine.limiting.limit_bars import (
    BUSY,
    DECODE_TOKENS,
    FULL_STEPS,
    GPU_BUSY,
    IDLE,
    KV_CLAIMS,
    LEADS,
    LEAST_PAUSES,
    LEAST_READINGS,
    LOOK_BACK_S,
    MANY_RUNNING,
    PLATEAU,
    PLATEAU_SHARE,
    POWER_FULL,
    QUEUE_LASTS,
    THROTTLED,
)
from engine.limiting.limit_words import Kind
from engine.limiting.load_readings import GpuLoad, Reading, Timed, came_in, engine_readings, gpu_load
from engine.limiting.load_states import KV_FREE_PERC, KV_FULL_PERC, QUEUED, State, full_share, states_of
from engine.samples.window import Window
from engine.scrape.histograms import percentile
from engine.text import clean
from store.records import SampleRecord


@dataclass(frozen=True, slots=True)
class Limit:
    """`sentence` is the finding with its evidence, `advice` says which knob can or cannot help ("" where none is
    asked for). `evidence` holds the numbers of the sentence and some more, units in their names."""

    kind: Kind
    sentence: str
    evidence: dict[str, float] = field(default_factory=dict)
    advice: str = ""

    @property
    def text(self) -> str:
        """Both, as they are shown."""
        return f"{self.sentence} {self.advice}".rstrip()


def what_limits(window: Window | Sequence[SampleRecord], knobs: Knobs, before: Limit | None = None) -> Limit | None:
    """Of a live window its last minute counts; of a sequence, as the load of a run, all of it. None without a sample.

    `before` is what was said last of the same server, so that the sentence does not flicker.
    """
    timed = _timed(window)
    if not timed:
        return None
    said = before.kind if before else None
    by_engine = engine_readings(timed)
    judged = {
        name: _Judge(readings, timed, knobs, said, isinstance(window, Window)) for name, readings in by_engine.items()
    }
    # An engine that does not keep up limits what a client sees, whatever the others do.
    name, judge = max(judged.items(), key=lambda each: each[1].queue_share)
    kind, sentence, advice = judge.sleeps() or judge.verdict()
    if len(judged) > 1 and kind in ("kv", "sequences", "token_budget"):
        alike = sum(other.queue_share >= QUEUE_LASTS.stay for other in judged.values())
        one, count = clean(name, 12), len(judged)  # the figures are one engine's, also where all are alike
        who = f"all {count} engines, here {one}" if alike == count else f"engine {one} of {count}"
        sentence = sentence.replace(":", f" ({who}):", 1)
    return Limit(kind, sentence, judge.evidence, advice)


def _timed(window: Window | Sequence[SampleRecord]) -> Timed:
    if isinstance(window, Window):
        return window.of_this_life(LOOK_BACK_S + 0.5)
    return Window(math.inf, window).of_this_life(math.inf)


class _Judge:
    """Judges one engine."""

    def __init__(self, readings: Sequence[Reading], timed: Timed, knobs: Knobs, said: Kind | None, live: bool) -> None:
        self._readings = readings
        self._timed = timed
        self._knobs = knobs
        self._said = said
        self._newest = timed[-1][1]
        self._steps = came_in(timed, "step_tokens")
        self._full = full_share(self._steps, knobs.max_num_batched_tokens.value)
        self._seqs = knobs.max_num_seqs.value
        self._states = states_of(readings, timed, self._seqs)
        self._spent: dict[State, float] = {}
        for state, reading in zip(self._states, readings, strict=True):
            self._spent[state] = self._spent.get(state, 0.0) + reading.seconds
        self._seen = sum(seconds for state, seconds in self._spent.items() if state != "silent")
        self._time = words.Time(sum(reading.seconds for reading in readings), live)
        self.evidence: dict[str, float] = {"seen_s": round(self._time.total, 1)}

    @property
    def queue_share(self) -> float:
        return self._share(*QUEUED)

    def _share(self, *states: State) -> float:
        return sum(self._spent.get(state, 0.0) for state in states) / self._seen if self._seen else 0.0

    def sleeps(self) -> words.Said | None:
        state = self._newest.raw.get("sleep_state")
        return words.asleep(state) if isinstance(state, str) and state != "awake" else None

    def verdict(self) -> words.Said:
        if untold := self._untold():
            return untold
        if QUEUE_LASTS.holds(self.queue_share, self._said in ("kv", "sequences", "token_budget")):
            return self._queue()
        return self._no_queue()

    def _untold(self) -> words.Said | None:
        """Why nothing can be said, where that is so."""
        readings = self._readings
        silent = 0.0
        for reading in reversed(readings):
            if reading.answered:
                break
            silent += reading.seconds
        last_two = self._states[-2:]
        if last_two and all(state == "silent" for state in last_two):
            return words.silent(silent, self._newest.raw.get("error"))
        if len([state for state in self._states if state != "silent"]) < LEAST_READINGS:
            return words.too_few(self._time, len(readings))
        return None

    def _queue(self) -> words.Said:
        spent = {state: self._spent.get(state, 0.0) for state in QUEUED}
        unclear = spent.pop("unclear")
        claims = spent["kv"] >= KV_CLAIMS * (sum(spent.values()) + unclear)
        of_kv = claims and self._full is not None and self._full < FULL_STEPS
        spent["kv" if of_kv else "budget"] += unclear
        state = max(spent, key=lambda each: spent[each])
        said: dict[Kind | None, State] = {"kv": "kv", "sequences": "sequences", "token_budget": "budget"}
        held = said.get(self._said)
        if held is not None and spent[held] >= LEADS * spent[state]:
            state = held
        if state == "kv":
            return self._kv(spent["kv"], self._of("kv", *(("unclear",) if of_kv else ())))
        if state == "sequences":
            return self._sequences(spent["sequences"], None)
        if self._seqs is None and (most := self._plateau()) is not None:
            return self._sequences(spent["budget"], most)
        return self._budget(spent["budget"])

    def _kv(self, seconds: float, readings: Sequence[Reading]) -> words.Said:
        preempted = sum(reading.preempted for reading in self._readings)
        waiting = _mean((reading.waiting, reading.seconds) for reading in readings)
        kv = _mean((reading.kv_perc, reading.seconds) for reading in readings)
        above = all((reading.kv_perc or 0.0) >= KV_FULL_PERC for reading in readings)
        self._note(kv_full_s=seconds, preemptions=preempted, waiting=waiting, kv_perc=kv)
        return words.kv(self._time, seconds, kv, above, preempted, waiting, self._knobs)

    def _sequences(self, seconds: float, plateau: float | None) -> words.Said:
        readings = self._of("sequences" if plateau is None else "budget", "unclear")
        waiting = _mean((reading.waiting, reading.seconds) for reading in readings)
        kv = _mean((reading.kv_perc, reading.seconds) for reading in readings)
        running = _mean((reading.running, reading.seconds) for reading in readings)
        self._note(at_limit_s=seconds, waiting=waiting, kv_perc=kv, running=running)
        return words.sequences(self._time, seconds, plateau, waiting, kv, self._knobs)

    def _budget(self, seconds: float) -> words.Said:
        readings = self._of("budget", "unclear")
        waiting = _mean((reading.waiting, reading.seconds) for reading in readings)
        kv = _mean((reading.kv_perc, reading.seconds) for reading in readings)
        running = _mean((reading.running, reading.seconds) for reading in readings)
        full = self._full
        gpu = self._gpu("budget", "unclear")
        self._note(queued_s=seconds, waiting=waiting, kv_perc=kv, running=running, full_step_share=full)
        if full is None and self._seqs is None:
            return words.cannot_tell_queue(waiting, kv, "neither max-num-seqs nor the token budget is known")
        if kv is None:
            return words.cannot_tell_queue(waiting, kv, "its /metrics has no KV use")
        if (full is not None and full < FULL_STEPS) or (full is None and kv > KV_FREE_PERC):
            return words.cannot_tell_queue(waiting, kv, self._other_reason(kv))
        if (held := self._throttled(gpu)) is not None:
            return held
        return words.budget(self._time, seconds, waiting, kv, full, gpu.util_perc, self._knobs)

    def _other_reason(self, kv: float) -> str:
        lora = self._newest.raw.get("lora")
        if isinstance(lora, dict) and lora.get("most") and len(lora.get("running") or ()) >= lora["most"]:
            return f"steps are not full; all {lora['most']:g} max-loras are in use"
        if kv > KV_FREE_PERC:
            return "steps are not full; the prompt in front may be too long for what is free"
        return "and slots free, steps not full"

    def _plateau(self) -> float | None:
        """Where running stands while requests wait, None where it does not, or where steps are full of prompts."""
        readings = [reading for reading in self._of("budget", "unclear") if reading.running is not None]
        most = max((reading.running or 0.0 for reading in readings), default=0.0)
        there = sum(reading.seconds for reading in readings if (reading.running or 0.0) >= PLATEAU * most)
        if most < 1 or there < PLATEAU_SHARE * sum(reading.seconds for reading in readings):
            return None
        usual = percentile(self._steps, 50)
        tokens = None if usual is None else usual.value if usual.resolved else usual.upper
        return most if tokens is not None and tokens <= DECODE_TOKENS * max(most, 2.0) else None

    def _no_queue(self) -> words.Said:
        deferred = self._spent.get("deferred", 0.0)
        if QUEUE_LASTS.holds(self._share("deferred"), self._said == "unknown"):
            count = _mean((reading.deferred, reading.seconds) for reading in self._of("deferred"))
            self._note(deferred_s=deferred, deferred=count)
            return words.deferred(self._time, deferred, count)
        busy = 1.0 - self._share("idle")
        running = _mean((reading.running, reading.seconds) for reading in self._readings)
        self._note(busy_share=busy, running=running)
        if IDLE.holds(1.0 - busy, self._said == "idle"):
            return words.idle(self._time, busy * self._seen)
        gpu = self._gpu("free")
        queued = sum(self._spent.get(state, 0.0) for state in QUEUED)
        load = words.Load(running, self._knobs.max_num_seqs.value, gpu, queued)
        pauses = self._states.count("idle") >= LEAST_PAUSES
        if pauses and not BUSY.holds(busy, self._said in ("compute", "power", "host", "unknown")):
            return words.client_pauses(self._time, (1.0 - busy) * self._seen, load)
        if (held := self._throttled(gpu)) is not None:
            return held
        return self._client_or_compute(load)

    def _client_or_compute(self, load: words.Load) -> words.Said:
        """Nothing waits and something always runs."""
        gpu, few = load.gpu, not MANY_RUNNING.holds(load.running or 0.0, self._said in ("compute", "host", "unknown"))
        if gpu.util_perc is None:
            return words.no_gpu(load)
        computing = self._said == "compute"
        if not GPU_BUSY.holds(gpu.util_perc, self._said in ("compute", "client")):
            return words.client(self._time, load) if few else words.host(self._time, load, self._knobs)
        if few:
            return words.client(self._time, load)
        if gpu.power_share is None:
            return words.no_power(load)
        if POWER_FULL.holds(gpu.power_share, computing):
            return words.compute(self._time, load)
        return words.client(self._time, load)

    def _throttled(self, gpu: GpuLoad) -> words.Said | None:
        """Where a GPU that is busy was held back for most of the time."""
        said = self._said == "power"
        if gpu.util_perc is None or not gpu.seconds or not GPU_BUSY.holds(gpu.util_perc, said):
            return None
        if THROTTLED.holds(gpu.hot_s / gpu.seconds, said):
            return words.throttled(self._time, "Heat", gpu.hot_s, gpu)
        if THROTTLED.holds(gpu.capped_s / gpu.seconds, said):
            return words.throttled(self._time, "Power", gpu.capped_s, gpu)
        return None

    def _gpu(self, *states: State) -> GpuLoad:
        gpu = gpu_load(self._timed, [state in states for state in self._states])
        self._note(
            gpu_util_perc=gpu.util_perc,
            gpu_power_w=gpu.power_w,
            gpu_power_limit_w=gpu.power_limit_w,
            gpu_capped_s=gpu.capped_s or None,
            gpu_hot_s=gpu.hot_s or None,
        )
        return gpu

    def _of(self, *states: State) -> list[Reading]:
        return [reading for state, reading in zip(self._states, self._readings, strict=True) if state in states]

    def _note(self, **numbers: float | None) -> None:
        self.evidence |= {name: round(value, 3) for name, value in numbers.items() if value is not None}


def _mean(weighted: Iterable[tuple[float | None, float]]) -> float | None:
    total = weight = 0.0
    for value, seconds in weighted:
        if value is not None:
            total, weight = total + value * seconds, weight + seconds
    return total / weight if weight else None
