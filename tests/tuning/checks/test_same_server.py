from dataclasses import replace
from typing import Any

from store.records import SampleRecord
from tests.tuning.checks.recorded import BEGAN, SERVER, changed, one, recorded, samples
from tuning.checks.acceptance import findings, rejects
from tuning.checks.same_server import restarted, strange_requests, wrong_server

ANOTHER = "process 4242 (python -m vllm.entrypoints.openai.api_server)"


def test_the_server_that_was_started_answered_all() -> None:
    facts = recorded()
    assert (wrong_server(facts), restarted(facts), strange_requests(facts)) == (None, None, None)


def test_another_listener_on_either_edge_rejects() -> None:
    taken = replace(SERVER, ours=(), strangers=(ANOTHER,))
    found = one(wrong_server(recorded(before=taken)))
    assert found.reason == f"port 8000 was listened on by {ANOTHER} before the run"
    shared = one(wrong_server(recorded(after=replace(SERVER, strangers=(ANOTHER,)))))
    assert "beside our server after the run" in shared.reason
    assert rejects(findings(recorded(before=taken))) == found.reason


def test_metrics_of_an_older_process_reject() -> None:
    older = changed(samples(), 0, raw={"process_start": BEGAN - 3600})
    found = one(wrong_server(recorded(samples=older)))
    assert "3600 s older" in found.reason
    assert wrong_server(recorded(samples=changed(samples(), 0, raw={"process_start": BEGAN - 1}))) is None
    assert wrong_server(recorded(before=None, samples=older)) is None


def test_a_server_that_hides_its_port_is_not_accused() -> None:
    hidden = replace(SERVER, ours=())
    assert wrong_server(recorded(before=hidden, after=hidden)) is None
    assert restarted(recorded(before=hidden, after=SERVER)) is None


def test_another_process_in_the_midst_rejects() -> None:
    other = changed(samples(), 9, raw={"process_start": 1796038999.0})
    found = one(restarted(recorded(samples=other)))
    assert found.numbers["at"] == other[9].at
    assert found.numbers["process_start"] == [1796038643.63, 1796038999.0]
    assert rejects(findings(recorded(samples=other))) == found.reason


def test_counters_that_fell_reject_where_the_process_is_not_told() -> None:
    fell: list[SampleRecord] = []
    for at, sample in enumerate(samples()):
        raw = {name: value for name, value in sample.raw.items() if name != "process_start"}
        lower = (sample.generation_tokens or 0.0) - 80_000 * (at >= 9)
        fell.append(replace(sample, raw=raw, generation_tokens=lower))
    found = one(restarted(recorded(samples=fell)))
    assert found.numbers["before"] == fell[8].at
    assert found.numbers["generation_tokens"][0] > found.numbers["generation_tokens"][1]


def test_a_gap_in_the_answers_is_no_restart() -> None:
    silent: list[Any] = [
        SampleRecord(at=sample.at, raw={"error": "did not answer within 2 s"}) if 5 <= at < 8 else sample
        for at, sample in enumerate(samples())
    ]
    assert restarted(recorded(samples=silent)) is None
    again = changed(silent, 8, raw={"process_start": 1796038999.0})
    assert restarted(recorded(samples=again)) is not None


def test_other_processes_of_the_server_that_listen_reject() -> None:
    found = one(restarted(recorded(after=replace(SERVER, ours=(1999,)))))
    assert found.numbers["listened_after"] == [1999]


def test_requests_that_the_server_did_not_count_went_elsewhere() -> None:
    few = []
    for sample in samples():
        counted = 601 + (sample.raw["requests_finished"]["length"] - 601) * 2 / 3
        few += changed([sample], 0, raw={"requests_finished": {"length": counted}})
    found = one(strange_requests(recorded(samples=few)))
    assert "counts 200 requests of the 300" in found.reason
    assert (found.numbers["server_counted"], found.numbers["answered"]) == (200, 300)
    assert rejects(findings(recorded(samples=few))) == found.reason


def test_requests_of_others_reject() -> None:
    many = changed(samples(), 16, raw={"requests_finished": {"length": 941.0}})
    found = one(strange_requests(recorded(samples=many)))
    assert "ended 340 requests, 300 of them ours" in found.reason
    tried = changed(samples(), 16, raw={"requests_finished": {"length": 903.0}})
    assert strange_requests(recorded(samples=tried)) is None


def test_a_front_end_that_counts_tokens_only_is_not_accused() -> None:
    still = changed(samples(), 0, raw={"requests_finished": {"length": 0.0}})
    assert strange_requests(recorded(samples=still)) is None
    none = [replace(sample, raw={}) for sample in samples()]
    assert strange_requests(recorded(samples=none)) is None
