"""The GPUs in rows: two lines for one, a line each for several, details of the chosen one where there is height."""

from collections.abc import Sequence

from engine.gpu_owners import NOBODY, Owners
from engine.numbers import sum_of_all
from engine.samples.window import Window
from tui.panels.gpu_details import DETAILS, LABEL_W, PROCESSES, VALUE_W, detail_rows
from tui.panels.gpu_reading import GpuNow, gpus_of, note_of, process_counts
from tui.panels.row import ACCENT, ERROR, MUTED, PLAIN, STRONG, WARNING, Piece, Row, figure, fit, outside
from tui.panels.spark import blocks

NARROW = 60  # below it no budget beside the memory
SHORTEST_BAR = 4
MEMORY_W, WORK_W = 36, 41  # what stands behind the bar, behind the history
LINE_W = 57  # what stands beside the bar of one of several
SUMMARY_LINES = 3  # of many GPUs: all of them in one, two for the chosen one
MANY_LINES = 2  # with fewer lines more it is not worth listing some of them
HOT_C = 3.0  # so near to where the hardware slows it down

# In 12 cells, and in 6.
SHORT_REASONS = {
    "application clocks": ("app clocks", "clocks"),
    "power cap": ("power cap", "power"),
    "hardware slowdown": ("hw slowdown", "slowed"),
    "sync boost": ("sync boost", "sync"),
    "software thermal": ("sw thermal", "heat"),
    "hardware thermal": ("hw thermal", "heat"),
    "power brake": ("power brake", "brake"),
    "display clocks": ("display clock", "clocks"),
}
OTHER_REASON = ("slowed", "slowed")


def gpu_rows(
    window: Window,
    answers: bool,
    width: int,
    height: int,
    util: Sequence[float | None] = (),
    power: Sequence[float | None] = (),
    utilization: float | None = None,
    note: str | None = None,
    chosen: int = 0,
    owners: Owners = NOBODY,
) -> list[Row]:
    """At most `height` rows of exactly `width` cells. `util` and `power` are histories of the chosen GPU, as long as
    `history_width` says; `utilization` is the server's gpu-memory-utilization, `note` said in place of the GPUs."""
    gpus = gpus_of(window.newest)
    said = outside(note, 300).rstrip() if note else note_of(window.newest)
    if note or not gpus:
        return [fit(((f"{'GPU':<{LABEL_W}}", MUTED), (said or "no GPU reading", PLAIN)), width)][:height]
    at = chosen % len(gpus)
    gpu = gpus[at]
    pair = _one(gpu, width, util, utilization)
    if height <= 1:
        rows = [_line(gpu, width, marked=len(gpus) > 1)]
    elif len(gpus) == 1:
        rows = pair
    elif len(gpus) <= height:
        left = height - len(gpus)
        rows = [_line(one, width, marked=one is gpu) for one in gpus]
        rows += pair if left > 1 else pair[-1:] if left else []
    elif height < SUMMARY_LINES + MANY_LINES:
        rows = [_all(gpus, width), *(pair if height >= SUMMARY_LINES else [_line(gpu, width, marked=True)])]
    else:
        room = height - SUMMARY_LINES
        first = min(max(0, at - room // 2), len(gpus) - room)
        shown = gpus[first : first + room]
        rows = [_all(gpus, width), *(_line(one, width, marked=one is gpu) for one in shown), *pair]
    left = height - len(rows)
    if left > 0:
        drawn = history_width(width)
        watts = blocks(power[-drawn:], top=gpu.limit_w)[0].rjust(drawn) if drawn else ""
        rows += detail_rows(gpu, window, answers, utilization, owners, left, said, watts)
    return [fit(row, width) for row in rows[:height]]


def lines_wanted(window: Window, chosen: int = 0) -> int:
    """How many rows a tall terminal gives them. It stays while figures come and go: a layout is dear, and jumps."""
    on_each = process_counts(window.newest)
    if not on_each:
        return 2 if gpus_of(window.newest) else 1
    details = DETAILS + min(PROCESSES, max(1, on_each[chosen % len(on_each)]))
    return (0 if len(on_each) == 1 else len(on_each)) + 2 + details


def history_width(width: int) -> int:
    """Columns of a history; 0 where there is no room for one."""
    return width - LABEL_W - VALUE_W - 4 - WORK_W if width >= NARROW + 12 else 0


def _one(gpu: GpuNow, width: int, util: Sequence[float | None], utilization: float | None) -> list[Row]:
    """A GPU on two lines, its memory and its work; one that is lost on one."""
    if gpu.error:
        return [_line(gpu, width, marked=False)]
    return [_memory(gpu, width, utilization), _work(gpu, width, util)]


def _memory(gpu: GpuNow, width: int, utilization: float | None) -> Row:
    room = width - LABEL_W - VALUE_W - 4 - MEMORY_W
    budget = gpu.budget_gib(utilization)
    said = f"budget {figure(budget, 5, 1)}  " if budget is not None else " " * 14
    hot = gpu.temp_c is not None and gpu.slowdown_c is not None and gpu.temp_c >= gpu.slowdown_c - HOT_C
    return (
        (f"{_label(gpu):<{LABEL_W}}", MUTED),
        (figure(gpu.used_gib, VALUE_W, 1, " GiB"), STRONG),
        ("  ", PLAIN),
        (f"{memory_bar(gpu, budget, room)}  " if room >= SHORTEST_BAR else "", ACCENT),
        (f"of {figure(gpu.total_gib, 5, 1)} GiB  ", PLAIN),
        (said if width >= NARROW else "", PLAIN),
        (f"{'!' if hot else ' '}{figure(gpu.temp_c, 6, 0, ' °C')}", WARNING if hot else PLAIN),
    )


def _work(gpu: GpuNow, width: int, history: Sequence[float | None]) -> Row:
    drawn = history_width(width)
    said, _, kind = throttle_words(gpu)
    return (
        (outside(gpu.model, LABEL_W - 1) + " ", MUTED),
        (figure(gpu.util_perc, VALUE_W, 0, " %"), STRONG),
        ("  ", PLAIN),
        (f"{blocks(history[-drawn:], top=100.0)[0].rjust(drawn)}  " if drawn > 0 else "", ACCENT),
        (f"{_power(gpu)}  {figure(gpu.sm_mhz, 9, 0, ' MHz')}  ", PLAIN),
        (outside(said, 14), kind),
    )


def _line(gpu: GpuNow, width: int, marked: bool) -> Row:
    """One of several GPUs. The chosen one has a mark before it."""
    label: Piece = (f"{'▸' if marked else ' '}{_label(gpu):<{LABEL_W - 1}}"[:LABEL_W], STRONG if marked else MUTED)
    if gpu.error:
        return (label, (f"✗ cannot be read: {gpu.error}", ERROR))
    room = width - LABEL_W - LINE_W - 2
    _, short, kind = throttle_words(gpu)
    return (
        label,
        (figure(gpu.used_gib, 6, 1), STRONG),
        (f" of {figure(gpu.total_gib, 5, 1)} GiB  ", PLAIN),
        (f"{memory_bar(gpu, None, room)}  " if room >= SHORTEST_BAR else "", ACCENT),
        (f"{figure(gpu.util_perc, 5, 0, ' %')} {_power(gpu)} {figure(gpu.temp_c, 6, 0, ' °C')} ", PLAIN),
        (outside(short, 8), kind),
    )


def _all(gpus: Sequence[GpuNow], width: int) -> Row:
    """All GPUs in one line: sums of memory and power, mean and range of utilization, how many are in trouble."""
    lost, slowed = sum(bool(gpu.error) for gpu in gpus), sum(bool(gpu.throttled) for gpu in gpus)
    there = [gpu for gpu in gpus if not gpu.error]
    used, total = sum_of_all(gpu.used_gib for gpu in there), sum_of_all(gpu.total_gib for gpu in there)
    power = sum_of_all(gpu.power_w for gpu in there)
    utils = [gpu.util_perc for gpu in there if gpu.util_perc is not None]
    spread = f"{min(utils):.0f} to {max(utils):.0f} %" if utils else "–"
    trouble: Piece = ("ok", PLAIN)
    if lost:
        trouble = (f"✗ {lost} lost", ERROR)
    elif slowed:
        trouble = (f"! {slowed} throttled", WARNING)
    return (
        (f"{f'{len(gpus)} GPUs':<{LABEL_W}}", MUTED),
        (figure(used, 7, 1), STRONG),
        (f" of {figure(total, 7, 1)} GiB  util {spread:<12}  {figure(power, 7, 0, ' W')}  ", PLAIN),
        trouble,
    )


def memory_bar(gpu: GpuNow, budget: float | None, width: int) -> str:
    """Used `█`, what the driver keeps `▒` and free `░`, with `│` where the server's budget ends. Empty where the total
    is not known."""
    if width <= 0:
        return ""
    total = gpu.total_gib
    if total is None or total <= 0 or gpu.used_gib is None:
        return "░" * width
    used = _cells(gpu.used_gib, total, width)
    kept = min(width, _cells((gpu.used_gib) + (gpu.reserved_gib or 0.0), total, width)) - used
    cells = "█" * used + "▒" * kept + "░" * (width - used - kept)
    if budget is None or not 0 < budget < total:
        return cells
    mark = min(width - 1, _cells(budget, total, width))
    return f"{cells[:mark]}│{cells[mark + 1 :]}"


def throttle_words(gpu: GpuNow) -> tuple[str, str, str]:
    """What holds the clock down, in 14 cells and in 8, and its kind."""
    if gpu.throttled is None:
        return "throttling –", "–", PLAIN
    if not gpu.throttled:
        return "not throttled", "ok", PLAIN
    short, shorter = SHORT_REASONS.get(gpu.throttled[0], OTHER_REASON)
    more = f" +{len(gpu.throttled) - 1}" if len(gpu.throttled) > 1 else ""
    return f"! {short}{more}", f"! {shorter}", WARNING


def _label(gpu: GpuNow) -> str:
    return f"GPU {gpu.index}".strip()


def _power(gpu: GpuNow) -> str:
    if gpu.limit_w is None:
        return figure(gpu.power_w, 14, 0, " W")
    return f"{_plain(gpu.power_w)} of {_plain(gpu.limit_w)} W".rjust(14)


def _plain(watts: float | None) -> str:
    """Without a comma, which 14 cells have no room for."""
    return figure(watts, 5).replace(",", "").strip()


def _cells(part: float, whole: float, width: int) -> int:
    return round(min(1.0, max(0.0, part / whole)) * width)
