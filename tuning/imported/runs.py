"""A result as a run: its metrics under the names of today, what tells its configuration, and whether it counts."""

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeGuard

from engine.bench.outcome import distinct_errors
from engine.records import BenchOutcome
from engine.text import clean
from tuning.checks.acceptance import rejection
from tuning.imported.asked import asked_of
from tuning.imported.keys import metadata
from tuning.imported.records import ImportedRun, Place
from tuning.run_metrics import run_metrics

_AGREE_WITHIN = 0.02  # vLLM's own figures agree to the last digit; rounding by hand does not reach this
_PACKED_ITL_MS = 0.1


def imported_run(raw: dict[str, Any], place: Place, name: Mapping[str, str]) -> ImportedRun:
    """The run of result `raw`; `name` holds what its file name says, by `configuration`, `launch` and `workload`."""
    adapted = adapt(raw)
    outcome = BenchOutcome(adapted, 0.0, "", "", errors=distinct_errors(_texts(raw.get("errors"))))
    metrics = run_metrics(outcome, ())
    facts, load_facts, launch = _told(raw, place, name)
    ended = read_date(raw.get("date"))
    duration = metrics["duration_s"]
    started = ended - timedelta(seconds=duration) if ended and duration is not None and 0 < duration < 1e7 else None
    seed = raw.get("seed")
    return ImportedRun(
        place,
        raw,
        metrics,
        clean(str(raw.get("model_id") or "unnamed model"), 120),
        facts,
        load_facts,
        started=started,
        ended=ended,
        seed=None if seed is None else str(seed),
        launch=launch,
        rejected=_rejected(raw, outcome, metrics),
        notes=_packed(metrics),
    )


def adapt(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The result with the keys of today for those of older versions, as far as that is arithmetic."""
    adapted = dict(raw)
    if adapted.get("total_token_throughput") is None:  # before 0.6: input_throughput and output_throughput
        total = [raw.get("total_input_tokens"), raw.get("total_output_tokens"), raw.get("duration")]
        numbers = [float(each) for each in total if _is_number(each)]
        if len(numbers) == 3 and numbers[2] > 0:
            adapted["total_token_throughput"] = (numbers[0] + numbers[1]) / numbers[2]
    return adapted


def read_date(text: object) -> datetime | None:
    """`20251014-014903`, written after the run by the clock of the machine; None for anything else."""
    try:
        return datetime.strptime(str(text), "%Y%m%d-%H%M%S")
    except ValueError:
        return None


def request_rate(raw: Mapping[str, Any]) -> float | None:
    """Requests a second, None for no limit ("inf") or where it is not said."""
    rate = raw.get("request_rate")
    if isinstance(rate, str):
        try:
            rate = float(rate)
        except ValueError:
            return None
    return float(rate) if _is_number(rate) and math.isfinite(float(rate)) else None


def _told(
    raw: Mapping[str, Any], place: Place, name: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str], str | None]:
    facts: dict[str, str] = {}
    load: dict[str, str] = {}
    launch = f"{name['configuration']} {name['launch']}" if "launch" in name and "configuration" in name else None
    if place.serve is not None:
        facts["serve"] = place.serve or "as in the sweep's --serve-cmd"
        launch = f"{place.experiment} {place.serve}"
        if place.bench:
            load["bench"] = place.bench
    else:
        for kind, key, text in metadata(raw):
            if kind == "configuration":
                facts[key] = text
            elif kind == "load":
                load[key] = text
            elif kind == "launch":
                launch = launch or f"{key} {text}"
    if isinstance(raw.get("label"), str) and raw["label"].strip():
        facts["label"] = raw["label"].strip()
    # vllm, openai and openai-chat send requests of other forms, and the chat template makes prompts longer.
    if back_end := raw.get("backend") or raw.get("endpoint_type"):
        facts["backend"] = str(back_end)
    if name.get("configuration"):
        facts["file name"] = name["configuration"]
    if name.get("workload"):
        load["file name"] = name["workload"]
    return (
        {clean(key, 40): clean(text, 120) for key, text in facts.items()},
        {clean(key, 40): clean(text, 120) for key, text in load.items()},
        launch,
    )


def _rejected(raw: Mapping[str, Any], outcome: BenchOutcome, metrics: Mapping[str, float | None]) -> str | None:
    """Why the run does not count: the rules of a sweep's own runs, and that the figures agree with each other."""
    if "failed" not in raw and metrics["requests_failed"] and metrics["requests_completed"]:
        completed, lacking = metrics["requests_completed"], metrics["requests_failed"]
        return (
            f"{completed:.0f} requests came back of {completed + lacking:.0f}; the others failed (vLLM before 0.11.2 "
            "counts no failures), or the dataset held fewer"
        )
    duration = metrics["duration_s"]
    if duration is not None and duration < 0:
        return f"a duration of {duration:g} s"
    return rejection(asked_of(raw), outcome, metrics) or _disagreement(metrics)


def _disagreement(metrics: Mapping[str, float | None]) -> str | None:
    duration = metrics["duration_s"]
    for rate, count, what in (
        ("requests_per_s", "requests_completed", "requests a second"),
        ("output_tok_per_s", "output_tokens", "output tokens a second"),
    ):
        told, counted = metrics[rate], metrics[count]
        if not duration or told is None or not counted:
            continue
        true = counted / duration
        if abs(told / true - 1) > _AGREE_WITHIN:
            return (
                f"it tells {told:,.4g} {what}, while {counted:,.0f} in {duration:,.4g} s are {true:,.4g}: "
                "was it edited, or merged from several?"
            )
    return None


def _packed(metrics: Mapping[str, float | None]) -> tuple[str, ...]:
    """A client that cannot keep up reads many chunks at once: most gaps are then nearly 0, and a few very long."""
    median, mean = metrics["median_itl_ms"], metrics["mean_itl_ms"]
    if median is None or mean is None or median >= _PACKED_ITL_MS or mean < 10 * max(median, 0.001):
        return ()
    return (
        f"half of its gaps between tokens are under {_PACKED_ITL_MS} ms at a mean of {mean:.3g} ms: chunks came "
        "together, as with a load generator that cannot keep up",
    )


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str) and each] if isinstance(value, list) else []


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
