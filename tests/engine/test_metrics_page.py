"""Pages of /metrics: plain and odd lines, pages that are none, that break off, that are read again and again."""

import contextlib
import math
import random
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine.records import EngineError, ServerSample
from engine.scrape.metrics import parse_metrics
from engine.scrape.metrics_page import PageReader
from tests.engine.observed import H200, METRICS, file_id

AT, CLOCK = "2026-11-30T10:00:00.000Z", 12.5


def sample(text: str) -> ServerSample:
    return parse_metrics(text, AT, CLOCK)


def test_series_of_a_newer_vllm_are_named() -> None:
    found = sample('vllm:brand_new_total{engine="0"} 1.0\nvllm:num_requests_running{engine="0"} 1.0\nother 2.0\n')
    assert found.unknown == ("vllm:brand_new_total",)


def test_openmetrics_as_the_rust_front_end_writes_it() -> None:
    text = (
        "# TYPE vllm:prompt_tokens counter\n"
        'vllm:prompt_tokens_total{engine="0",model_name="m"} 7\n'
        "# TYPE vllm:num_requests_running gauge\n"
        'vllm:num_requests_running{engine="0",model_name="m"} 2\n'
        "# EOF\n"
    )
    assert (sample(text).prompt_tokens, sample(text).running) == (7.0, 2.0)
    exemplar = text.replace('"} 7\n', '"} 7 # {trace_id="x"} 0.5\n')
    assert (sample(exemplar).prompt_tokens, sample(exemplar).running) == (7.0, 2.0)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "\n\n",
        "<html><body>502 Bad Gateway</body></html>",
        '{"detail": "Not Found"}',
        "not found",
        "\x00\x01\x02",
        "# HELP only comments\n",
    ],
)
def test_what_is_no_metrics_page_is_said_so(body: str) -> None:
    with pytest.raises(EngineError, match="no metrics; is this the address of a vLLM server"):
        sample(body)


@pytest.mark.parametrize(
    "line",
    [
        'vllm:num_requests_running{a="b} 1',
        'vllm:num_requests_running{engine="0"',
        "vllm:num_requests_running{le=1} z",
        "vllm:num_requests_running one",
        "vllm:num_requests_running 1_0",
        'vllm:num_requests_running{="\x1b[31m"} 1',
        "vllm:",
    ],
)
def test_a_malformed_page_is_one_clear_line(line: str) -> None:
    with pytest.raises(EngineError, match=r"^The answer of /metrics cannot be read: [^\x1b\n]*$"):
        sample(f"vllm:num_requests_waiting 1.0\n{line}\n")


def test_a_malformed_line_of_what_is_not_read_costs_nothing() -> None:
    found = sample('vllm:num_requests_waiting 1.0\nvllm:brand_new{a="b} 1\nvllm:other one\n')
    assert (found.waiting, found.unknown) == (1.0, ("vllm:brand_new", "vllm:other"))


def test_a_page_that_is_cut_anywhere_gives_no_number_that_was_cut() -> None:
    text = (H200 / "metrics/kv-starved-load-03.txt").read_text()
    lines = [line for line in text.splitlines() if line.startswith(("vllm:num_", "vllm:kv", "vllm:generation"))]
    page = "\n".join(lines) + "\n"
    whole = sample(page)
    for end in range(len(page)):
        with contextlib.suppress(EngineError):
            cut = sample(page[:end])
            assert page[end - 1] == "\n"
            assert cut.generation_tokens in (None, whole.generation_tokens)
            assert cut.preemptions in (None, whole.preemptions)


def test_openmetrics_may_end_without_a_line_feed() -> None:
    assert sample("vllm:num_requests_running 2\n# EOF").running == 2.0
    with pytest.raises(EngineError, match=r"^The answer of /metrics breaks off before its end\.$"):
        sample("vllm:num_requests_running 2\nvllm:generation_tokens_total 1")


@pytest.mark.parametrize("path", METRICS, ids=file_id)
def test_a_kept_reader_reads_every_page_as_a_new_one_does(path: Path) -> None:
    kept = PageReader()
    for page in (path, *METRICS, path):
        text = page.read_text()
        assert parse_metrics(text, AT, CLOCK, kept) == sample(text)


@pytest.mark.parametrize("line", ["vllm:num_requests_running one", "vllm:num_requests_running 1_0"])
def test_a_kept_reader_refuses_what_a_new_one_refuses(line: str) -> None:
    kept = PageReader()
    assert parse_metrics("vllm:num_requests_running 1.0\n", AT, CLOCK, kept).running == 1.0
    with pytest.raises(EngineError, match="cannot be read"):
        parse_metrics(f"{line}\n", AT, CLOCK, kept)


def test_times_and_exemplars_after_a_number_are_read_anew_each_time() -> None:
    kept = PageReader()
    for value in (3, 4):
        timed = parse_metrics(f'vllm:num_requests_running{{engine="0"}} {value} 1796030665464\n', AT, CLOCK, kept)
        exemplar = f'vllm:prompt_tokens_total{{engine="0"}} {value} # {{trace_id="x"}} 0.5\n# EOF\n'
        assert timed.running == value
        assert parse_metrics(exemplar, AT, CLOCK, kept).prompt_tokens == value


def test_what_stands_there_twice_is_counted_once() -> None:
    line = 'vllm:generation_tokens_total{engine="0"} '
    assert sample(f"{line}5.0\n{line}7.0\n").generation_tokens == 7.0


def by_the_library(page: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(page):
        for one in family.samples:
            found.setdefault(one.name, []).append((one.labels, one.value))
    return found


@pytest.mark.parametrize("path", METRICS, ids=file_id)
def test_a_page_reads_as_prometheus_s_own_parser_reads_it(path: Path) -> None:
    text = path.read_text()
    page = PageReader().read(text)
    theirs = by_the_library("".join(line + "\n" for line in text.splitlines() if not line.startswith("#")))
    assert len(page.series) > 40
    for name, readings in page.series.items():
        assert [(dict(one.labels), one.value) for one in readings] == theirs[name]


@pytest.mark.parametrize("seed", range(500))
def test_any_line_reads_as_prometheus_s_own_parser_reads_it_or_is_refused_by_both(seed: int) -> None:
    dice = random.Random(seed)
    pieces = [
        '"',
        "\\",
        "n",
        "{",
        "}",
        ",",
        "=",
        " ",
        "#",
        "a",
        "é",
        "模",
        "\x1b[31m",
        "[/x]",
        "\t",
        "1",
        "_",
        "le",
        '="',
    ]
    value = "".join(dice.choice(pieces) for _ in range(dice.randrange(12)))
    if dice.random() < 0.6:
        value = value.replace("\\", "\\\\").replace('"', '\\"')
    label = dice.choice(["a", "model_name", "le", "_x", "__x", "__name__", "1a", "a b", ""])
    more = dice.choice(["", ",", ',b="c"', ' , b="c"', 'b="c"', f',{label}="d"'])
    number = dice.choice(["1", "1.5e3", "-2", "+3", "0x1", "1_0", "NaN", "one", "", "1 2", '1 # {x="y"} 2'])
    line = f'vllm:num_requests_running{{{label}="{value}"{more}}} {number}\n'
    try:
        theirs = by_the_library(line)
    except (ValueError, IndexError, KeyError):
        theirs = {}
    try:
        ours = PageReader().read("vllm:num_requests_waiting 1\n" + line).series.get("vllm:num_requests_running", ())
    except EngineError:
        ours = ()
    assert [(dict(one.labels), one.value) for one in ours] == [
        (labels, read) for labels, read in theirs.get("vllm:num_requests_running", []) if math.isfinite(read)
    ]


def test_the_pages_of_real_servers_need_no_library() -> None:
    program = (
        "import sys\nfrom engine.scrape.metrics import parse_metrics\n"
        "for path in sys.argv[1:]: assert parse_metrics(open(path).read(), '', 0.0).model_name\n"
        "assert not any(name.startswith('prometheus_client') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program, *map(str, METRICS)], check=True)
