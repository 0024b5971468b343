"""What was asked of a run, where the file says it: in a sweep's own bench parameters, or in `--metadata`.

Then the rules that need it hold as for a sweep of ours: all requests came back, and answers that may not end early have
the length asked for. Elsewhere as little is asked as of a ShareGPT file, which may hold fewer conversations.
"""

from collections.abc import Mapping
from typing import Any

from tuning.records import Workload

_SHAPES = {
    "random": ("input_len", "output_len", "range_ratio", "prefix_len"),
    "prefix_repetition": ("prefix_len", "suffix_len", "num_prefixes", "output_len"),
}


def asked_of(raw: Mapping[str, Any]) -> Workload:
    """The workload as far as the result tells it. Random prompts force `ignore_eos` from 0.11.2 on, the first version
    that counts failures, by which it is known here."""
    requests, dataset = _number(raw.get("num_prompts")), _dataset(raw)
    unknown = Workload("", "sharegpt", int(requests or 0))
    if dataset is None or not requests or "failed" not in raw:
        return unknown
    shape = {
        key: value
        for key in _SHAPES[dataset]
        if (value := _number(raw.get(f"{dataset}_{key}", raw.get(key)))) is not None
    }
    if dataset == "prefix_repetition" and not 0 < shape.get("num_prefixes", 0) <= requests:
        return unknown
    return Workload("", dataset, int(requests), ignore_eos=_true(raw.get("ignore_eos")), shape=shape)


def _dataset(raw: Mapping[str, Any]) -> str | None:
    named = raw.get("dataset_name")
    if named is not None:
        return str(named) if named in _SHAPES else None
    return next((name for name in _SHAPES if f"{name}_output_len" in raw), None)


def _number(value: object) -> float | None:
    """A count as a number, or as the text of one, which metadata are."""
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < 1e12 else None


def _true(value: object) -> bool:
    return value is True or str(value).lower() == "true"
