"""Which runs were measured under one workload.

A result does not name its dataset. What it has: how many prompts, the rate, the concurrency, and the mean number of
tokens of a prompt and of an answer. Runs that agree in the first and are near in the last are one workload: prompts
within 15 % of their neighbour in size, answers within 50 % (an answer's length is the model's choice unless
`ignore_eos` is set). Two datasets of the same mean lengths cannot be told apart.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence

from tuning.figures import figure
from tuning.imported.records import ImportedRun
from tuning.imported.runs import request_rate

_PROMPT_RATIO = 1.15
_ANSWER_RATIO = 1.5


def by_load(runs: Iterable[ImportedRun]) -> list[tuple[str, list[ImportedRun]]]:
    """`(label, runs)` of each workload, in the order of their first runs."""
    groups: dict[Hashable, list[ImportedRun]] = defaultdict(list)
    for run in runs:
        groups[_asked(run)].append(run)
    found: list[list[ImportedRun]] = []
    for group in groups.values():
        for near in _clusters(group, _prompt_tokens, _PROMPT_RATIO):
            found += _clusters(near, _answer_tokens, _ANSWER_RATIO)
    return [(_label(each), each) for each in found]


def _asked(run: ImportedRun) -> Hashable:
    raw = run.raw
    ramp = tuple(str(raw.get(f"ramp_up_{key}")) for key in ("strategy", "start_rps", "end_rps"))
    asked = (raw.get("num_prompts"), request_rate(raw), raw.get("max_concurrency"), raw.get("burstiness", 1.0))
    return (*map(str, asked), ramp, tuple(sorted(run.load_facts.items())))


def _clusters(
    runs: Sequence[ImportedRun], size: Callable[[ImportedRun], float | None], ratio: float
) -> list[list[ImportedRun]]:
    """Runs in clusters by size, cut where the next larger one is more than `ratio` times as large; those without a size
    are one of their own, unless there is only one other."""
    sized = sorted((value, index) for index, run in enumerate(runs) if (value := size(run)) is not None)
    cuts: list[list[int]] = []
    last = 0.0
    for value, index in sized:
        if not cuts or value > last * ratio + 1:
            cuts.append([])
        cuts[-1].append(index)
        last = value
    without = [index for index, run in enumerate(runs) if size(run) is None]
    if len(cuts) == 1:
        cuts[0] += without
    elif without:
        cuts.append(without)
    return [[runs[index] for index in sorted(cut)] for cut in sorted(cuts, key=min)]


def _prompt_tokens(run: ImportedRun) -> float | None:
    return _each(run, "input_tokens")


def _answer_tokens(run: ImportedRun) -> float | None:
    return _each(run, "output_tokens")


def _each(run: ImportedRun, tokens: str) -> float | None:
    counted, requests = run.metrics[tokens], run.metrics["requests_completed"]
    return counted / requests if counted is not None and requests else None


def _label(runs: Sequence[ImportedRun]) -> str:
    run = runs[0]
    told = [f"{key} {text}" if key != "bench" else text for key, text in run.load_facts.items()]
    prompts = run.raw.get("num_prompts")
    parts = [*told, f"{prompts:,} prompts" if isinstance(prompts, int) else "prompts of unknown number"]
    lengths = [_span(runs, size) for size in (_prompt_tokens, _answer_tokens)]
    if lengths[0] or lengths[1]:
        parts.append(f"{lengths[0] or '?'} tokens in and {lengths[1] or '?'} out on average")
    rate, most = request_rate(run.raw), run.raw.get("max_concurrency")
    parts.append("all at once" if rate is None else f"{figure(rate)} a second")
    if isinstance(most, int):
        parts.append(f"at most {most:,} at a time")
    if run.raw.get("ramp_up_strategy"):
        parts.append(f"rate ramped up ({run.raw['ramp_up_strategy']})")
    return ", ".join(parts)


def _span(runs: Sequence[ImportedRun], size: Callable[[ImportedRun], float | None]) -> str:
    values = [round(value) for run in runs if (value := size(run)) is not None]
    if not values:
        return ""
    return f"{min(values):,}" if min(values) == max(values) else f"{min(values):,}–{max(values):,}"
