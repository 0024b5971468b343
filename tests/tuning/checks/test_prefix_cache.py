import json
from dataclasses import replace

import pytest

from engine.records import GpuReading
from engine.samples.sample_record import to_record
from engine.scrape.metrics import parse_metrics
from store.records import SampleRecord
from tests.tuning.checks.recorded import CHAT, FIXTURES, changed, one, recorded, samples
from tests.tuning.examples import at, sharegpt_workload
from tuning.checks.acceptance import findings, rejects
from tuning.checks.prefix_cache import PromptHits, longest_request, prompt_hits, unexplained_hits
from tuning.run_metrics import run_metrics


def page(name: str, seconds: float) -> SampleRecord:
    """A page of /metrics of an H200 as a sample."""
    text = (FIXTURES / f"h200-vllm-0.25.1/metrics/{name}.txt").read_text()
    server = parse_metrics(text, at(seconds), seconds)
    return to_record(server, GpuReading(at(seconds), seconds))


def by_source(computed: float, cached: float) -> list[SampleRecord]:
    """The recorded samples of a vLLM that tells prompt tokens by source, with the last as given."""
    begun = changed(samples(), 0, raw={"prompt_by_source": {"local_compute": 1000.0, "local_cache_hit": 50.0}})
    done = {"local_compute": 1000.0 + computed, "local_cache_hit": 50.0 + cached, "external_kv_transfer": 0.0}
    return changed(begun, len(begun) - 1, raw={"prompt_by_source": done})


def test_the_recorded_run_met_its_own_prompts_only() -> None:
    assert unexplained_hits(recorded()) is None


def test_prompts_that_the_server_knew_reject() -> None:
    """`same1` of the H200: the seed of `same0` again on one server, 49 % faster."""
    result = json.loads((FIXTURES / "h200-vllm-0.25.1/bench/restart-A1-same1.json").read_text())
    known = by_source(computed=300 * 16.0, cached=300 * 496.0)  # whole blocks of 16 tokens but the last
    facts = recorded(outcome=replace(recorded().outcome, result=result), samples=known)
    found = one(unexplained_hits(facts))
    assert found.reason == ("97 % of the prompt tokens came from the prefix cache, of which the workload explains 0 %")
    assert (found.numbers["hit_tokens"], found.numbers["prompt_tokens"]) == (300 * 496, 300 * 512)
    assert found.numbers["counted_by"] == "prompts"
    assert found.numbers["threshold_perc"] == 5
    assert rejects(findings(facts)) == found.reason


def test_prompts_are_counted_once_however_often_the_scheduler_looked() -> None:
    """A starved cache: 554,503 tokens looked up for 195,389 of prompts, since what finds no block is tried again."""
    begun, ended = page("kv-starved-load-00", 0), page("kv-starved-end", 30)
    found = prompt_hits([begun, ended])
    assert found == PromptHits(0.0, 195_389.0, True, preempted=84.0)
    assert not found.inflated
    assert run_metrics(recorded().outcome, [begun, ended])["prefix_hit_perc"] == 0
    older = [replace(each, raw={**each.raw, "prompt_by_source": {}}) for each in (begun, ended)]
    looked_up = prompt_hits(older)
    assert looked_up == PromptHits(0.0, 554_503.0, False, preempted=84.0)


def lookups(hits: float, preempted: float) -> list[SampleRecord]:
    """The recorded samples, which an older vLLM's are like, with these hits and preemptions in the end."""
    first = samples()[0]
    queries, before = first.prefix_queries or 0.0, first.prefix_hits or 0.0
    begun = changed(samples(), 0, prefix_queries=queries, prefix_hits=before, preemptions=7.0)
    return changed(
        begun,
        len(begun) - 1,
        prefix_queries=queries + 300 * 512 + preempted * 640,
        prefix_hits=before + hits,
        preemptions=7.0 + preempted,
    )


def test_hits_that_preempted_requests_explain_are_a_note_and_no_figure() -> None:
    """vLLM issue 25780: 32 % of random prompts looked like hits, after preemptions alone."""
    facts = recorded(samples=lookups(hits=100 * 576.0, preempted=100))
    note = one(unexplained_hits(facts))
    assert not note.rejects
    assert "the 100 preempted requests alone can make that many" in note.reason
    assert note.numbers["least_perc"] == 0
    assert note.numbers["preemptions"] == 100
    assert run_metrics(facts.outcome, facts.samples)["prefix_hit_perc"] is None
    assert rejects(findings(facts)) is None


def test_hits_beyond_what_preempted_requests_explain_reject() -> None:
    facts = recorded(samples=lookups(hits=100 * 576.0, preempted=10))
    found = one(unexplained_hits(facts))
    assert found.rejects
    assert found.numbers["least_perc"] == pytest.approx(100 * (57_600 - 6400) / (300 * 512))
    assert rejects(findings(facts)) == found.reason


def test_preempted_requests_cannot_inflate_what_is_counted_by_prompt() -> None:
    known = changed(by_source(computed=4800.0, cached=148_800.0), 16, preemptions=500.0)
    assert one(unexplained_hits(recorded(samples=known))).rejects


def test_a_file_of_conversations_is_not_judged() -> None:
    assert unexplained_hits(recorded(workload=sharegpt_workload(), samples=by_source(0.0, 1e6))) is None


def test_the_longest_request_has_its_answer() -> None:
    assert longest_request(CHAT) == 640
    stretched = replace(CHAT, shape={"input_len": 100, "output_len": 50, "range_ratio": 0.5, "prefix_len": 8})
    assert longest_request(stretched) == 8 + 1.5 * 150
