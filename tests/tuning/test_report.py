import csv
import io
import json
from dataclasses import replace
from typing import Any

from store.records import RunRecord, SessionRecord
from tests.tuning.examples import at, launch, plan, run, session
from tuning.records import RUN_METRICS, Budget, Candidate
from tuning.report import markdown, serve_command, to_csv, to_json
from tuning.results import session_result

RUNS = [
    run(block, index, 100.0 + 10 * index + block, repeat=repeat, id=6 * block + 2 * index + repeat)
    for block in (0, 1)
    for index in range(3)
    for repeat in (0, 1)
]
LAUNCHES = [launch(block, index, number=3 * block + index) for block in (0, 1) for index in range(3)]


def report(runs: list[RunRecord] = RUNS, **changes: Any) -> str:
    record: SessionRecord = session(plan(budget=Budget(gpu_price_per_hour=0.44)), **changes)
    return markdown(session_result(record, LAUNCHES, runs, at(1000)), record)


def rows(text: str, label: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in text.splitlines()
        if line.startswith(f"| {label} |")
    ]


def test_each_candidate_has_a_row_with_its_interval_against_the_default() -> None:
    text = report()
    (baseline,) = rows(text, "default")
    (second,) = rows(text, "seqs 256")
    assert baseline == ["default", "baseline", "baseline", r"100.5 \[94.34, 107.1\]", "2", "–"]
    assert second[2].startswith(r"+20 % \[")
    assert second[3].startswith(r"120.5 \[")


def test_it_says_what_the_numbers_can_bear() -> None:
    text = report()
    assert "in at most 5 of 100 sessions any candidate is called better that is not" in text
    assert "docs/verdict.md" in text
    assert "running, 2 of 2 blocks, 6 of 6 launches" in text
    assert "cost $0.07" in text
    assert "decided by total tok/s" in text


def test_what_failed_is_listed() -> None:
    record = session(plan(), raw={"out": {"2": "did not start: out of memory"}})
    text = markdown(session_result(record, [], [], at(0)), record)
    assert "- seqs 256: did not start: out of memory" in text


def test_every_metric_that_was_read_is_shown() -> None:
    runs = [replace(each, metrics={**each.metrics, "p99_itl_ms": 7.5, "kv_peak_perc": None}) for each in RUNS]
    text = report(runs)
    assert r"| p99 ITL ms | 7.50 \[7.50, 7.50\] | 7.50 \[7.50, 7.50\]; 0.0 % \[0.0, 0.0\] |" in text
    assert "| p99 ITL ms | 99th percentile of the inter-token latency" in text
    assert "KV peak" not in text


def test_the_commands_can_be_copied_and_hide_secrets() -> None:
    secret = "hf_" + "a" * 30
    of = plan(server={"max-num-seqs": 16, "dtype": "half"}, server_env={"HF_TOKEN": secret}, vllm="/venv/bin/vllm")
    record = session(of)
    text = markdown(session_result(record, [], [], at(0)), record)
    assert "/venv/bin/vllm serve org/model --host 127.0.0.1 --port 8000 --dtype half --max-num-seqs 64" in text
    assert "vllm bench serve" in text.replace("/venv/bin/", "")
    assert secret not in text
    assert secret not in serve_command(of, Candidate(1, "x", {"max-num-seqs": 1}))


def test_text_of_others_cannot_break_the_table_or_the_terminal() -> None:
    record = session(
        plan(),
        name="a | b\x1b[2J\n# title <img>",
        environment={"gpus": [{"name": "H200\x1b[31m"}], "driver": None, "evil`": "x\ny"},
    )
    text = markdown(session_result(record, LAUNCHES, RUNS, at(0)), record)
    assert text.splitlines()[0] == r"# Session 14: a \| b \# title \<img\>"
    assert "\x1b" not in text
    assert "| NVIDIA driver | – |" in text
    assert r"| evil\` | x y |" in text
    assert "| GPU 0 | H200 |" in text


def test_json_holds_everything() -> None:
    record = session(plan(), name="a\x1b[2Jb", plan_toml='name = "x"\nmodel = "y"\n')
    runs = [replace(RUNS[0], raw={"result": {"duration": float("nan"), "latencies": [1.0]}}), *RUNS[1:]]
    text = to_json(session_result(record, LAUNCHES, runs, at(0)), record, LAUNCHES, runs)
    document = json.loads(text)
    assert document["schema"] == 1
    assert document["session"]["name"] == "ab"
    assert document["session"]["plan_toml"] == 'name = "x"\nmodel = "y"\n'
    assert len(document["runs"]) == 12
    assert document["runs"][0]["raw"]["result"] == {"duration": None, "latencies": [1.0]}
    assert len(document["launches"]) == 6
    assert document["sentence"] == document["judgement"]["sentence"]
    assert document["judgement"]["workloads"]["chat"]["candidates"]["2"]["verdict"] == "better"
    assert document["launch_counts"]["full"] == 6
    assert document["costs"] is None
    assert document["result"]["results"][1]["effects"]["total_tok_per_s"]["blocks"] == 2
    assert document["commands"]["seqs 64"].startswith("vllm serve org/model")
    assert "NaN" not in text


def test_csv_has_a_row_for_each_run_and_a_column_for_each_metric() -> None:
    record = session(plan())
    runs = [
        *RUNS,
        run(1, 1, id=9, state="rejected", reason="=HYPERLINK(1)\x1b[2J", kind="warmup", metrics={"error_rate": 0.5}),
    ]
    table = list(csv.DictReader(io.StringIO(to_csv(record, runs))))
    assert len(table) == 13
    assert set(RUN_METRICS) < set(table[0])
    assert (table[2]["label"], table[2]["settings"]) == ("seqs 64", '{"max-num-seqs": 64}')
    assert float(table[2]["total_tok_per_s"]) == 110.0
    assert table[2]["error_rate"] == ""
    assert (table[12]["state"], table[12]["kind"], table[12]["reason"]) == ("rejected", "warmup", "'=HYPERLINK(1)")
    assert table[12]["error_rate"] == "0.5"
