"""Short texts that several parts of a report use."""

import re
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


def short_model(model: str) -> str:
    """The last part of a path or hub name."""
    return re.split(r"[/\\]", model.rstrip("/\\"))[-1] or model


def span_text(seconds: float) -> str:
    """`40 s`, `12 min`, `5 h`, `5.4 days`."""
    if seconds >= 86_400:
        days = f"{seconds / 86_400:.1f}".removesuffix(".0")
        return f"{days} {'day' if days == '1' else 'days'}"
    for size, word in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {word}"
    return f"{seconds:.0f} s"


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 run`, `1,200 runs`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
