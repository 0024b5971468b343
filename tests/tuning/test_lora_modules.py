"""Adapters in a plan: whom a workload's requests address, on which candidate."""

import json
from dataclasses import replace

import pytest

from tests.tuning.examples import plan, random_workload
from tuning.plans.grid import candidates
from tuning.plans.lora_modules import addressed, module_names, unknown
from tuning.plans.plan_file import plan_toml, read_plan
from tuning.plans.plan_json import plan_from_json, plan_json
from tuning.plans.workload_args import bench_argv
from tuning.records import Plan, PlanError
from tuning.reporting.load import load_text

TWO = ["a=/adapters/a/1", '{"name": "b", "path": "/adapters/b/2"}']
SETTINGS = {"enable-lora": True, "lora-modules": TWO, "max-loras": 2, "max-lora-rank": 16}
WORKLOAD = random_workload(adapters=("b", "a"))


def with_adapters() -> Plan:
    one = {**SETTINGS, "lora-modules": TWO[:1], "max-loras": 1}
    return plan(grid={}, explicit_candidates=(one, SETTINGS), workloads=(WORKLOAD, random_workload("base")))


def test_names_are_read_in_each_form_that_vllm_takes() -> None:
    assert module_names(TWO) == ("a", "b")
    assert module_names("a=/x=y") == ("a",)
    assert module_names({"name": "c", "path": "/c"}) == ("c",)
    assert module_names(["plain", "{broken", "", 7, {"path": "/x"}]) == ()


def test_a_workload_addresses_what_the_server_has_and_else_the_base() -> None:
    assert addressed(WORKLOAD, SETTINGS) == ("b", "a")
    assert addressed(WORKLOAD, {"lora-modules": TWO[:1]}) == ("a",)
    assert addressed(WORKLOAD, {}) == ()
    assert addressed(random_workload(), SETTINGS) == ()
    assert unknown(WORKLOAD, [{}, {"lora-modules": TWO[:1]}]) == ("b",)


def test_the_benchmark_is_told_whom_to_ask() -> None:
    argv = bench_argv(WORKLOAD, "/m", None, "http://x", 7, adapters=("b", "a"))
    at = argv.index("--lora-modules")
    assert argv[at + 1 : at + 4] == ("b", "a", "--num-prompts")
    assert "--lora-modules" not in bench_argv(WORKLOAD, "/m", None, "http://x", 7)


def test_such_a_plan_reads_back_equal_and_its_candidates_are_told_by_names() -> None:
    written = with_adapters()
    assert read_plan(plan_toml(written), check_model=lambda model: None) == written
    assert plan_from_json(json.loads(json.dumps(plan_json(written)))) == written
    assert [each.label for each in candidates(written)[0]] == [
        "default",
        "lora on · adapters a · max-loras 1 · rank 16",
        "lora on · adapters a, b · max-loras 2 · rank 16",
    ]


def test_a_session_of_before_knows_no_adapters() -> None:
    document = plan_json(plan())
    for workload in document["workloads"]:
        del workload["adapters"]
    assert plan_from_json(document) == plan()


def test_an_adapter_that_no_server_has_is_a_mistake() -> None:
    written = with_adapters()
    text = plan_toml(replace(written, workloads=(random_workload(adapters=("a", "helper")),)))
    with pytest.raises(PlanError, match="\"chat\" addresses 'helper', which no server of the plan has"):
        read_plan(text, check_model=lambda model: None)
    served = replace(written, server={**written.server, "lora-modules": ["helper=/h"]})
    workloads = (random_workload(adapters=("a", "helper")),)
    assert read_plan(plan_toml(replace(served, workloads=workloads)), check_model=lambda model: None).workloads


def test_a_report_says_to_whom_the_requests_go() -> None:
    assert "to the adapters b, a, as far as a candidate serves them, else to the base." in load_text(WORKLOAD)
    assert "adapters" not in load_text(random_workload())
