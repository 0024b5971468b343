"""What was read from files of others and what follows from it, as frozen dataclasses."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Verdict = Literal["differs", "beyond the scatter", "not told apart", "says nothing"]
Basis = Literal["launches", "stretches", "runs"]


@dataclass(frozen=True, slots=True)
class Refused:
    """A file, or a part of one, that gave no run, and why in one line."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class FileResults:
    """The results that one file holds, in its order. `failures` are what a sweep wrote of runs that broke, `notes` what
    a person should know of the file as a whole."""

    path: str
    size: int
    content_hash: str
    results: tuple[dict[str, Any], ...]
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a result stood: the file, its number in it, and what a sweep's folder says (None elsewhere).

    `serve` and `bench` are the texts of the parameter combination, "" where there is none; `experiment` is the folder
    of the whole sweep, in which one `serve` is one launch.
    """

    path: str
    number: int  # from 0, of `of`
    of: int = 1
    experiment: str | None = None
    serve: str | None = None
    bench: str | None = None
    warmup: bool = False


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """One run. `metrics` are those of the contract; `facts` what tells its configuration, in order of weight;
    `load_facts` what its workload is called beyond the figures. `started` and `ended` are the clock of the machine that
    measured, which had no zone; None where the file has no date."""

    place: Place
    raw: dict[str, Any]
    metrics: dict[str, float | None]
    model: str
    facts: dict[str, str]
    load_facts: dict[str, str]
    started: datetime | None = None
    ended: datetime | None = None
    seed: str | None = None
    launch: str | None = None  # what names its server, where something does
    stretch: int = 0  # runs of one number had no time for a restart between them
    rejected: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        return self.rejected is None and not self.place.warmup


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric of one configuration: `mean` over `units` (each the mean of its runs), with its 95 % t interval.

    `basis` says what the units are: launches that something names; stretches of runs, between which a restart would
    have found time; or, where all runs lie in one stretch, the runs themselves.
    """

    runs: int
    units: int
    mean: float
    low: float | None
    high: float | None
    basis: Basis
    values: tuple[float, ...] = ()  # of the units


@dataclass(frozen=True, slots=True)
class Configuration:
    """Runs of one configuration under one workload."""

    label: str
    runs: tuple[ImportedRun, ...]
    units: tuple[tuple[ImportedRun, ...], ...]  # those that count, by launch or stretch
    basis: Basis
    figures: dict[str, Figure]
    span_s: float | None = None  # from the start of the first run that counts to the start of the last

    @property
    def counted(self) -> int:
        return sum(len(unit) for unit in self.units)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One configuration against another by one metric: `effect`, `low` and `high` are ratios − 1, the interval at 95 %
    for all comparisons of the workload together (None where the data give none). `verdict`: "differs" where the
    interval is over named launches and excludes 0, "beyond the scatter" where it excludes 0 and is not, "not told
    apart" where it holds 0, "says nothing" where there is none.
    `text` is the whole sentence, `reason` what it rests on."""

    metric: str
    label: str
    against: str
    effect: float
    low: float | None
    high: float | None
    verdict: Verdict
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """How far units of one configuration lie apart in one metric: the largest ratio − 1 between two of them, which
    began `span_s` apart at most."""

    label: str
    metric: str
    apart: float
    span_s: float | None


@dataclass(frozen=True, slots=True)
class Load:
    """One workload and the configurations measured under it; the others are held against the first."""

    label: str
    configurations: tuple[Configuration, ...]
    comparisons: tuple[Comparison, ...] = ()
    repeats: tuple[Repeat, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportReport:
    """All that is said of some files. `told_by` are the facts by which configurations were told apart."""

    files: int
    runs: int
    loads: tuple[Load, ...]
    refused: tuple[Refused, ...] = ()
    failures: tuple[Refused, ...] = ()
    notes: tuple[str, ...] = ()
    told_by: tuple[str, ...] = ()
    repeated: int = 0  # results that stood in a second file too, and were counted once
    left_alone: int = 0  # files in the folders whose names are not those of results
    kept: dict[str, int] = field(default_factory=dict)  # files that were new to the store, and known
