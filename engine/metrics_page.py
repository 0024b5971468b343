"""A page of /metrics as series by exact name: prometheus_client parses, and what it parsed is not parsed again.

A server writes the same series under the same labels look after look; only the numbers change. The part of a line
before its number is therefore kept with what the parser made of it, and of the next page only the numbers are read.
Formats: https://prometheus.io/docs/instrumenting/exposition_formats and OpenMetrics 1.0.
"""

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from engine import metric_names as names
from engine.records import EngineError
from engine.text import clean

_OURS = ("vllm:", names.PROCESS_START)
_NAME = re.compile(r"[A-Za-z_:][\w:]*")
_SERIES_LINE = re.compile(r"^[A-Za-z_:][\w:]*(?:\{.*\})? +[-+0-9NI]", re.MULTILINE)
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
            tuple(sorted(name for name in unread - names.KNOWN_SERIES if name.startswith("vllm:"))),
        )

    def _parse(
        self,
        lines: list[str],
        heads: dict[str, tuple[str, Mapping[str, str] | None]],
        found: dict[str, dict[str, Reading]],
    ) -> None:
        """What was not in the page before. A name that we do not read is noted, without a look at its labels."""
        read: list[str] = []
        for line in lines:
            name = _NAME.match(line)
            if name is None or " " not in line or name[0] in names.READ_SERIES:
                read.append(line)
            else:
                heads[line.rpartition(" ")[0]] = (name[0], None)
        for line, sample in zip(read, _samples(read), strict=True):
            head, _, value = line.rpartition(" ")
            number = _as_float(sample.value)
            if math.isfinite(number):
                found.setdefault(sample.name, {})[head] = Reading(sample.labels, number)
            # Not where a time or an exemplar stands at the end: what is before that is another text the next time.
            if sample.timestamp is None and sample.exemplar is None and _number(value) == number:
                heads[head] = (sample.name, sample.labels)


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


def _samples(lines: list[str]) -> list[Sample]:
    """One for each line. Without the comments of the page each series stands under its own name, and no type changes
    how it is read."""
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
