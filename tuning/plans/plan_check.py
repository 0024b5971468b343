"""Reading one table of a plan, key by key, collecting every mistake with its line instead of stopping at the first."""

import math
import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeGuard

from tuning.plans.toml_lines import KeyPath, key_lines, line_of
from tuning.records import PlanError


class Mistakes:
    """The mistakes found so far in one text, each as (line, message)."""

    def __init__(self, text: str, where: str) -> None:
        self._where = where
        self._lines = key_lines(text)
        self._found: list[tuple[int, str]] = []

    def add(self, path: KeyPath, message: str) -> None:
        """Note `message` at the line of `path`."""
        self._found.append((line_of(self._lines, path), message))

    def raise_any(self) -> None:
        """PlanError with one line a mistake, in the order of the file; nothing when there are none."""
        if self._found:
            raise PlanError("\n".join(f"{self._where}:{line}: {message}" for line, message in sorted(self._found)))


class Section:
    """One table of the plan. Each reader returns the value, or the default after noting what is wrong with it."""

    def __init__(self, data: Mapping[str, Any], path: KeyPath, title: str, mistakes: Mistakes) -> None:
        self.data = data
        self.path = path
        self._title = title
        self._mistakes = mistakes

    def wrong(self, key: str | None, message: str, *inner: str | int) -> None:
        """Note a mistake about `key` (None: the table itself); `inner` leads to a part of its value."""
        if key is None:
            self._mistakes.add(self.path, f"{self._title} {message}".lstrip())
        else:
            shown = key if key.isprintable() else ascii(key)
            label = ".".join((shown, *(part for part in inner if isinstance(part, str))))
            self._mistakes.add((*self.path, key, *inner), f"{self._title} {label}: {message}".lstrip())

    def only(self, known: Iterable[str], hints: Mapping[str, str] | None = None) -> None:
        """Note every key that is not in `known`, with the nearest one or the hint for it."""
        names = list(known)
        for key in self.data:
            if key in names:
                continue
            if hints and key in hints:
                self.wrong(key, hints[key])
            else:
                near = get_close_matches(key, names, 1)
                self.wrong(key, "unknown key" + (f"; did you mean {near[0]}?" if near else ""))

    def text(self, key: str, default: str | None = None, *, lines: bool = False) -> str | None:
        """A text that is not empty (unless the default is), of one line unless `lines`, without control characters."""
        value = self.data.get(key, default)
        if value is not None and (not isinstance(value, str) or (value == "" and default != "")):
            self.wrong(key, f"must be a text in quotes, not {shown_value(value)}")
            return default
        if value is not None and not (value.replace("\n", "").replace("\t", "") if lines else value).isprintable():
            self.wrong(key, f"holds characters that cannot be shown: {shown_value(value)}")
            return default
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            self.wrong(key, f"must be true or false, not {shown_value(value)}")
            return default
        return value

    def whole(self, key: str, default: int | None, low: int, high: int | None = None) -> int | None:
        value = self.data.get(key, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < low or (high is not None and value > high):
            upper = f" and at most {high}" if high is not None else ""
            self.wrong(key, f"must be a whole number of at least {low}{upper}, not {shown_value(value)}")
            return default
        return value

    def number(
        self, key: str, default: float | None, *, above: float | None = None, low: float = 0.0, below: float = math.inf
    ) -> float | None:
        """A finite number that is > `above` (or >= `low` without it) and < `below`."""
        value = self.data.get(key, default)
        if value is None:
            return None
        bound = f"above {above:g}" if above is not None else f"of at least {low:g}"
        if below < math.inf:
            bound += f" and below {below:g}"
        if not is_number(value) or value >= below or (value <= above if above is not None else value < low):
            self.wrong(key, f"must be a number {bound}, not {shown_value(value)}")
            return default
        return float(value)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.wrong(key, f"must be a list of texts, not {shown_value(value)}")
            return ()
        return tuple(value)

    def table(self, key: str, title: str) -> "Section":
        """The table under `key`, empty when it is absent or no table."""
        value = self.data.get(key, {})
        if not isinstance(value, dict):
            self.wrong(key, f"must be a table: a line {title}, and its keys below it")
            value = {}
        return Section(value, (*self.path, key), title, self._mistakes)

    def tables(self, key: str, title: str) -> list["Section"]:
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.wrong(key, f"must be written as {title}, once for each")
            return []
        return [Section(item, (*self.path, key, index), title, self._mistakes) for index, item in enumerate(value)]


def beside(folder: Path, path: str) -> Path:
    """`path` as an absolute one: from `folder` where it is relative, `~` as the person's home where there is one."""
    return (folder / os.path.expanduser(path)).resolve()


def exists(path: Path) -> bool:
    """Whether there is something at `path` that we can see; a name that no file can have is not there."""
    try:
        return path.exists()
    except OSError:
        return False


def is_number(value: object) -> TypeGuard[float]:
    """True for a finite int or float; bool is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def shown_value(value: object) -> str:
    """A value as it may stand in an error line: short, on one line, printable."""
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
