"""Runs that were answered from the prefix cache: the same prompts sent again to one server read half as fast again.

Certain, where the file has what it takes: the same seed or the same list of prompt lengths, on one server, whose caches
nobody reset (`vllm bench sweep` does after each run). Otherwise by the signature alone, which takes all of: as many
prompt tokens to the digit, in the same stretch, and against the median of the runs before it a mean TTFT of at most two
thirds, a p99 ITL of at most 60 % (nobody's prefill stands between the tokens any more) and a throughput of at least
110 %. Measured on an H200: 447 to 167 ms, 110 to 17 ms, 27,681 to 41,330 tok/s. Another batch limit does one of the
three.
This rule looks at how good a result is, as no rule of a sweep's own runs does: files have no count of cache hits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from statistics import median

from tuning.figures import figure
from tuning.imported.records import ImportedRun
from tuning.imported.run_names import run_name

_TTFT, _TAIL, _THROUGHPUT = 2 / 3, 0.6, 1.1
_LOOKED_BACK = 100  # runs of one server; more would take the square of their number
_NAMED = ("mean_ttft_ms", "p99_itl_ms", "total_tok_per_s")


def without_cached(runs: Sequence[ImportedRun]) -> list[ImportedRun]:
    """The runs of one workload, those answered from the cache rejected. Their order stays."""
    by_server: dict[tuple[str, int], list[int]] = {}
    for index, run in enumerate(runs):
        by_server.setdefault((run.model, run.stretch), []).append(index)
    judged = list(runs)
    for on_one in by_server.values():
        before: list[ImportedRun] = []
        for index in sorted(on_one, key=lambda index: runs[index].started or datetime.max):
            run = runs[index]
            reason = None if run.rejected else _cached(run, before[-_LOOKED_BACK:])
            if reason is None:
                before.append(run)
            else:
                judged[index] = replace(run, rejected=reason)
    return judged


def _cached(run: ImportedRun, before: Sequence[ImportedRun]) -> str | None:
    resets = run.place.experiment is not None
    alike = [each for each in before if each.metrics["input_tokens"] == run.metrics["input_tokens"]]
    if not resets:
        for each in alike:
            if why := _same_prompts(run, each):
                return (
                    f"the same prompts as {run_name(each)} {why}, on the same server: it may be answered from the "
                    f"prefix cache{_how_much(run, each)}"
                )
    return _signature(run, [each for each in alike if each.rejected is None])


def _same_prompts(run: ImportedRun, other: ImportedRun) -> str | None:
    lengths = run.raw.get("input_lens")
    if isinstance(lengths, list) and lengths == other.raw.get("input_lens") and len(set(map(str, lengths))) > 1:
        return "(the same lengths in the same order)"
    texts = run.raw.get("generated_texts")
    if isinstance(texts, list) and any(texts) and texts == other.raw.get("generated_texts"):
        return "(the same answers in the same order)"
    if run.seed is not None and run.seed == other.seed:
        return f"(seed {run.seed} in both)"
    return None


def _signature(run: ImportedRun, before: Iterable[ImportedRun]) -> str | None:
    earlier = list(before)
    usual = {name: _median(earlier, name) for name in _NAMED}
    ttft, tail, speed = (_ratio(run.metrics[name], usual[name]) for name in _NAMED)
    if ttft is None or tail is None or speed is None:
        return None
    if ttft > _TTFT or tail > _TAIL or speed < _THROUGHPUT:
        return None
    return (
        f"reads like prompts answered from the prefix cache: {100 * (speed - 1):.0f} % more tokens a second, TTFT "
        f"{figure(run.metrics['mean_ttft_ms'])} against {figure(usual['mean_ttft_ms'])} ms and p99 ITL "
        f"{figure(run.metrics['p99_itl_ms'])} against {figure(usual['p99_itl_ms'])} ms of {_names(earlier)} before it "
        "on the same server, with as many prompt tokens; was it sent the same prompts (the same --seed) again?"
    )


def _how_much(run: ImportedRun, other: ImportedRun) -> str:
    speed = _ratio(run.metrics["total_tok_per_s"], other.metrics["total_tok_per_s"])
    return "" if speed is None else f" ({100 * (speed - 1):+.0f} % tokens a second)".replace("-", "−")


def _median(runs: Sequence[ImportedRun], name: str) -> float | None:
    values = [value for run in runs if (value := run.metrics[name]) is not None]
    return median(values) if values else None


def _ratio(value: float | None, usual: float | None) -> float | None:
    return value / usual if value is not None and usual else None


def _names(runs: Sequence[ImportedRun]) -> str:
    return run_name(runs[0]) if len(runs) == 1 else f"the {len(runs)} runs"
