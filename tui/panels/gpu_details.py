"""What else is known of one GPU: what is wrong first, then memory, energy, clocks, link, errors, who is on it."""

from engine.gpu_owners import NOBODY, Owners
from engine.samples.window import Window
from tui.format import ABSENT
from tui.panels.gpu_reading import GpuNow, ProcessNow, energy_j, energy_per_token
from tui.panels.row import ACCENT, MUTED, PLAIN, STRONG, WARNING, Row, brief, figure, outside

LABEL_W, VALUE_W = 10, 11  # as the gauges'
DETAILS = 5  # rows, one for what is wrong among them, beside those of processes
PROCESSES = 4
OTHERS_GIB = 0.5  # what others may hold unmentioned


def detail_rows(
    gpu: GpuNow,
    window: Window,
    answers: bool,
    utilization: float | None,
    owners: Owners = NOBODY,
    height: int = 12,
    note: str = "",
    power: str = "",
) -> list[Row]:
    """At most `height` rows, the most important first. `note` is what was said of the reading as a whole, `power` the
    history of watts as it is drawn."""
    rows = trouble_rows(gpu, owners, note)
    if gpu.error:
        return rows[:height]
    if height - len(rows) == 1:
        said = f"free {brief(gpu.free_gib, 1, ' GiB')}", _each(window, answers), f"ECC {brief(gpu.ecc_errors)}"
        return [*rows, _power(gpu, power, *said)]
    rows += [
        _memory(gpu, utilization),
        _power(gpu, power, *_energy(gpu, window), _each(window, answers)),
        _clocks(gpu),
        _link(gpu),
        *_processes(gpu, owners),
    ]
    return rows[:height]


def trouble_rows(gpu: GpuNow, owners: Owners, note: str = "") -> list[Row]:
    """A row for each thing that is wrong; none where all is well."""
    found: list[str] = []
    if gpu.ecc_errors:
        found.append(f"{brief(gpu.ecc_errors)} uncorrected memory errors since the driver was loaded")
    if gpu.throttled and len(gpu.throttled) > 1:
        found.append(f"throttled: {', '.join(gpu.throttled)}")
    if others := _others(gpu, owners):
        held = sum(one.used_gib or 0.0 for one in others)
        found.append(f"{brief(held, 1)} GiB held by {_named(others[0], owners)}{' and others' if others[1:] else ''}")
    if gpu.mig:
        found.append("cut into MIG slices: the figures are of the whole GPU")
    if note and not gpu.error:
        found.append(note)
    return [((f"{'':<{LABEL_W}}", PLAIN), (f"! {said}", WARNING)) for said in found]


def _others(gpu: GpuNow, owners: Owners) -> list[ProcessNow]:
    """Processes that are not our server's and hold memory beside it. Where no server of ours is there, none: the one
    that is watched is then among them."""
    if not any(owner.whose == "ours" for owner in owners.values()):
        return []
    found = [one for one in gpu.processes if one.pid in owners and owners[one.pid].whose != "ours"]
    return [one for one in found if one.used_gib is not None and one.used_gib >= OTHERS_GIB]


def _row(name: str, *said: str) -> Row:
    return ((f"{name:<{LABEL_W}}", MUTED), ("  ".join(part for part in said if part), PLAIN))


def _memory(gpu: GpuNow, utilization: float | None) -> Row:
    budget = gpu.budget_gib(utilization)
    of = ""
    if budget is not None:
        left = budget - gpu.used_gib if gpu.used_gib is not None else None
        within = "" if left is None else f", {brief(abs(left), 1)} {'left' if left >= 0 else 'over'}"
        of = f"budget {brief(budget, 1)} = {utilization:g} of {brief(gpu.usable_gib, 1)}{within}"
    return _row("memory", f"free {brief(gpu.free_gib, 1)}", f"reserved {brief(gpu.reserved_gib, 1)} GiB", of)


def _power(gpu: GpuNow, drawn: str, *said: str) -> Row:
    """The power with its history, and what belongs to it."""
    return (
        (f"{'power':<{LABEL_W}}", MUTED),
        (figure(gpu.power_w, VALUE_W, 0, " W"), STRONG),
        (f"  {drawn}  " if drawn else "  ", ACCENT),
        ("  ".join(said), PLAIN),
    )


def _energy(gpu: GpuNow, window: Window) -> tuple[str, ...]:
    seconds = min(window.seen(), window.seconds)
    return (f"{_joules(energy_j(window, gpu.key))} in {seconds:.0f} s",)


def _each(window: Window, answers: bool) -> str:
    """Per token generated, of all GPUs that the server uses: as a run's energy_j_per_token."""
    return f"{brief(energy_per_token(window) if answers else None, 3)} J/output token"


def _clocks(gpu: GpuNow) -> Row:
    return _row(
        "clocks",
        f"SM {brief(gpu.sm_mhz)} of {brief(gpu.sm_max_mhz)}",
        f"mem {brief(gpu.mem_mhz)} of {brief(gpu.mem_max_mhz)} MHz",
        f"busy {brief(gpu.mem_util_perc)} %" if gpu.mem_util_perc is not None else "",
        f"limit {brief(gpu.slowdown_c)} °C" if gpu.slowdown_c is not None else "",
    )


def _link(gpu: GpuNow) -> Row:
    """PCIe and ECC; both hardly change."""
    return _row(
        "PCIe",
        f"{_lanes(gpu)} of {_of(gpu.pcie_gen_max, gpu.pcie_width_max)}",
        f"in {brief(gpu.pcie_in_mib_per_s, 1)} out {brief(gpu.pcie_out_mib_per_s, 1)} MiB/s",
        f"ECC {brief(gpu.ecc_errors)}, corrected {brief(gpu.ecc_corrected)}",
    )


def _lanes(gpu: GpuNow) -> str:
    return _of(gpu.pcie_gen, gpu.pcie_width)


def _of(generation: float | None, width: float | None) -> str:
    """`gen 5 x16`."""
    if generation is None and width is None:
        return ABSENT
    return f"gen {brief(generation)} x{brief(width)}"


def _processes(gpu: GpuNow, owners: Owners) -> list[Row]:
    shown = gpu.processes[:PROCESSES]
    rows: list[Row] = [
        (
            (f"{'on it' if at == 0 else '':<{LABEL_W}}", MUTED),
            (f"{brief(one.used_gib, 1, ' GiB'):>{VALUE_W}}  ", STRONG),
            (_named(one, owners), PLAIN),
        )
        for at, one in enumerate(shown)
    ]
    if more := len(gpu.processes) - len(shown):
        rows.append(_row("", f"{'':>{VALUE_W}}and {more} more"))
    return rows


def _named(process: ProcessNow, owners: Owners) -> str:
    """`our server 3, chat: VLLM::EngineCore (pid 693)`."""
    owner = owners.get(process.pid)
    name = outside(process.name, 40).rstrip()
    what = f"{name} (pid {process.pid})" if name else f"pid {process.pid}"
    if owner is None or owner.whose == "another":
        return what
    return f"{owner.server}: {what}" if owner.whose == "ours" else f"{what}, not visible from here"


def _joules(joules: float | None) -> str:
    if joules is None:
        return f"{ABSENT} J"
    if joules >= 1e6:
        return f"{brief(joules / 1e6, 2)} MJ"
    return f"{brief(joules / 1e3, 1)} kJ" if joules >= 1e3 else f"{brief(joules)} J"
