"""What the folders of `vllm bench sweep` say of a result.

The layouts, from vllm/benchmarks/sweep/serve.py, serve_workload.py and serve_sla.py:

    EXPERIMENT/SERVE--<serve>-BENCH--<bench>/run=<n>.json, summary.json       0.11.1 on; EXPERIMENT is a timestamp
    EXPERIMENT/run=<n>.json                                                   where nothing was varied
    …/<request_rate|max_concurrency>=<value>/run=<n>.json, …/SLA--<sla>.json  serve_sla, 0.11.1 to 0.15
    …-WL--<max_concurrency|request_rate>=<value>/run=<n>.json                 serve_workload, later (seen in 0.32)
    …/warmup.json, run=<n>.failure.json, SERVE--<serve>-failure.json          not yet in 0.15 (seen in 0.32)

<serve> and <bench> are `key=value-key=value`, or the `_benchmark_name` of the combination; `/` in them became `_`.
Beside their own keys the results hold `run_number` and the values of both combinations, flat. summary.json and
SLA--….json repeat the runs. A <serve> has one server in an experiment (after `--resume`, another), and the caches are
reset after each run.
"""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from tuning.imported.records import Place

_COMBINATION = re.compile(r"(?:SERVE--(?P<serve>.*?))?(?:-?BENCH--(?P<bench>.*?))?(?:-?WL--(?P<load>.*))?")
_RUN = re.compile(r"run=(\d+)")
_SEARCHED = re.compile(r"(?:request_rate|max_concurrency)=[\d.]+")


def folder_of(path: str) -> str:
    """The folder of results that were measured together: of a sweep that of the whole, else the file's own."""
    folder = PurePath(path).parent
    if _SEARCHED.fullmatch(folder.name):
        folder = folder.parent
    match = _COMBINATION.fullmatch(folder.name)
    return str(folder.parent if match and folder.name and any(match.groups()) else folder)


def place_of(path: str, number: int, of: int, raw: Mapping[str, Any]) -> Place:
    """The place of result `raw`, the one of `number` (from 0) among `of` in the file at `path`."""
    pure = PurePath(path)
    stem = pure.stem
    named = _RUN.fullmatch(stem) is not None or stem in ("summary", "warmup") or stem.startswith("SLA--")
    if not ("run_number" in raw and named):
        return Place(path, number, of)
    warmup = stem == "warmup" or raw["run_number"] == -1
    folder = pure.parent
    searched = ""
    if _SEARCHED.fullmatch(folder.name):
        searched, folder = folder.name, folder.parent
    serve, bench, experiment = "", "", str(folder)
    match = _COMBINATION.fullmatch(folder.name)
    if match and folder.name and any(match.groups()):
        serve, bench = match["serve"] or "", " ".join(part for part in (match["bench"], match["load"]) if part)
        experiment = str(folder.parent)
    bench = " ".join(part for part in (bench, searched) if part)
    return Place(path, number, of, experiment, serve, bench, warmup)
