"""What a run is called in a report: its file, and its place in it."""

from pathlib import PurePath

from engine.text import clean
from tuning.imported.records import ImportedRun, Place


def run_name(run: ImportedRun) -> str:
    """`A1-0.json`, `results.jsonl #3`; of a sweep with its folder."""
    return place_name(run.place)


def place_name(place: Place) -> str:
    pure = PurePath(place.path)
    name = pure.name if place.experiment is None else f"{pure.parent.name}/{pure.name}"
    name = clean(name, 100)
    return f"{name} #{place.number + 1}" if place.of > 1 else name
