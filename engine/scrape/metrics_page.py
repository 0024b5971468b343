"""A page of /metrics as series by exact name.

A server writes the same series under the same labels look after look; only the numbers change. The part of a line
before its number is therefore kept with what it means, and of the next page only the numbers are read. Plain lines,
which are all that vLLM writes, are read by one expression; any other is left to prometheus_client, whose 3 MiB are
loaded for that alone. Formats: https://prometheus.io/docs/instrumenting/exposition_formats and OpenMetrics 1.0.
"""

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from engine.records import EngineError
from engine.scrape import metric_names as names
from engine.text import clean

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

_OURS = ("vllm:", names.PROCESS_START)
_NAME = re.compile(r"[A-Za-z_:][\w:]*")
_SERIES_LINE = re.compile(r"^[A-Za-z_:][\w:]*(?:\{.*\})? +[-+0-9NI]", re.MULTILINE)
_LABEL = re.compile(r'((?!__)[A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"')
_PLAIN_HEAD = re.compile(
    rf"[A-Za-z_:][A-Za-z0-9_:]*(?:\{{(?P<labels>(?:{_LABEL.pattern}(?:,{_LABEL.pattern})*,?)?)\}})?"
)
_ESCAPED = re.compile(r'\\([\\n"])')
_NO_METRICS = "The answer of /metrics holds no metrics; is this the address of a vLLM server?"
_BROKEN_OFF = "The answer of /metrics breaks off before its end."


class Reading(NamedTuple):
    """One line of a page; the value is finite."""

    labels: Mapping[str, str]
    value: float


class Page(NamedTuple):
    """What a page holds of the series that we read, and the names of the `vllm:` series that no table of ours has."""

    series: Mapping[str, tuple[Reading, ...]]
    unknown: tuple[str, ...]


class PageReader:
    """Reads the pages of one server."""

    def __init__(self) -> None:
        # What stands before the number → name and labels; labels are None where the series is not read. Only what the
        # newest page had is kept, so no server can make it grow.
        self._heads: dict[str, tuple[str, Mapping[str, str] | None]] = {}

    def read(self, text: str) -> Page:
        """Samples that are not finite are left out; of one series that stands there twice the last holds.

        Raises EngineError for what is no metrics page, one that broke off, and a malformed line of what we read.
        """
        if not text.endswith(("\n", "# EOF")):  # each line ends with a line feed, also the last
            raise EngineError(_BROKEN_OFF if _SERIES_LINE.search(text) else _NO_METRICS)
        heads: dict[str, tuple[str, Mapping[str, str] | None]] = {}
        found: dict[str, dict[str, Reading]] = {}
        fresh: list[str] = []
        for line in text.split("\n"):
            if not line.startswith(_OURS):
                continue
            head, _, value = line.rpartition(" ")
            known = self._heads.get(head)
            number = _number(value)
            if known is None or number is None:
                fresh.append(line)
                continue
            heads[head] = known
            name, labels = known
            if labels is not None and math.isfinite(number):
                found.setdefault(name, {})[head] = Reading(labels, number)
        self._parse(fresh, heads, found)
        if not heads and not found and not _SERIES_LINE.search(text):
            raise EngineError(_NO_METRICS)
        self._heads = heads
        unread = {name for name, labels in heads.values() if labels is None}
        return Page(
            {name: tuple(readings.values()) for name, readings in found.items()},
            tuple(sorted(name for name in unread if name.startswith("vllm:") and not names.is_known(name))),
        )

    def _parse(
        self,
        lines: list[str],
        heads: dict[str, tuple[str, Mapping[str, str] | None]],
        found: dict[str, dict[str, Reading]],
    ) -> None:
        """What was not in the page before. A name that we do not read is noted, without a look at its labels."""
        odd: list[str] = []
        for line in lines:
            name = _NAME.match(line)
            head, _, value = line.rpartition(" ")
            if name is not None and head and name[0] not in names.READ_SERIES:
                heads[head] = (name[0], None)
                continue
            number, labels = _number(value), _plain_labels(head)
            if name is None or number is None or labels is None:
                odd.append(line)
                continue
            heads[head] = (name[0], labels)
            if math.isfinite(number):
                found.setdefault(name[0], {})[head] = Reading(labels, number)
        for line, sample in zip(odd, _samples(odd) if odd else (), strict=True):
            number = _as_float(sample.value)
            if math.isfinite(number):
                found.setdefault(sample.name, {})[line.rpartition(" ")[0]] = Reading(sample.labels, number)


def _plain_labels(head: str) -> dict[str, str] | None:
    """The labels of what stands before a number; None where that is not the plain form, a name and labels in braces."""
    plain = _PLAIN_HEAD.fullmatch(head)
    if plain is None:
        return None
    pairs = _LABEL.findall(plain["labels"] or "")
    labels = {name: _ESCAPED.sub(_unescaped, value) if "\\" in value else value for name, value in pairs}
    return labels if len(labels) == len(pairs) else None


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]


def _number(text: str) -> float | None:
    """None for what is no number; `1_000`, which only Python takes for one, is none."""
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None


def _as_float(value: float) -> float:
    try:
        return float(value)  # the parser makes whole numbers of any length
    except OverflowError:
        return math.inf


def _samples(lines: list[str]) -> "list[Sample]":
    """One for each line. Without the comments of the page each series stands under its own name, and no type changes
    how it is read."""
    from prometheus_client.openmetrics import parser as openmetrics
    from prometheus_client.parser import text_string_to_metric_families

    text = "\n".join([*lines, ""])
    try:
        return [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    except (ValueError, IndexError, KeyError) as error:
        broken = str(error)
    try:  # exemplars, which only OpenMetrics has (vLLM's Rust front end)
        families = openmetrics.text_string_to_metric_families(text + "# EOF\n")  # type: ignore[no-untyped-call]
        return [sample for family in families for sample in family.samples]
    except (ValueError, IndexError, KeyError):
        raise EngineError(f"The answer of /metrics cannot be read: {clean(broken, 120)}") from None
