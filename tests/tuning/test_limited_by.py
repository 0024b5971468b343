"""What limited a run: over its load alone, kept with the run, and said together where runs of a candidate disagree."""

import csv
import io
import json
from dataclasses import replace
from typing import Any

from store.records import RunRecord
from tests.engine.limit_series import KNOBS, sample, steady
from tests.tuning.examples import at, outcome, plan, run, session
from tuning.limited_by import agreed, example, finding, load_samples, run_limit, sentences
from tuning.report import markdown, to_csv, to_json
from tuning.results import session_result

KV = "KV-bound: KV above 95 % for all 7 s, 3 preemptions, about 9 waiting. Raise gpu-memory-utilization (now 0.9)."
SEQS = "Sequence-bound: at max-num-seqs for all 7 s, about 40 waiting. Raise max-num-seqs (now 16)."


def busy_between(begin: int, end: int, count: int = 40) -> Any:
    full = {"running": 256.0, "waiting": 40.0}
    return [sample(second, **(full if begin < second <= end else {})) for second in range(count)]


def test_only_the_load_counts_not_the_making_of_prompts_before_it() -> None:
    samples = busy_between(20, 27)
    load = outcome({"duration": 7.0}, load_started_at=samples[20].at)
    assert load_samples(load, samples) == samples[20:28]
    limit = run_limit(load, samples, KNOBS)
    assert limit is not None
    assert limit.sentence == "Sequence-bound: at max-num-seqs for all 7 s, about 40 waiting, KV 10 %."


def test_a_pause_of_the_load_counts() -> None:
    samples = busy_between(20, 22)
    limit = run_limit(outcome({"duration": 10.0}, load_started_at=samples[20].at), samples, KNOBS)
    assert limit is not None
    assert limit.kind == "client"


def test_where_the_load_began_is_not_known_it_is_from_the_first_request_to_the_last() -> None:
    samples = busy_between(20, 27)
    assert load_samples(outcome({}), samples) == samples[20:28]
    assert load_samples(outcome({"duration": float("nan")}, load_started_at=at(0)), samples) == samples[20:28]
    assert load_samples(outcome({}), steady(3)) == steady(3)
    assert run_limit(outcome({}), [], KNOBS) is None


def test_a_load_between_two_samples_is_not_judged() -> None:
    samples = busy_between(20, 22)
    limit = run_limit(outcome({"duration": 0.3}, load_started_at=samples[20].at), samples, KNOBS)
    assert limit is not None
    assert limit.text == "Cannot tell: no readings of it."


def test_runs_that_disagree_say_so() -> None:
    assert agreed([]) == example([]) == ""
    assert agreed([KV, KV]) == "KV-bound"
    assert agreed([KV, SEQS, KV]) == "KV-bound in 2 of 3 runs"
    assert example([KV, SEQS, KV.replace("7 s", "8 s")]) == KV.replace("7 s", "8 s")
    assert finding("KV-bound (engine 1 of 2): KV above …") == "KV-bound"
    assert finding("Cannot tell client- from compute-bound: nothing waits") == "Cannot tell"


def test_the_sentences_of_a_sweep_stand_in_every_form_of_its_report() -> None:
    runs: list[RunRecord] = [
        run(0, 0, 100.0, id=1, limited_by=SEQS),
        run(0, 1, 120.0, id=2, limited_by=KV),
        run(0, 1, 121.0, id=3, repeat=1, limited_by=SEQS),
        run(0, 1, 121.0, id=4, repeat=2, limited_by=KV),
        run(0, 1, 121.0, id=5, kind="warmup", limited_by="Idle: no request for all 7 s."),
        run(0, 2, 121.0, id=6),
    ]
    record = session(plan())
    result = session_result(record, [], runs, at(0))
    assert [len(each.limited_by) for each in result.results] == [1, 3, 0]
    text = markdown(result, record)
    assert f"| default | Sequence-bound | {SEQS} |" in text
    assert "| seqs 64 | KV-bound in 2 of 3 runs | KV-bound: " in text
    assert "Idle" not in text
    document = json.loads(to_json(result, record, [], runs))
    assert document["runs"][1]["limited_by"] == KV
    table = list(csv.DictReader(io.StringIO(to_csv(record, runs))))
    assert [row["limited_by"] for row in table[:2]] == [SEQS, KV]
    assert table[5]["limited_by"] == ""


def test_a_session_of_before_has_no_sentences() -> None:
    record = session(plan())
    runs = [replace(run(0, 0, 100.0), limited_by=None)]
    assert sentences(runs) == ()
    assert "What limited" not in markdown(session_result(record, [], runs, at(0)), record)
