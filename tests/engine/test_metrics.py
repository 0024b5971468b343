import math
import re
from pathlib import Path

import pytest

from engine.records import EngineSample, LoraUse, ServerSample
from engine.scrape.metric_names import KNOWN_SERIES
from engine.scrape.metrics import parse_metrics
from tests.engine.observed import CPU, H200, METRICS, file_id

AT, CLOCK = "2026-11-30T10:00:00.000Z", 12.5


def sample(text: str) -> ServerSample:
    return parse_metrics(text, AT, CLOCK)


def written(text: str, name: str, **labels: str) -> float:
    """The value as it stands in the file, found without any parser."""
    found = []
    for line in text.splitlines():
        if line.startswith(name + "{") and all(f'{key}="{value}"' in line for key, value in labels.items()):
            found.append(float(line.rsplit(" ", 1)[1]))
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("path", METRICS, ids=file_id)
def test_every_figure_of_a_real_scrape_is_the_one_written_there(path: Path) -> None:
    text = path.read_text()
    found = sample(text)
    assert (found.at, found.clock) == (AT, CLOCK)
    assert found.running == written(text, "vllm:num_requests_running")
    assert found.waiting == written(text, "vllm:num_requests_waiting")
    assert found.kv_perc == pytest.approx(100 * written(text, "vllm:kv_cache_usage_perc"))
    assert found.preemptions == written(text, "vllm:num_preemptions_total")
    assert found.prompt_tokens == written(text, "vllm:prompt_tokens_total")
    assert found.generation_tokens == written(text, "vllm:generation_tokens_total")
    assert found.prefix_queries == written(text, "vllm:prefix_cache_queries_total")
    assert found.prefix_hits == written(text, "vllm:prefix_cache_hits_total")
    assert found.waiting_by_reason == {
        reason: written(text, "vllm:num_requests_waiting_by_reason", reason=reason)
        for reason in ("capacity", "deferred")
    }
    assert found.requests_finished == {
        reason: written(text, "vllm:request_success_total", finished_reason=reason)
        for reason in ("stop", "length", "abort", "error", "repetition")
    }
    start = re.search(r"^process_start_time_seconds (\S+)$", text, re.MULTILINE)
    assert start is not None
    assert found.process_start == float(start[1])
    assert found.unknown == ()
    assert found.engines == (
        EngineSample(
            "0",
            found.running,
            found.waiting,
            found.kv_perc,
            found.preemptions,
            found.prompt_tokens,
            found.generation_tokens,
        ),
    )


@pytest.mark.parametrize("path", METRICS, ids=file_id)
def test_totals_that_only_some_panels_show_are_those_written_there(path: Path) -> None:
    text = path.read_text()
    found = sample(text)
    wire = {
        "prompt_tokens_cached": "prompt_tokens_cached",
        "external_prefix_queries": "external_prefix_cache_queries",
        "external_prefix_hits": "external_prefix_cache_hits",
        "mm_queries": "mm_cache_queries",
        "mm_hits": "mm_cache_hits",
    }
    assert found.counters == {key: written(text, f"vllm:{name}_total") for key, name in wire.items()}
    assert found.prompt_by_source == {
        source: written(text, "vllm:prompt_tokens_by_source_total", source=source)
        for source in ("local_compute", "local_cache_hit", "external_kv_transfer")
    }
    assert sum(found.prompt_by_source.values()) == found.prompt_tokens
    assert found.sleep_state == "awake"
    reasons = ("max_num_queued_reqs", "max_num_queued_tokens") if "cpu" in file_id(path) else ()  # 0.32 on
    assert found.rejections == {
        reason: written(text, "vllm:admission_rejections_total", reason=reason) for reason in reasons
    }
    assert found.spec_accepted_by_position == {}  # no real server of ours speculated
    assert (found.lora is not None) == ("lora" in path.stem)


@pytest.mark.parametrize("path", METRICS, ids=file_id)
def test_histograms_of_a_real_scrape(path: Path) -> None:
    text = path.read_text()
    found = sample(text).histograms
    wire = {
        "ttft": "time_to_first_token_seconds",
        "itl": "inter_token_latency_seconds",
        "tpot": "request_time_per_output_token_seconds",
        "e2el": "e2e_request_latency_seconds",
        "queue": "request_queue_time_seconds",
        "prefill": "request_prefill_time_seconds",
        "decode": "request_decode_time_seconds",
        "prompt_length": "request_prompt_tokens",
        "output_length": "request_generation_tokens",
        "step_tokens": "iteration_tokens_total",
    }
    assert found.keys() == wire.keys()
    for key, name in wire.items():
        histogram = found[key]
        assert histogram.sum == written(text, f"vllm:{name}_sum")
        assert histogram.count == written(text, f"vllm:{name}_count")
        assert histogram.buckets[-1] == (math.inf, histogram.count)
        assert [le for le, _ in histogram.buckets] == sorted(le for le, _ in histogram.buckets)
    assert found["itl"].buckets[0][0] == 0.01
    assert found["ttft"].buckets[0][0] == 0.001


def test_numbers_of_a_starved_server() -> None:
    found = sample((H200 / "metrics/kv-starved-end.txt").read_text())
    assert (found.preemptions, found.generation_tokens, found.prompt_tokens) == (84.0, 100000.0, 195389.0)
    assert (found.kv_cache_tokens, found.num_gpu_blocks, found.block_size) == (34496.0, 2156.0, 16.0)
    assert (found.gpu_memory_utilization, found.model_name) == (0.125, "m")
    busy = sample((H200 / "metrics/kv-starved-load-03.txt").read_text())
    assert (busy.running, busy.waiting, busy.waiting_by_reason["capacity"]) == (31.0, 169.0, 169.0)
    assert busy.kv_perc == pytest.approx(99.0255)


def test_numbers_of_a_cpu_server() -> None:
    found = sample((CPU / "metrics/after-load.txt").read_text())
    assert (found.kv_cache_tokens, found.num_gpu_blocks, found.block_size) == (93184.0, 728.0, 128.0)
    assert found.requests_finished["length"] == 40.0
    assert found.model_name == "smollm2"


def test_of_the_adapters_label_sets_the_newest_holds() -> None:
    text = (H200 / "metrics/lora-after-load.txt").read_text()
    assert sample(text).lora == LoraUse(most=1.0)  # the newest is the empty one: the load has ended
    under_load = text.replace("1.796030665464933e+09", "1.796030668e+09")
    assert sample(under_load).lora == LoraUse(1.0, ("inc",), ("inc",))


@pytest.mark.parametrize(
    ("most", "running", "expected"),
    [
        ("4", "a, b,,c [/x]", LoraUse(4.0, ("a", "b", "c [/x]"))),
        ("None", "", LoraUse()),
        ("inf", "\x1b[31mred", LoraUse(None, ("red",))),
    ],
)
def test_adapters_of_any_name(most: str, running: str, expected: LoraUse) -> None:
    labels = f'max_lora="{most}",running_lora_adapters="{running}",waiting_lora_adapters=""'
    assert sample(f"vllm:lora_requests_info{{{labels}}} 1.79e+09\n").lora == expected


SPECULATING = """\
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 10.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="m"} 5.0
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 30.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 12.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 7.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",model_name="m",position="0"} 2.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"} 3.0
"""


def test_speculation_is_counted_over_all_engines() -> None:
    found = sample(SPECULATING)
    assert found.counters == {"spec_drafts": 15.0, "spec_draft_tokens": 30.0, "spec_accepted_tokens": 12.0}
    assert found.spec_accepted_by_position == {"0": 9.0, "1": 3.0}
    assert found.unknown == ()


def test_the_state_of_sleep_is_the_one_that_holds() -> None:
    states = 'vllm:engine_sleep_state{{engine="0",sleep_state="{}"}} {}\n'
    assert sample(states.format("awake", 0.0) + states.format("discard_all", 1.0)).sleep_state == "discard_all"
    assert sample(states.format("awake", 0.0)).sleep_state is None


V0_10 = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.25
# TYPE vllm:gpu_prefix_cache_queries_total counter
vllm:gpu_prefix_cache_queries_total{engine="0",model_name="m"} 100.0
# TYPE vllm:gpu_prefix_cache_hits_total counter
vllm:gpu_prefix_cache_hits_total{engine="0",model_name="m"} 40.0
# TYPE vllm:time_per_output_token_seconds histogram
vllm:time_per_output_token_seconds_bucket{engine="0",le="0.01",model_name="m"} 1.0
vllm:time_per_output_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 2.0
vllm:time_per_output_token_seconds_count{engine="0",model_name="m"} 2.0
vllm:time_per_output_token_seconds_sum{engine="0",model_name="m"} 0.05
"""


def test_old_names_are_read_where_there_are_no_new_ones() -> None:
    found = sample(V0_10)
    assert (found.kv_perc, found.prefix_queries, found.prefix_hits) == (25.0, 100.0, 40.0)
    assert found.histograms["itl"].buckets == ((0.01, 1.0), (math.inf, 2.0))
    assert "tpot" not in found.histograms
    assert found.unknown == ()


def test_new_names_win_over_old_ones() -> None:
    assert sample(V0_10 + 'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5\n').kv_perc == 50.0


def test_what_is_absent_is_none_and_never_zero() -> None:
    found = sample('vllm:num_requests_running{engine="0",model_name="m"} 3.0\n')
    assert found == ServerSample(
        at=AT, clock=CLOCK, model_name="m", running=3.0, engines=(EngineSample("0", running=3.0),)
    )


def test_a_server_without_statistics_is_a_sample_of_nothing() -> None:
    found = sample("process_start_time_seconds 1.79e+09\nhttp_requests_total 5.0\n")
    assert found == ServerSample(at=AT, clock=CLOCK, process_start=1.79e9)


TWO_ENGINES = """\
vllm:num_requests_running{engine="1",model_name="m"} 3.0
vllm:num_requests_running{engine="0",model_name="m"} 2.0
vllm:num_requests_running{engine="10",model_name="m"} 1.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:generation_tokens_total{engine="0",model_name="m"} 10.0
vllm:generation_tokens_total{engine="1",model_name="m"} 20.0
vllm:request_queue_time_seconds_bucket{engine="0",le="0.3",model_name="m"} 1.0
vllm:request_queue_time_seconds_bucket{engine="1",le="0.3",model_name="m"} 2.0
vllm:request_queue_time_seconds_bucket{engine="0",le="+Inf",model_name="m"} 3.0
vllm:request_queue_time_seconds_bucket{engine="1",le="+Inf",model_name="m"} 4.0
vllm:request_queue_time_seconds_sum{engine="0",model_name="m"} 1.5
vllm:request_queue_time_seconds_sum{engine="1",model_name="m"} 2.5
vllm:request_queue_time_seconds_count{engine="0",model_name="m"} 3.0
vllm:request_queue_time_seconds_count{engine="1",model_name="m"} 4.0
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="100",kv_cache_size_tokens="1600"} 1.0
vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="90",kv_cache_size_tokens="None"} 1.0
"""


def test_counts_of_several_engines_are_added_and_shares_are_not() -> None:
    found = sample(TWO_ENGINES)
    assert (found.running, found.generation_tokens, found.kv_perc) == (6.0, 30.0, 75.0)
    assert (found.num_gpu_blocks, found.block_size, found.kv_cache_tokens) == (190.0, 16.0, 1600.0)
    assert found.histograms["queue"].buckets == ((0.3, 3.0), (math.inf, 7.0))
    assert (found.histograms["queue"].sum, found.histograms["queue"].count) == (4.0, 7.0)
    assert found.engines == (
        EngineSample("0", running=2.0, kv_perc=50.0, generation_tokens=10.0),
        EngineSample("1", running=3.0, kv_perc=75.0, generation_tokens=20.0),
        EngineSample("10", running=1.0),
    )


def test_a_histogram_whose_name_ends_like_a_counter_s_is_no_counter() -> None:
    text = (
        "# TYPE vllm:iteration_tokens_total histogram\n"
        'vllm:iteration_tokens_total_bucket{engine="0",le="+Inf",model_name="m"} 4013.0\n'
        'vllm:iteration_tokens_total_count{engine="0",model_name="m"} 4013.0\n'
        'vllm:iteration_tokens_total_sum{engine="0",model_name="m"} 295389.0\n'
    )
    found = sample(text)
    assert found.unknown == ()
    assert (found.histograms["step_tokens"].sum, found.histograms["step_tokens"].count) == (295389.0, 4013.0)
    assert "vllm:iteration_tokens_total_bucket" in KNOWN_SERIES
    assert "vllm:iteration_tokens_total" not in KNOWN_SERIES


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e999"])
def test_numbers_that_are_not_finite_are_left_out(value: str) -> None:
    text = (
        f'vllm:num_requests_running{{engine="0",model_name="m"}} {value}\n'
        f'vllm:generation_tokens_total{{engine="0",model_name="m"}} {value}\n'
        f'vllm:cache_config_info{{engine="0",gpu_memory_utilization="{value}"}} 1.0\n'
    )
    found = sample(text)
    assert (found.running, found.generation_tokens, found.gpu_memory_utilization) == (None, None, None)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ('/models/my model [/bold] {x}, y=\\"z\\"', '/models/my model [/bold] {x}, y="z"'),
        ("a\\nb\\\\c", "a b\\c"),
        ("\u202eevil\x1b[31m", "evil"),
        ("line\u2028separator", "line separator"),
    ],
)
def test_model_names_of_any_kind(label: str, name: str) -> None:
    found = sample(f'vllm:num_requests_running{{engine="0",model_name="{label}"}} 3.0\n')
    assert (found.model_name, found.running) == (name, 3.0)


def test_a_page_of_endless_names_makes_a_sample_of_ordinary_size() -> None:
    long = "x" * 10_000
    page = f'vllm:num_requests_running{{model_name="{long}"}} 1\nvllm:{long} 1\n'
    for number in range(3000):
        page += f'vllm:request_success_total{{engine="{number}",finished_reason="{number}"}} 1\n'
        page += f'vllm:generation_tokens_total{{engine="{number}"}} 1\nvllm:brand_new_{number} 1\n'
    page += f'vllm:lora_requests_info{{running_lora_adapters="{",".join(map(str, range(3000)))}"}} 1\n'
    found = sample(page)
    assert (sum(found.requests_finished.values()), len(found.requests_finished)) == (3000.0, 257)
    assert found.generation_tokens == 3000.0
    assert found.lora is not None
    assert len(found.lora.running) == 256
    assert len(repr(found)) < 50_000


def test_absurd_numbers_neither_break_nor_become_infinite() -> None:
    huge = "1" + "0" * 400
    two = "".join(f'vllm:generation_tokens_total{{engine="{engine}"}} 1e308\n' for engine in range(3))
    found = sample(f"vllm:num_requests_running {huge}\nvllm:num_requests_waiting 1e300\n{two}")
    assert (found.running, found.waiting, found.generation_tokens) == (None, 1e300, None)
    assert found.engines[0].generation_tokens == 1e308


@pytest.mark.parametrize(
    ("share", "perc"), [("0", 0.0), ("1", 100.0), ("1.0000001", 100.0), ("-0.1", None), ("57", None), ("1e308", None)]
)
def test_a_share_that_is_none_is_left_out(share: str, perc: float | None) -> None:
    found = sample(f'vllm:num_requests_running{{engine="0"}} 1\nvllm:kv_cache_usage_perc{{engine="0"}} {share}\n')
    assert (found.kv_perc, found.engines[0].kv_perc) == (perc, perc)
