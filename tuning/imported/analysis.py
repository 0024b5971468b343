"""From the results of files to what can be said of them. Pure: files are read before, and texts are made after."""

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from tuning.counting import counted
from tuning.imported.comparing import compare, in_order, repeats
from tuning.imported.configurations import Grouping, group
from tuning.imported.loads import by_load
from tuning.imported.names import from_pattern, name_labels
from tuning.imported.places import place_of
from tuning.imported.prefix_cache import without_cached
from tuning.imported.records import Configuration, FileResults, ImportedRun, ImportReport, Load, Refused, Repeat
from tuning.imported.runs import imported_run
from tuning.imported.servers import overlapping, with_stretches
from tuning.imported.summing import configuration


def analyse(
    files: Sequence[FileResults],
    refused: Sequence[Refused] = (),
    *,
    names: str | None = None,
    apart: bool = False,
    ignore: Collection[str] = (),
    left_alone: int = 0,
) -> ImportReport:
    """The report on `files`. `names` is a pattern for file names (names.from_pattern), `apart` keeps runs that lack a
    piece of metadata apart from those that have it, `ignore` are metadata that tell nothing apart. Raises ValueError
    for a pattern that is none."""
    runs, repeated = _runs(files, names)
    runs = [_without(run, ignore) for run in runs]
    runs = with_stretches(runs)
    measured = [run for run in runs if not run.place.warmup]
    loads: list[tuple[str, tuple[Configuration, ...]]] = []
    groupings: list[Grouping] = []
    for label, of_load in by_load(measured):
        grouping = group(without_cached(of_load), apart)
        groupings.append(grouping)
        loads.append((label, in_order([configuration(name, members) for name, members in grouping.groups])))
    known = [repeat for _, configurations in loads for repeat in repeats(configurations)]
    return ImportReport(
        files=len(files),
        runs=len(runs),
        loads=tuple(
            Load(
                label,
                configurations,
                compare(configurations, _nearest(configurations, known)),
                tuple(repeats(configurations)),
            )
            for label, configurations in loads
        ),
        refused=tuple(refused),
        failures=tuple(Refused(file.path, line) for file in files for line in file.failures),
        notes=tuple(_notes(files, runs, measured, groupings)),
        told_by=tuple(dict.fromkeys(key for grouping in groupings for key in grouping.told_by)),
        repeated=repeated,
        left_alone=left_alone,
    )


def _without(run: ImportedRun, ignored: Collection[str]) -> ImportedRun:
    facts = {key: text for key, text in run.facts.items() if key not in ignored}
    return replace(run, facts=facts, load_facts={k: text for k, text in run.load_facts.items() if k not in ignored})


def _nearest(configurations: Sequence[Configuration], known: Sequence[Repeat]) -> list[Repeat]:
    """The repeats of these configurations before those of other workloads; of each the widest first."""
    labels = {each.label for each in configurations}
    return sorted(known, key=lambda repeat: (repeat.label not in labels, -repeat.apart))


def _runs(files: Sequence[FileResults], names: str | None) -> tuple[list[ImportedRun], int]:
    labels = name_labels([file.path for file in files])
    seen: set[str] = set()
    runs: list[ImportedRun] = []
    repeated = 0
    for file in sorted(files, key=lambda file: _repeats_others(file.path)):
        name = {"configuration": labels[file.path]} if labels[file.path] else {}
        if names is not None:
            name = from_pattern(names, file.path) or name
        for number, raw in enumerate(file.results):
            identity = _identity(raw)
            if identity in seen:
                repeated += not _repeats_others(file.path)
                continue
            seen.add(identity)
            runs.append(imported_run(raw, place_of(file.path, number, len(file.results), raw), name))
    return runs, repeated


def _repeats_others(path: str) -> bool:
    """Whether a sweep's file holds the runs of the files beside it once more."""
    stem = PurePath(path).stem
    return stem == "summary" or stem.startswith("SLA--")


def _identity(raw: dict[str, Any]) -> str:
    text = json.dumps(raw, sort_keys=True, default=str, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _notes(
    files: Iterable[FileResults],
    runs: Sequence[ImportedRun],
    measured: Sequence[ImportedRun],
    groupings: Iterable[Grouping],
) -> Iterable[str]:
    for file in files:
        yield from (f"{PurePath(file.path).name}: {note}" for note in file.notes)
    if warmups := len(runs) - len(measured):
        yield f"{counted(warmups, 'warm-up run')} left out"
    filled: dict[str, int] = {}
    for grouping in groupings:
        for key, count in grouping.filled.items():
            filled[key] = filled.get(key, 0) + count
    for key, count in filled.items():
        yield (
            f"{counted(count, 'run does', 'runs do')} not say {key}, taken for those of the same model and workload "
            "that do; --apart makes them configurations of their own"
        )
    if overlap := overlapping(measured):
        yield (
            f"{counted(overlap, 'run')} of one model overlap in time: measured on several machines, or in each "
            "other's way"
        )
    if undated := sum(run.ended is None for run in measured):
        yield f"{counted(undated, 'run')} without a date: which of them were on one server cannot be told"
    for run in measured:
        yield from (f"{PurePath(run.place.path).name}: {note}" for note in run.notes)
