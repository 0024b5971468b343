"""The sentences of what limits a server: `(kind, finding with its evidence, advice)`, together two lines of 76 columns.

A knob is named with its value and where that is from: `now 0.92`, `its default 256`, `not known`.
"""

from dataclasses import dataclass
from typing import Literal

from engine.limiting.knobs import Knobs
from engine.limiting.load_readings import GpuLoad
from engine.text import clean

Kind = Literal["kv", "sequences", "token_budget", "compute", "power", "host", "client", "idle", "unknown"]
Said = tuple[Kind, str, str]

UTILIZATION_FULL = 0.97
"""Above it gpu-memory-utilization has no room: what vLLM does not reserve is needed by the driver and by PyTorch."""
KV_NEXT_PERC = 85.0
"""From here on a few more sequences would fill the KV cache."""
NO_KNOB = "The three knobs cannot help"


@dataclass(frozen=True, slots=True)
class Time:
    """How long was looked at; `live`: back from now, else the whole of something that has ended."""

    total: float
    live: bool

    def part(self, seconds: float) -> str:
        """`for 40 s of the last 60`, `for 5 s of 7`, `for the last 60 s`, `for all 7 s`."""
        whole = seconds > self.total - 0.5
        if self.live:
            return f"for the last {self.total:.0f} s" if whole else f"for {seconds:.0f} s of the last {self.total:.0f}"
        return f"for all {self.total:.0f} s" if whole else f"for {seconds:.0f} s of {self.total:.0f}"

    def short(self, seconds: float) -> str:
        """`for 40 of 60 s`."""
        return f"for {seconds:.0f} of {self.total:.0f} s"

    @property
    def all(self) -> str:
        """`over 60 s`."""
        return f"over {self.total:.0f} s"


@dataclass(frozen=True, slots=True)
class Load:
    """What ran where nothing waited: mean of the requests that ran, max-num-seqs, GPUs, seconds with a queue."""

    running: float | None
    seqs: float | None
    gpu: GpuLoad
    queued_s: float

    @property
    def requests(self) -> str:
        """`nothing waits, 4 of 256 running`."""
        waits = "nothing waits" if self.queued_s < 0.5 else f"a queue for {self.queued_s:.0f} s only"
        return f"{waits}, {number(self.running)}{f' of {self.seqs:g}' if self.seqs else ''} running"

    def __str__(self) -> str:
        """`nothing waits, 4 of 256 running, GPU 35 % busy at 310 of 700 W`."""
        return f"{self.requests}{gpu_words(self.gpu)}"


def number(value: float | None) -> str:
    """Whole, with thousands; below 10 with one digit where it is no whole number; `–` for None."""
    if value is None:
        return "–"
    return f"{value:.1f}" if 0 < value < 9.95 and abs(value - round(value)) >= 0.05 else f"{value:,.0f}"


def gpu_words(gpu: GpuLoad) -> str:
    """`, GPU 98 % busy at 612 of 700 W`, as much of it as is known."""
    if gpu.util_perc is None:
        return ""
    power = f" at {gpu.power_w:.0f} of {gpu.power_limit_w:.0f} W" if gpu.power_w and gpu.power_limit_w else ""
    return f", GPU {gpu.util_perc:.0f} % busy{power}"


def kv(
    time: Time,
    seconds: float,
    perc: float | None,
    above: bool,
    preempted: float,
    waiting: float | None,
    knobs: Knobs,
) -> Said:
    """`above`: it stood above 95 % in each reading that counted, as against full by preemptions or by a long prompt."""
    full = "KV above 95 %" if above else "no room in KV" + ("" if perc is None else f" ({perc:.0f} %)")
    preemptions = f", {preempted:.0f} preemption{'' if preempted == 1 else 's'}" if preempted else ""
    finding = f"KV-bound: {full} {time.part(seconds)}{preemptions}, about {number(waiting)} waiting."
    utilization = knobs.gpu_memory_utilization
    if knobs.kv_cache_fixed:
        return "kv", finding, "Raise kv-cache-memory-bytes; the three knobs cannot help."
    if utilization.value is not None and utilization.value >= UTILIZATION_FULL:
        advice = f"gpu-memory-utilization ({utilization}) has no room, max-num-seqs cannot help."
        return "kv", finding, advice
    return "kv", finding, f"Raise gpu-memory-utilization ({utilization}); max-num-seqs cannot help."


def sequences(
    time: Time, seconds: float, plateau: float | None, waiting: float | None, perc: float | None, knobs: Knobs
) -> Said:
    """`plateau`: where running stands, of a server whose max-num-seqs is not known."""
    where = "at max-num-seqs" if plateau is None else f"running stands at {plateau:g}"
    used = "" if perc is None else f", KV {perc:.0f} %"
    finding = f"Sequence-bound: {where} {time.part(seconds)}, about {number(waiting)} waiting{used}."
    seqs = knobs.max_num_seqs
    if perc is not None and perc >= KV_NEXT_PERC:
        utilization = knobs.gpu_memory_utilization
        return "sequences", finding, f"Raise max-num-seqs ({seqs}) with gpu-memory-utilization ({utilization})."
    return "sequences", finding, f"Raise max-num-seqs ({seqs}); the other two cannot help."


def budget(
    time: Time,
    seconds: float,
    waiting: float | None,
    perc: float,
    full: float | None,
    util_perc: float | None,
    knobs: Knobs,
) -> Said:
    """`full`: the share of tokens that came in full steps, None where it cannot be told: then by exclusion."""
    steps = "no other limit met" if full is None else "steps full"
    where = f"{time.short(seconds)}, slots and KV ({perc:.0f} %) free, {steps}"
    finding = f"Token-budget-bound: {number(waiting)} waiting {where}."
    tokens = knobs.max_num_batched_tokens
    if util_perc is not None and util_perc >= 95:
        return "token_budget", finding, f"max-num-batched-tokens ({tokens}) may help TTFT only: GPU busy."
    return "token_budget", finding, f"Raise max-num-batched-tokens ({tokens}); max-num-seqs cannot help."


def compute(time: Time, load: Load) -> Said:
    """The GPU is full."""
    return "compute", f"Compute-bound: {load}, {time.all}.", f"{NO_KNOB}."


def throttled(time: Time, what: Literal["Power", "Heat"], seconds: float, gpu: GpuLoad) -> Said:
    """The GPU is held back: by its power limit or by heat."""
    most = f" of {gpu.clock_most_mhz:,.0f}" if gpu.clock_most_mhz else ""
    clock = f", {gpu.clock_mhz:,.0f}{most} MHz" if gpu.clock_mhz else ""
    finding = f"{what}-throttled: held back {time.part(seconds)}{gpu_words(gpu)}{clock}."
    return "power", finding, f"{NO_KNOB}; {'a higher power limit' if what == 'Power' else 'cooling'} would."


def client(time: Time, load: Load) -> Said:
    """More could be sent."""
    return "client", f"Client-bound: {load}, {time.all}.", f"{NO_KNOB}; more requests at once would."


def client_pauses(time: Time, seconds: float, load: Load) -> Said:
    """At times there is nothing to do."""
    return "client", f"Client-bound: no request {time.part(seconds)}, {load.requests}.", f"{NO_KNOB}."


def idle(time: Time, busy_s: float) -> Said:
    """Nothing to do."""
    if busy_s < 0.5:
        return "idle", f"Idle: no request {time.part(time.total)}.", ""
    return "idle", f"Idle: requests {time.part(busy_s)} only.", ""


def asleep(state: str) -> Said:
    """Put to sleep by /sleep."""
    return "idle", f"Idle: the engine sleeps ({clean(state, 30)}).", ""


def deferred(time: Time, seconds: float, count: float | None) -> Said:
    """Requests wait, but not for room."""
    finding = (
        f"Cannot tell: about {number(count)} deferred {time.part(seconds)}: a grammar, remote KV or an adapter slot."
    )
    return "unknown", finding, f"{NO_KNOB}."


def host(time: Time, load: Load, knobs: Knobs) -> Said:
    """Many requests run at any time, and yet the GPU has pauses: kernels wait for the CPU."""
    finding = f"Host-bound: {load.requests}, GPU only {load.gpu.util_perc or 0.0:.0f} % busy, {time.all}."
    other = "no enforce-eager" if knobs.eager else "a faster CPU"
    return "host", finding, f"{NO_KNOB}; more requests at once or {other} may."


def no_gpu(load: Load) -> Said:
    """Nothing waits, and how busy the device is cannot be read."""
    finding = f"Cannot tell client- from compute-bound: {load}, no GPU reading."
    return "unknown", finding, f"{NO_KNOB}."


def no_power(load: Load) -> Said:
    """A busy GPU may be full or wait for its memory: only its power would tell."""
    finding = f"Cannot tell client- from compute-bound: {load}, no power reading."
    return "unknown", finding, f"{NO_KNOB}."


def cannot_tell_queue(waiting: float | None, perc: float | None, why: str) -> Said:
    """Requests wait, and none of the limits is met."""
    used = "" if perc is None else f" at KV {perc:.0f} %"
    return "unknown", f"Cannot tell: about {number(waiting)} waiting{used}, {why}.", ""


def silent(seconds: float, error: object) -> Said:
    """The server does not answer, or shows no requests."""
    if isinstance(error, str) and error:
        return "unknown", f"Cannot tell: no answer for {seconds:.0f} s.", ""
    return "unknown", "Cannot tell: its /metrics has no num_requests_running and _waiting.", ""


def too_few(time: Time, readings: int) -> Said:
    """Not long enough."""
    count = f"{readings or 'no'} reading{'' if readings == 1 else 's'}"
    return "unknown", f"Cannot tell: {count}{' so far' if time.live else ' of it'}.", ""
