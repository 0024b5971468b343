"""The parts of the benchmark that need no process: lines, errors, and the figures about the client."""

import ast
import json
import sys
from pathlib import Path

import pytest

from engine.bench.command import bench_command
from engine.bench.group import past_proxies
from engine.bench.loaded import SCRIPT
from engine.bench.outcome import distinct_errors, no_success, printed_errors
from engine.bench.protocol import finite, read_answer, read_ready, request_line
from engine.bench.standalone.llmtune_bench_process import Benchmark, LoadWatch, NotUsable, percentile
from engine.records import BenchFailed, BenchOutcome, BenchRequest, Installation

TRACEBACK = """Traceback (most recent call last):
  File "endpoint_request_func.py", line 176, in async_request_openai_completions
    async with session.post(url=api_url) as response:

aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host 127.0.0.1:8000 ssl:True [Connect call failed]
"""
CANNOT_CONNECT = TRACEBACK.splitlines()[-1]


def outcome(errors: tuple[str, ...] = (), **result: object) -> BenchOutcome:
    return BenchOutcome(result=result, wall_s=1.0, started_at="", finished_at="", errors=errors)


def test_request_is_one_line_whatever_it_holds() -> None:
    line = request_line(3, ("--label", "two\nlines", "ü"))
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"id": 3, "argv": ["--label", "two\nlines", "ü"]}


def test_ready_and_not() -> None:
    assert read_ready(b'{"ready": true, "vllm": "0.32.0"}\n').why is None
    assert read_ready(b'{"ready": false, "why": "no main_async"}\n').why == "no main_async"


@pytest.mark.parametrize("line", [b"INFO 11-30 printed\n", b"[]\n", b'{"other": 1}\n', b"", b"\xff\n"])
def test_a_line_that_is_no_answer(line: bytes) -> None:
    with pytest.raises(BenchFailed):
        read_answer(line)
    with pytest.raises(BenchFailed):
        read_ready(line)


def test_nan_and_infinity_become_none_at_any_depth() -> None:
    answer = read_answer(
        b'{"id": 1, "result": {"a": NaN, "b": [Infinity, 1.5], "c": {"d": -Infinity}, "request_rate": "inf"}}'
    )
    assert answer.result == {"a": None, "b": [None, 1.5], "c": {"d": None}, "request_rate": "inf"}
    assert finite(True) is True


def test_errors_are_told_once_each_and_by_their_last_line() -> None:
    assert distinct_errors([TRACEBACK, "Not Found", TRACEBACK, "", "Not Found"]) == (CANNOT_CONNECT, "Not Found")
    assert len(distinct_errors(str(number) for number in range(99))) == 5
    assert distinct_errors(["\x1b[31mBad\x1b[0m\nRequest" + "x" * 999])[0].startswith("Bad Requestxxx")
    assert len(distinct_errors(["x" * 999])[0]) == 300


def test_errors_of_the_command_are_read_from_what_it_prints() -> None:
    output = (
        "Failed requests during benchmark run detected (capping to 10):\n"
        f"Error 0: {TRACEBACK}\nError 1: {TRACEBACK}\nError 2: Not Found\n"
        "============ Serving Benchmark Result ============\nSuccessful requests:  0\n"
    )
    assert printed_errors(output) == (CANNOT_CONNECT, "Not Found")
    assert printed_errors("Error 0: in some other place") == ()


def test_no_success() -> None:
    assert no_success(outcome(completed=3, num_prompts=4)) is None
    assert no_success(outcome(("Not Found",), completed=0, num_prompts=4)) == "none of 4 requests succeeded: Not Found"
    assert str(no_success(outcome())).startswith("no request succeeded: see whether the server still runs")


def test_command_line_has_the_last_word_on_where_the_result_goes() -> None:
    installation = Installation("", "python", ("python", "-m", "vllm"), "", "0.10.0")
    argv = bench_command(installation, BenchRequest(("--result-dir", "/elsewhere"), 1), Path("/tmp/x"))
    assert argv[:5] == ["python", "-m", "vllm", "bench", "serve"]
    assert argv[-4:] == ["--result-dir", "/tmp/x", "--result-filename", "result.json"]


@pytest.mark.parametrize(
    ("environ", "listed"),
    [
        ({}, "127.0.0.1,localhost,::1"),
        ({"NO_PROXY": "corp"}, "corp,127.0.0.1,localhost,::1"),
        ({"NO_PROXY": "corp", "no_proxy": "*"}, "*"),
    ],
)
def test_no_proxy_stands_between_us_and_a_local_server(environ: dict[str, str], listed: str) -> None:
    assert past_proxies(environ) == {"no_proxy": listed}


def watch(*ticks: float, step_s: float = LoadWatch.STEP_S) -> LoadWatch:
    """A watch whose load begins at once, its timer woken at `ticks` seconds after that, 10 % CPU used."""
    result = LoadWatch()
    result.load_begins()
    result._began = result._began_cpu = 0.0
    result._next = step_s
    for now in ticks:
        result.catch_up(now, 0.1 * now)
    return result


def test_lag_of_an_idle_client() -> None:
    figures = watch(*(0.01 * i + 0.001 for i in range(1, 101))).figures(1.0)
    assert figures["client_lag_p99_ms"] == pytest.approx(1.0)
    assert figures["client_cpu_perc"] == pytest.approx(10.0)


def test_one_stall_counts_with_all_the_ticks_that_fell_into_it() -> None:
    """Half a second of a second: the lag at a random moment is above 490 ms in 1 % of it, not in one tick of fifty."""
    figures = watch(*(0.01 * i for i in range(1, 50)), 1.0001).figures(1.0)
    assert figures["client_lag_p99_ms"] == pytest.approx(490, abs=15)


def test_what_follows_the_load_does_not_count() -> None:
    ticks = [0.01 * i + 1e-6 for i in range(1, 101)]
    assert watch(*ticks, 6.0).figures(1.0)["client_lag_p99_ms"] == pytest.approx(0, abs=0.01)


def test_without_a_load_or_ticks_there_are_no_figures() -> None:
    nothing = {"client_lag_p99_ms": None, "client_cpu_perc": None}
    assert LoadWatch().figures(1.0) == nothing
    assert watch().figures(1.0) == nothing


def test_percentile_is_numpys() -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], 50) == 2.5
    assert percentile([7.0], 99) == 7.0
    assert percentile([float(i) for i in range(101)], 99) == 99.0


def test_benchmark_without_main_async_is_not_usable() -> None:
    with pytest.raises(NotUsable, match="main_async"):
        Benchmark(object())


def test_the_script_is_python_3_9_and_imports_the_standard_library_alone() -> None:
    """It runs in the Python of vLLM, whichever that is."""
    tree = ast.parse(SCRIPT.read_text(), feature_version=(3, 9))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names
