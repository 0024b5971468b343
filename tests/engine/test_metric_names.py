"""The table of names, held against itself and against the vLLM that is installed."""

import re
import subprocess
from pathlib import Path

import pytest

from engine.records import Installation
from engine.scrape import metric_names as names
from engine.scrape.metric_names import KNOWN_SERIES, LATENCIES, READ_SERIES, is_known


def test_all_that_is_read_is_known() -> None:
    assert {name for name in READ_SERIES if not is_known(name)} == {names.PROCESS_START}
    assert set(LATENCIES) < names.HISTOGRAMS.keys()


def test_no_wire_name_has_two_meanings() -> None:
    wire = [name for group in (*names.HISTOGRAMS.values(), *names.COUNTERS.values()) for name in group]
    assert len(set(wire)) == len(wire)


@pytest.mark.parametrize("name", ["vllm:nixl_xfer_time_seconds_bucket", "vllm:hisparse_cache_hits_total"])
def test_optional_parts_are_known_and_not_read(name: str) -> None:
    assert is_known(name)
    assert name not in READ_SERIES


@pytest.mark.parametrize("name", ["vllm:brand_new_total", "vllm:num_requests", "vllm:iteration_tokens_total"])
def test_no_name_is_known_by_a_part_of_it(name: str) -> None:
    assert not is_known(name)


@pytest.mark.vllm
def test_every_series_of_the_installed_vllm_is_known(installation: Installation) -> None:
    program = "import importlib.util as u; print(u.find_spec('vllm').submodule_search_locations[0])"
    asked = subprocess.run([installation.python, "-c", program], check=True, capture_output=True, text=True)
    folder = Path(asked.stdout.splitlines()[-1])
    written = [path.read_text(errors="replace") for path in folder.glob("v1/metrics/loggers.py")]
    written += [path.read_text(errors="replace") for path in folder.glob("entrypoints/**/metrics.py")]
    found = {name for text in written for name in re.findall(r'name="(vllm:\w+)"', text)}
    assert len(found) > 25
    assert {name for name in found if not any(is_known(name + end) for end in ("", "_total", "_bucket"))} == set()
    assert "vllm:num_requests_running" in KNOWN_SERIES
