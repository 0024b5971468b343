"""Which runs of a workload are of one configuration, by what the files say: model, sweep folder, metadata, label, back
end and file name, in that order. Only what tells runs apart becomes part of a label.

A run that lacks a piece of metadata is taken for one of those that have it, where all of these (of the same model and
workload) say the same: people add `--metadata` later, or forget it. That can make one of two configurations, so the
report says where it was done; `apart` turns it off. Wrongly joined runs make noise look larger, never an effect.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os.path import commonpath

from tuning.counting import short_model
from tuning.imported.records import ImportedRun

_PARAMETER = re.compile(r"-(?=[A-Za-z_][\w.]*=)")
_BARE = frozenset({"model", "serve", "label", "file name"})
_LAST = ("label", "backend", "file name")
_NEVER_FILLED = frozenset({"model", "file name", "serve"})


@dataclass(frozen=True, slots=True)
class Grouping:
    """`groups` are `(label, runs)` in the order of their first runs, `told_by` the facts that told them apart, `filled`
    how many runs lacked a fact that was taken from the others, by the fact's name."""

    groups: tuple[tuple[str, tuple[ImportedRun, ...]], ...]
    told_by: tuple[str, ...]
    filled: dict[str, int]


def group(runs: Sequence[ImportedRun], apart: bool = False) -> Grouping:
    """Group the runs of one workload."""
    keys = _keys(runs)
    filled: dict[str, int] = {}
    values = {key: _values(runs, key, filled, apart) for key in keys}
    telling: list[str] = []
    identities: list[tuple[str, ...]] = [() for _ in runs]
    for key in keys:
        finer = [(*identity, values[key][index]) for index, identity in enumerate(identities)]
        if len(set(finer)) > len(set(identities)):
            identities = finer
            telling.append(key)
    members: dict[tuple[str, ...], list[ImportedRun]] = {}
    for identity, run in zip(identities, runs, strict=True):
        members.setdefault(identity, []).append(run)
    models = {run.model for run in runs}
    shortened = len({short_model(model) for model in models}) == len(models)
    shown = {key: _shown(key, values[key]) for key in telling}
    groups = tuple(
        (_label(telling, identity, of_one[0], shown, shortened), tuple(of_one)) for identity, of_one in members.items()
    )
    return Grouping(groups, tuple(telling), filled)


def _keys(runs: Sequence[ImportedRun]) -> list[str]:
    seen = dict.fromkeys(key for run in runs for key in run.facts)
    return ["model", *(key for key in seen if key not in _LAST), *(key for key in _LAST if key in seen)]


def _values(runs: Sequence[ImportedRun], key: str, filled: dict[str, int], apart: bool) -> list[str]:
    if key == "model":
        return [run.model for run in runs]
    said: dict[str, set[str]] = {}
    for run in runs:
        if key in run.facts:
            said.setdefault(run.model, set()).add(run.facts[key])
    found: list[str] = []
    for run in runs:
        known = said.get(run.model, set())
        if key in run.facts:
            found.append(run.facts[key])
        elif len(known) == 1 and key not in _NEVER_FILLED and not apart:
            filled[key] = filled.get(key, 0) + 1
            found.append(next(iter(known)))
        else:
            found.append("")
    return found


def _shown(key: str, values: Sequence[str]) -> dict[str, str]:
    """Value → what of it stands in a label: of a sweep's `key=value-key=value` what differs, of a path what lies below
    the folders that all share."""
    if key == "file name":
        folder = commonpath([value.rpartition("/")[0] for value in values])
        return {value: value.removeprefix(f"{folder}/") for value in values} if folder else {}
    if key != "serve":
        return {}
    pieces = {value: _PARAMETER.split(value) for value in values}
    shared = set.intersection(*(set(each) for each in pieces.values()))
    return {value: " ".join(piece for piece in each if piece not in shared) or value for value, each in pieces.items()}


def _label(
    telling: Sequence[str],
    identity: Sequence[str],
    run: ImportedRun,
    shown: Mapping[str, Mapping[str, str]],
    shortened: bool,
) -> str:
    parts = []
    for key, value in zip(telling, identity, strict=True):
        if key == "model":
            parts.append(short_model(value) if shortened else value)
        elif not value:
            parts.append("unnamed" if key == "file name" else f"{key} not said")
        else:
            text = shown[key].get(value, value)
            parts.append(text if key in _BARE else f"{key} {text}")
    return ", ".join(parts) or short_model(run.model)
