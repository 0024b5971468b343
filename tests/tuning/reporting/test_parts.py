"""The report of a session that has everything: a winner, losers, rejected runs, and one that never started."""

import json
import re
from dataclasses import replace

import pytest

from tests.tuning.examples import at, plan, session
from tests.tuning.reporting.examples import Measured, big_plan, measured, played
from tuning.judgement.calibration import calibration
from tuning.plans.plan_json import plan_json
from tuning.records import Budget
from tuning.report import html, markdown, to_json
from tuning.results import session_result


@pytest.fixture(scope="module")
def of() -> Measured:
    return measured()


@pytest.fixture(scope="module")
def text(of: Measured) -> str:
    return markdown(of.result, of.session, of.launches, of.runs)


def section(text: str, title: str) -> str:
    """Without the escapes."""
    found = re.search(rf"^## {title}.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return re.sub(r"\\([^\w\s])", r"\1", found[0])


def row(text: str, label: str) -> list[str]:
    return [
        cell.strip()
        for cell in next(line for line in text.splitlines() if line.startswith(f"| {label} |"))[1:-1].split(" | ")
    ]


def test_the_sentence_comes_first_then_what_to_run(of: Measured, text: str) -> None:
    assert of.result.judgement is not None
    lines = [line for line in text.splitlines() if line]
    assert re.sub(r"\\([^\w\s])", r"\1", lines[1]) == f"**{of.result.judgement.sentence}**"
    assert "seqs 32 is better" in of.result.judgement.sentence
    first = next(line for line in lines if line.startswith("## "))
    assert first == "## What to run"
    assert (
        "    vllm serve org/qwen3-14b-awq --host 127.0.0.1 --port 8000 --max-model-len 4096 --max-num-seqs 32\n" in text
    )
    assert "too good on average" in section(text, "What to run")


def test_each_verdict_has_its_interval_its_limits_and_the_block_after_which_it_fell(text: str) -> None:
    chat = section(text, "chat: decided by total tok/s")
    label, verdict, effect, level, launches, limits, settled = row(chat, "seqs 32")
    assert (label, verdict, launches, limits, settled) == ("seqs 32", "✓ better", "3", "✓ all hold", "after block 3")
    assert re.fullmatch(r"\+[\d.]+ % \[\+[\d.]+, \+[\d.]+\]", effect)
    assert re.fullmatch(r"[\d,]+ \[[\d,]+, [\d,]+\]", level)
    assert row(chat, "default")[1:3] == ["baseline", "baseline"]
    assert row(chat, "seqs 1024")[1] == "! failed"
    assert "| candidate | p99 TTFT ms ≤ 720 | error rate = 0 |" in chat
    assert "not the p99 of all requests together" in chat
    assert "✓ better: its advantage is no noise." in chat


def test_what_left_failed_and_was_rejected(text: str) -> None:
    lost = section(text, "What left, failed or was rejected")
    assert row(lost, "seqs 32")[1] == "3"
    assert row(lost, "seqs 32")[2].startswith("better, +")
    assert row(lost, "seqs 64")[1] == "2"
    assert "- seqs 1024: KV cache too small: 0.5 GiB short" in lost
    assert "- seqs 64" not in lost, "who was judged has not failed"
    assert "Rejected: 2 of " in lost
    assert "1 run was rejected again" in lost
    assert "client cpu perc 97, threshold perc 95" in lost


def test_who_failed_is_told_from_who_was_never_tried_or_left_out_by_a_person(of: Measured) -> None:
    raw = {
        **of.session.raw,
        "out": {"5": "did not start: x", "4": "not tried: fails as seqs 1024", "3": "left out by hand"},
    }
    record = replace(of.session, raw=raw)
    lost = section(markdown(session_result(record, of.launches, of.runs, at(0)), record), "What left")
    assert "Failed:\n\n- seqs 1024: KV cache too small" in lost
    assert "did:\n\n- seqs 512: not tried: fails as seqs 1024" in lost
    assert "Left out by hand:\n\n- seqs 256: left out by hand" in lost


def test_what_was_found_of_runs_that_count_is_told_once_a_kind(of: Measured) -> None:
    power = {
        "check": "power",
        "rejects": False,
        "reason": "held at its power limit for 40 % of the load",
        "numbers": {},
    }
    runs = [replace(each, raw={"evidence": [power]}) if each.state == "done" else each for each in of.runs]
    lost = section(markdown(of.result, of.session, of.launches, runs), "What left, failed or was rejected")
    assert f"- {len(runs) - 2} runs: held at its power limit for 40 % of the load" in lost


def test_noise_and_launches_used_against_the_full_grid(of: Measured, text: str) -> None:
    noise = section(text, "Noise and launches")
    assert all(re.fullmatch(r"[\d.]+ %", cell) for cell in row(noise, "chat")[1:4])
    used = len({(each.block, each.candidate, each.slot) for each in of.launches})
    assert f"{used} launches (1 more start of some of them; 2 failed), 25 % fewer than the 28 that it" in noise
    assert "drift" in noise


def test_cost_and_energy_with_intervals_and_the_price_they_assume(of: Measured, text: str) -> None:
    cost = section(text, "Cost and energy")
    label, total, output, energy, effect = row(cost, "seqs 32")
    assert label == "seqs 32"
    summary = next(each for each in of.result.results if each.candidate.index == 1).summaries["output_tok_per_s"]
    assert summary.mean is not None
    assert output.startswith(f"${2.5 / 3600 / summary.mean * 1e6:.3f} [0.1")
    assert re.fullmatch(r"\$[\d.]+ \[[\d.]+, [\d.]+\]", total)
    assert re.fullmatch(r"0.1[\d]+ \[0.1[\d]+, 0.1[\d]+\]", energy)
    assert effect.startswith("−")
    assert "Assumes $2.5 an hour" in cost
    assert "long; it sends 8 requests a second and no more" in cost, "such a cost is that of the load"


def test_without_a_price_hours_are_shown(of: Measured) -> None:
    record = replace(of.session, plan={**of.session.plan, "budget": plan_json(plan(budget=Budget()))["budget"]})
    cost = section(markdown(of.result, record, of.launches, of.runs), "Cost and energy")
    assert "hours for a million output tokens" in cost
    assert "The plan has no price" in cost
    assert "$" not in cost


def test_how_it_was_decided_and_what_the_numbers_mean(text: str) -> None:
    said = section(text, "How the verdict is reached")
    three = said.splitlines()[2]
    assert len(re.findall(r"\. [A-Z]", three)) == 2, "three sentences"
    assert "docs/verdict.md" in said
    meaning = section(text, "What the numbers mean")
    assert row(meaning, "p99 TTFT ms")[1].startswith(
        "99th percentile over the requests of a run of the time to first token"
    )
    shown = {line.split(" | ")[0] for line in section(text, "Every metric").splitlines() if line.startswith("| ")}
    assert shown - {"| metric", "| ---"} <= {line.split(" | ")[0] for line in meaning.splitlines()}


def test_html_says_what_markdown_says_and_shows_it(of: Measured, text: str) -> None:
    page = html(of.result, of.session, of.launches, of.runs)
    for title in re.findall(r"^## (.*)$", text, re.MULTILINE):
        assert f">{title.replace(chr(92), '')}</h2>" in page
    assert page.count("<figure>") == 6
    assert "set aside" in page


def test_the_environment_is_there(text: str) -> None:
    found = section(text, "Environment")
    assert row(found, "vLLM") == ["vLLM", "0.33.0"]
    assert row(found, "GPU 0") == ["GPU 0", "NVIDIA H200, 140.4 GiB"]


def test_points_left_out_before_any_launch_and_a_change_of_machine_are_told(of: Measured) -> None:
    point = {"settings": {"max-num-seqs": 0}, "reason": "max-num-seqs < 1"}
    earlier = {**of.session.environment, "vllm": "0.32.0"}
    raw = {**of.session.raw, "left_out": [point], "earlier_environments": [earlier]}
    text = markdown(of.result, replace(of.session, raw=raw))
    assert '- {"max-num-seqs": 0}: max-num-seqs < 1' in section(text, "What left, failed or was rejected")
    assert "- It went on on another machine: vLLM: 0.32.0 then, 0.33.0 now" in section(text, "Before you rely on it")


def test_json_has_the_judgement_with_its_looks(of: Measured) -> None:
    document = json.loads(to_json(of.result, of.session, of.launches, of.runs))
    assert document["schema"] == 1
    chat = document["judgement"]["workloads"]["chat"]
    assert chat["candidates"]["1"]["verdict"] == "better"
    assert [look["blocks"] for look in chat["looks"]] == [1, 2, 3, 4]
    assert document["judgement"]["winner"] == 1
    assert "judgement" not in document["result"]
    assert document["costs"]["price_per_hour"] == 2.5
    assert document["costs"]["workloads"]["chat"]["seqs 32"]["output"]["low"] > 0


def test_a_session_that_has_just_begun_promises_nothing() -> None:
    record = session(plan(), state="running")
    text = markdown(session_result(record, [], [], at(0)), record)
    assert "What to run" not in text
    assert "**Nothing can be said" in text
    assert "<svg" not in html(session_result(record, [], [], at(0)), record, [], [])


def test_nothing_better_leaves_the_default_to_run(of: Measured) -> None:
    judgement = of.result.judgement
    assert judgement is not None
    result = replace(of.result, judgement=replace(judgement, winner=None))
    found = section(markdown(result, of.session), "What to run")
    assert "Nothing was found to be better than the default" in found
    assert "--max-model-len 4096\n" in found


def test_one_of_an_earlier_version_without_verdict(of: Measured) -> None:
    result = replace(of.result, judgement=None)
    text = markdown(result, of.session, of.launches, of.runs)
    assert "**No metric decides" in text
    assert "| candidate | vs default | total tok/s | launches |" in text


def test_an_a_a_session_tells_its_noise_first_and_what_a_session_would_see() -> None:
    aa = played(calibration(big_plan(), 4))
    text = markdown(aa.result, aa.session, aa.launches, aa.runs)
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert titles[:3] == ["Noise and launches", "What a session would see", "chat: decided by total tok/s"]
    seen = section(text, "What a session would see")
    assert "For 5 candidates with this noise" in seen
    effects = [float(row(seen, f"{blocks}")[1].removesuffix(" %")) for blocks in (2, 3, 4, 5, 6)]
    assert effects == sorted(effects, reverse=True)
    assert row(seen, "6")[-1].startswith("$")
    assert "What to run" not in text
    assert "its advantage is no noise" not in text
