"""What limits a server: each class, what looks like it, and that the sentence does not flicker."""

import json
import random
from itertools import pairwise
from typing import Any

import pytest

from engine.gpus.gpu_fields import THROTTLE_REASONS
from engine.limiting.bottleneck import Limit, what_limits
from engine.limiting.knobs import Knob, Knobs, knobs_of_flags
from engine.limiting.load_readings import HEAT_REASONS, POWER_REASONS
from engine.records import GpuReading
from engine.samples.sample_record import to_record
from engine.samples.window import Window
from engine.scrape.metrics import parse_metrics
from store.records import SampleRecord
from tests.engine.limit_series import (
    KNOBS,
    UNKNOWN,
    gpu,
    growing_steps,
    joined,
    live,
    sample,
    series,
    steady,
    steps,
)
from tests.engine.observed import CPU, H200

STARVED = sorted(H200.glob("metrics/kv-starved-load-*.txt"))
TWO_LINES = 160


def said(samples: list[SampleRecord] | Window, knobs: Knobs = KNOBS, before: Limit | None = None) -> Limit:
    limit = what_limits(samples, knobs, before)
    assert limit is not None
    assert len(limit.text) <= TWO_LINES
    return limit


def real(pages: list[Any], every: float) -> list[SampleRecord]:
    return [
        to_record(parse_metrics(page.read_text(), sample(every * at).at, every * at), GpuReading("", 0.0))
        for at, page in enumerate(pages)
    ]


def test_a_real_server_with_a_starved_cache_is_kv_bound() -> None:
    samples = real(STARVED, 3.0)
    limit = said(live(samples), knobs_of_flags({"max-num-seqs": 1024}, samples[-1]))
    assert limit.kind == "kv"
    assert limit.text == (
        "KV-bound: KV above 95 % for the last 12 s, 19 preemptions, about 158 waiting. "
        "Raise gpu-memory-utilization (now 0.125); max-num-seqs cannot help."
    )
    assert said(samples, knobs_of_flags(None, samples[-1])).kind == "kv"


@pytest.mark.parametrize(
    ("run", "flags", "kind"),
    [
        ("eager-64-clients.json", {"enforce-eager": True, "max-num-seqs": 1024}, "host"),
        ("seqs-32-64-clients.json", {"enforce-eager": True, "max-num-seqs": 32}, "sequences"),
    ],
)
def test_a_real_run_on_an_h200(run: str, flags: dict[str, Any], kind: str) -> None:
    samples = [SampleRecord(**row) for row in json.loads((H200 / "samples" / run).read_text())]
    limit = said(samples, knobs_of_flags(flags, samples[-1], version="0.25.1"))
    assert limit.kind == kind
    # Without the flag the plateau tells the same of the queue.
    assert kind == "host" or said(samples, UNKNOWN).kind in ("unknown", "sequences")


@pytest.mark.parametrize("page", [H200 / "metrics/idle-after-load.txt", CPU / "metrics/idle.txt"])
def test_a_real_server_without_requests_is_idle(page: Any) -> None:
    assert said(live(real([page] * 6, 1.0))).text == "Idle: no request for the last 5 s."


def test_kv_bound_by_its_gauge_and_by_preemptions() -> None:
    full = said(live(series(60, lambda at: {"running": 184, "waiting": 16, "kv": 97, "preemptions": at // 4})))
    assert (full.kind, full.evidence["kv_full_s"], full.evidence["preemptions"]) == ("kv", 60, 15)
    # A preemption frees the blocks of a whole request: the gauge then stands well below.
    freed = said(live(series(60, lambda at: {"running": 20, "waiting": 16, "kv": 70, "preemptions": at})))
    assert freed.text.startswith("KV-bound: no room in KV (70 %) for the last 60 s, 60 preemptions")


def test_kv_bound_where_no_prompt_fits_although_a_share_of_the_cache_is_free() -> None:
    def prompts(at: int) -> dict[str, Any]:
        return {"prompt_length": {"sum": 8000.0 * at, "count": at, "corners": [[5000, 0], [10000, at], [None, at]]}}

    def shown(at: int) -> dict[str, Any]:
        return {"running": 4, "waiting": 9, "kv": 85, "kv_cache_tokens": 40000.0, "histograms": prompts(at)}

    assert said(live(series(60, shown))).kind == "kv"  # 6,000 tokens are free, a prompt has 8,000


def test_kv_bound_where_use_swings_between_prompts_that_fit_and_that_do_not() -> None:
    small = growing_steps((40.0, 60.0))
    swings = series(60, lambda at: {"running": 9, "waiting": 9, "kv": (97, 86, 84)[at % 3], "histograms": small(at)})
    assert said(live(swings)).sentence.startswith("KV-bound: no room in KV (89 %) for the last 60 s")
    full = growing_steps((5.0, 2048.0))
    budget = series(60, lambda at: {"running": 9, "waiting": 9, "kv": (97, 86, 84)[at % 3], "histograms": full(at)})
    assert said(live(budget)).kind == "token_budget"


def test_kv_bound_is_told_for_a_part_of_the_minute_and_as_the_knobs_stand() -> None:
    samples = joined(steady(20, running=9), steady(39, running=184, waiting=16, kv=97))
    assert "for 40 s of the last 60" in said(live(samples)).sentence
    at_its_end = Knobs(gpu_memory_utilization=Knob(0.98, "flag"))
    assert "(now 0.98) has no room" in said(live(samples), at_its_end).advice
    assert "kv-cache-memory-bytes" in said(live(samples), Knobs(kv_cache_fixed=True)).advice
    default = Knobs(gpu_memory_utilization=Knob(0.92, "default"))
    assert "(its default 0.92)" in said(live(samples), default).advice
    assert "(not known)" in said(live(samples), UNKNOWN).advice


def test_sequence_bound_also_while_some_have_just_ended() -> None:
    limit = said(live(series(60, lambda at: {"running": 256 - at % 20, "waiting": 40, "kv": 61})))
    assert limit.text == (
        "Sequence-bound: at max-num-seqs for the last 60 s, about 40 waiting, KV 61 %. "
        "Raise max-num-seqs (now 256); the other two cannot help."
    )


def test_sequence_bound_names_kv_where_it_would_be_next() -> None:
    assert "with gpu-memory-utilization (now 0.92)" in said(live(steady(running=256, waiting=40, kv=93))).advice


def test_without_max_num_seqs_a_plateau_tells_it() -> None:
    decoding = growing_steps((30.0, 40.0))
    limit = said(
        live(series(60, lambda at: {"running": 32, "waiting": 9, "kv": 40, "histograms": decoding(at)})), UNKNOWN
    )
    assert limit.kind == "sequences"
    assert limit.text.startswith("Sequence-bound: running stands at 32 for the last 60 s")
    assert "(not known)" in limit.advice


def test_a_plateau_of_prefills_is_no_limit_of_sequences() -> None:
    """One long prompt at a time runs alone, whatever max-num-seqs is."""
    prefilling = growing_steps((4.0, 2000.0))
    shown = series(60, lambda at: {"running": 1, "waiting": 9, "kv": 40, "histograms": prefilling(at)})
    assert said(live(shown), UNKNOWN).text.startswith("Cannot tell: about 9 waiting at KV 40 %")
    assert said(live(shown), Knobs(max_num_batched_tokens=Knob(2048, "log"))).kind == "token_budget"


def test_token_budget_bound_with_free_slots_and_kv_and_full_steps() -> None:
    # By count most steps only decode; by tokens, and so by time, they are full.
    full = growing_steps((5.0, 2048.0), (40.0, 60.0))
    limit = said(live(series(60, lambda at: {"running": 60, "waiting": 12, "kv": 30, "histograms": full(at)})))
    assert limit.kind == "token_budget"
    assert limit.sentence == ("Token-budget-bound: 12 waiting for 60 of 60 s, slots and KV (30 %) free, steps full.")
    assert limit.advice == "max-num-batched-tokens (now 2048) may help TTFT only: GPU busy."


def test_token_budget_bound_by_exclusion_says_so() -> None:
    limit = said(live(steady(running=60, waiting=12, kv=30, gpus=[])))
    assert (limit.kind, "no other limit met" in limit.sentence) == ("token_budget", True)
    assert limit.advice == "Raise max-num-batched-tokens (now 2048); max-num-seqs cannot help."


def test_a_queue_with_room_of_every_kind_is_not_explained_by_force() -> None:
    small = growing_steps((40.0, 60.0))

    def shown(at: int, **more: Any) -> dict[str, Any]:
        return {"running": 60, "waiting": 12, "kv": 30, "histograms": small(at), **more}

    limit = said(live(series(60, shown)))
    assert (limit.kind, limit.advice) == ("unknown", "")
    adapters = {"most": 2.0, "running": ["a", "b"], "waiting": ["c"]}
    assert "all 2 max-loras are in use" in said(live(series(60, lambda at: shown(at, lora=adapters)))).sentence
    long_prompt = live(series(60, lambda at: shown(at) | {"kv": 88}))
    assert "the prompt in front may be too long" in said(long_prompt).sentence


def test_deferred_requests_do_not_wait_for_room() -> None:
    reasons = {"capacity": 0.0, "deferred": 12.0}
    limit = said(live(steady(running=20, waiting=12, kv=30, waiting_by_reason=reasons)))
    assert limit.sentence.startswith("Cannot tell: about 12 deferred")
    few = {"capacity": 0.0, "deferred": 1.0}
    assert said(live(steady(running=184, waiting=1, kv=60, waiting_by_reason=few))).kind == "compute"


def test_compute_bound_and_what_looks_like_it() -> None:
    compute = said(live(steady(running=184, kv=60)))
    assert compute.text == (
        "Compute-bound: nothing waits, 184 of 256 running, GPU 98 % busy at 612 of 700 W, over 60 s. "
        "The three knobs cannot help."
    )
    # A decode of one request keeps a GPU as busy, at half the power.
    assert said(live(steady(running=1, gpus=[gpu(97, 320)]))).kind == "client"
    assert said(live(steady(running=40, gpus=[gpu(97, 400)]))).kind == "client"
    assert "no power reading" in said(live(steady(running=64, gpus=[gpu(98, power_w=None)]))).sentence
    assert "no GPU reading" in said(live(steady(running=64, gpus=[]))).sentence


def test_host_bound_where_the_gpu_waits_although_many_run() -> None:
    """As the sweep of docs/results/h200 was: eager, 53 of 1,024 running, GPU 54 % busy."""
    eager = live(steady(running=53, gpus=[gpu(54, 392, throttle_reasons=["power cap"])]))
    assert said(eager, Knobs(max_num_seqs=Knob(1024, "default"), eager=True)).text == (
        "Host-bound: nothing waits, 53 of 1024 running, GPU only 54 % busy, over 60 s. "
        "The three knobs cannot help; more requests at once or no enforce-eager may."
    )
    assert said(eager).advice == "The three knobs cannot help; more requests at once or a faster CPU may."
    assert said(live(steady(running=3, gpus=[gpu(54, 300)]))).kind == "client"  # few may end between two looks


def test_client_bound_of_a_rate_limited_client_with_bursts_and_pauses() -> None:
    dice = random.Random(4)
    arrivals = [dice.choice((0, 0, 1, 3, 5)) for _ in range(61)]
    limit = said(live(series(60, lambda at: {"running": arrivals[at], "gpus": [gpu(40, 250)]})))
    assert limit.kind == "client"
    assert limit.sentence.startswith("Client-bound: no request for ")
    burst = joined(steady(40, running=6, gpus=[gpu(95, 300)]), steady(1, running=256, waiting=90, kv=96))
    assert said(live(burst)).kind == "client"


def test_a_first_step_that_compiles_is_not_told_once_the_load_runs() -> None:
    """Its gauges stand for seconds: one request let in, all others waiting."""
    compiling = steady(9, running=1, waiting=63, kv=1, gpus=[gpu(0, 120)])
    assert said(live(joined(compiling, steady(50, running=64, kv=20)))).kind == "compute"


def test_idle_and_asleep() -> None:
    assert said(live(steady())).text == "Idle: no request for the last 60 s."
    once = joined(steady(58), steady(0, running=2), steady(0))
    assert said(live(once)).text == "Idle: requests for 1 s of the last 60 only."
    assert said(live(steady(sleep_state="weights_offloaded"))).sentence.startswith("Idle: the engine sleeps")


@pytest.mark.parametrize(
    ("shown", "sentence"),
    [
        (gpu(99, 699, throttle_reasons=["power cap"], sm_clock_max_mhz=1980.0, sm_clock_mhz=1410.0),
         "Power-throttled: held back for the last 60 s, GPU 99 % busy at 699 of 700 W, 1,410 of 1,980 MHz."),
        (gpu(99, 699, throttle_reasons=None),
         "Power-throttled: held back for the last 60 s, GPU 99 % busy at 699 of 700 W, 1,980 MHz."),
        (gpu(99, 480, throttle_reasons=["hardware thermal"], sm_clock_mhz=1200.0),
         "Heat-throttled: held back for the last 60 s, GPU 99 % busy at 480 of 700 W, 1,200 MHz."),
    ],
)  # fmt: skip
def test_throttled(shown: dict[str, Any], sentence: str) -> None:
    assert said(live(steady(running=184, kv=60, gpus=[shown]))).sentence == sentence


def test_a_queue_that_a_knob_can_shorten_is_told_before_the_throttling() -> None:
    capped = [gpu(99, 699, throttle_reasons=["power cap"])]
    assert said(live(steady(running=256, waiting=40, kv=61, gpus=capped))).kind == "sequences"
    full = growing_steps((5.0, 2048.0))
    budget = series(60, lambda at: {"running": 60, "waiting": 9, "kv": 30, "histograms": full(at), "gpus": capped})
    assert said(live(budget)).kind == "power"  # fuller steps would not make the GPU faster


def test_reasons_of_throttling_bear_the_names_that_are_read() -> None:
    assert {name for _, name in THROTTLE_REASONS} >= POWER_REASONS | HEAT_REASONS


def test_the_engine_that_does_not_keep_up_is_named() -> None:
    def engines(*waiting: float) -> list[dict[str, Any]]:
        return [
            {
                "engine": str(at),
                "running": 100.0,
                "waiting": each,
                "kv_perc": 97.0 if each else 40.0,
                "preemptions": 0.0,
            }
            for at, each in enumerate(waiting)
        ]

    limit = said(live(steady(running=200, waiting=16, kv=97, engines=engines(0.0, 16.0))))
    assert (limit.kind, limit.sentence[:25]) == ("kv", "KV-bound (engine 1 of 2):")
    both = said(live(steady(running=200, waiting=32, kv=97, engines=engines(16.0, 16.0))))
    assert both.sentence.startswith("KV-bound (all 2 engines, here ")
    # max-num-seqs holds for each engine, not for their sum.
    hostile = [dict(one, engine=f"\x1b[31m[/x]{at}" + "9" * 99) for at, one in enumerate(engines(0.0, 16.0))]
    odd = what_limits(live(steady(running=200, waiting=16, kv=97, engines=hostile)), KNOBS)
    assert odd is not None
    assert "\x1b" not in odd.text
    assert len(odd.text) < 200
    full = [{"engine": str(at), "running": 256.0, "waiting": 9.0, "kv_perc": 50.0} for at in range(2)]
    assert said(live(steady(running=512, waiting=18, kv=50, engines=full))).kind == "sequences"


def test_what_cannot_be_told_says_why() -> None:
    assert what_limits(live([]), KNOBS) is None
    assert said(live([sample(0, 256, 40)])).sentence == "Cannot tell: no readings so far."
    assert said(live(steady(2, running=256, waiting=40))).sentence == "Cannot tell: 2 readings so far."
    silent = joined(steady(30, running=9), steady(5, running=None, waiting=None, error="no answer within 2 s"))
    assert said(live(silent)).sentence == "Cannot tell: no answer for 6 s."
    bare = live(steady(running=None, waiting=None, kv=None))
    assert "no num_requests_running" in said(bare).sentence
    no_kv = live(steady(running=60, waiting=12, kv=None))
    assert said(no_kv).sentence == "Cannot tell: about 12 waiting, its /metrics has no KV use."


def test_one_lost_answer_changes_nothing() -> None:
    lost = joined(
        steady(28, running=256, waiting=40), [sample(0, None, None, None, None)], steady(28, running=256, waiting=40)
    )
    assert said(live(lost)).kind == "sequences"


def test_a_server_that_started_anew_is_judged_by_its_new_life() -> None:
    before = steady(30, running=256, waiting=40, process_start=1.0)
    after = joined(before, steady(10, running=1, process_start=2.0, gpus=[gpu(50, 200)]))
    assert said(live(after)).kind == "client"
    assert said(live(joined(before, steady(1, process_start=2.0)))).sentence == "Cannot tell: 1 reading so far."


def test_a_run_is_judged_as_a_whole() -> None:
    samples = steady(7, running=256, waiting=40, kv=61)
    assert said(samples).sentence == "Sequence-bound: at max-num-seqs for all 7 s, about 40 waiting, KV 61 %."
    tail = joined(samples, steady(1, running=30, gpus=[]))
    assert "for 7 s of 9" in said(tail).sentence


def test_only_the_last_minute_of_a_longer_window_counts() -> None:
    long_ago = joined(steady(200, running=256, waiting=40), steady(61, gpus=[]))
    assert said(Window(900.0, long_ago)).kind == "idle"


def test_a_pause_of_the_sampling_is_not_taken_for_what_stood_after_it() -> None:
    before, after = steady(20, running=9, gpus=[gpu(95, 300)]), sample(58, 256, 40, 97)
    assert said(live([*before, after])).kind == "client"


@pytest.mark.parametrize("share", [0.3, 0.42, 0.5, 0.58])
def test_the_sentence_does_not_flicker(share: float) -> None:
    """A load about each threshold: the kind changes now and then, not with every sample."""
    dice = random.Random(11)
    states: list[dict[str, Any]] = [
        {"running": 256, "waiting": 9, "kv": 94 + dice.random() * 2} if dice.random() < share
        else {"running": 200, "waiting": 9 if dice.random() < 0.3 else 0, "kv": 94 + dice.random() * 2,
              "gpus": [gpu(88 + 4 * dice.random(), 540 + 40 * dice.random())]}
        for _ in range(400)
    ]  # fmt: skip
    window, kinds, shown = Window(60.0), [], None
    for at, state in enumerate(states):
        window.add(sample(float(at), **state))
        shown = what_limits(window, KNOBS, shown)
        assert shown is not None
        kinds.append(shown.kind)
    changes = sum(before != after for before, after in pairwise(kinds[60:]))
    assert changes <= 6


def test_odd_rows_harm_nothing() -> None:
    odd: list[dict[str, Any]] = [
        {"engines": [{}, {"engine": "1"}]}, {"engines": "x"}, {"gpus": [None, 3, {}]}, {"gpus": "x"},
        {"histograms": {"step_tokens": {"corners": [["x"]]}}}, {"waiting_by_reason": [1]}, {"lora": "x"},
        {"histograms": steps()}, {"kv_cache_tokens": "x"}, {"sleep_state": 3}, {"error": 3},
    ]  # fmt: skip
    for raw in odd:
        for state in ({"running": 60, "waiting": 12, "kv": 30}, {"running": 256, "waiting": 12}, {"running": 3}, {}):
            for knobs in (KNOBS, UNKNOWN):
                assert said(live(steady(10, **state, **raw)), knobs).sentence
