import json
import subprocess

import pytest

from engine.records import Installation
from tests.tuning.examples import prefix_workload, random_workload, sharegpt_workload
from tuning.plans.workload_args import bench_argv
from tuning.records import Workload

PARSE = """
import json, sys
from vllm.benchmarks.serve import add_cli_args
from vllm.utils.argparse_utils import FlexibleArgumentParser
for argv in json.load(sys.stdin):
    parser = FlexibleArgumentParser()
    add_cli_args(parser)
    print("parsed", json.dumps({key: str(value) for key, value in vars(parser.parse_args(argv)).items()}))
"""
EVERYTHING = sharegpt_workload(
    shape={"output_len": 8},
    goodput=("ttft:500", "tpot:50"),
    request_rate=2.5,
    burstiness=0.5,
    max_concurrency=8,
    temperature=None,
    extra_args=("--top-p", "0.9"),
)


def argv(workload: Workload, served_name: str | None = None) -> list[str]:
    return list(bench_argv(workload, "/models/m", served_name, "http://127.0.0.1:8000", 5))


def value(arguments: list[str], flag: str) -> str:
    assert arguments.count(flag) == 1
    return arguments[arguments.index(flag) + 1]


def test_the_server_is_named_in_full() -> None:
    arguments = argv(random_workload(), "served")
    assert value(arguments, "--base-url") + value(arguments, "--endpoint") == "http://127.0.0.1:8000/v1/completions"
    assert (value(arguments, "--model"), value(arguments, "--tokenizer")) == ("/models/m", "/models/m")
    assert value(arguments, "--served-model-name") == "served"
    assert "--served-model-name" not in argv(random_workload())


def test_all_that_the_metrics_need_is_asked_for() -> None:
    arguments = argv(random_workload())
    assert value(arguments, "--percentile-metrics") == "ttft,tpot,itl,e2el"
    assert value(arguments, "--metric-percentiles") == "50,90,99"
    assert value(arguments, "--seed") == "5"


def test_random_states_its_shape_and_never_stops_early() -> None:
    arguments = argv(random_workload(shape={"input_len": 64, "output_len": 32, "range_ratio": 0.25, "prefix_len": 16}))
    assert value(arguments, "--dataset-name") == "random"
    assert value(arguments, "--random-input-len") == "64"
    assert value(arguments, "--random-output-len") == "32"
    assert value(arguments, "--random-range-ratio") == "0.25"
    assert value(arguments, "--random-prefix-len") == "16"
    assert "--ignore-eos" in arguments


def test_a_sharegpt_file_is_never_sent_twice() -> None:
    arguments = argv(sharegpt_workload())
    assert value(arguments, "--dataset-path") == "/data/talk.json"
    assert "--no-oversample" in arguments
    assert "--sharegpt-output-len" not in arguments
    assert "--ignore-eos" not in arguments
    assert "--ignore-eos" in argv(sharegpt_workload(ignore_eos=True))


def test_prefix_repetition_states_its_shape() -> None:
    arguments = argv(prefix_workload())
    named = {"prefix-len": "256", "suffix-len": "64", "num-prefixes": "3", "output-len": "16"}
    assert {name: value(arguments, f"--prefix-repetition-{name}") for name in named} == named


def test_numbers_are_written_in_full() -> None:
    arguments = argv(random_workload(request_rate=1234567.25, burstiness=1.0, temperature=0.7, max_concurrency=None))
    assert value(arguments, "--request-rate") == "1234567.25"
    assert value(arguments, "--burstiness") == "1"
    assert value(arguments, "--temperature") == "0.7"
    assert "--max-concurrency" not in arguments
    assert value(argv(random_workload()), "--request-rate") == "inf"
    assert "--temperature" not in argv(EVERYTHING)


def test_goodput_ends_before_the_next_flag_and_extra_arguments_come_last() -> None:
    arguments = argv(EVERYTHING)
    start = arguments.index("--goodput")
    assert arguments[start : start + 4] == ["--goodput", "ttft:500", "tpot:50", "--disable-tqdm"]
    assert arguments[-2:] == ["--top-p", "0.9"]


def test_only_the_seed_differs_between_warm_up_and_run() -> None:
    first, second = (
        argv(random_workload()),
        list(bench_argv(random_workload(), "/models/m", None, "http://127.0.0.1:8000", 6)),
    )
    assert [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]] == [("5", "6")]


def test_an_old_vllm_gets_the_names_that_it_knows() -> None:
    old = list(bench_argv(sharegpt_workload(), "m", None, "http://127.0.0.1:8000", 5, "0.10.2"))
    assert value(old, "--endpoint-type") == "openai"
    assert not {"--backend", "--no-oversample"} & set(old)
    for version in ("0.11.0", "0.32.0+cpu", "1.0", "dev", None):
        new = list(bench_argv(sharegpt_workload(), "m", None, "http://127.0.0.1:8000", 5, version))
        assert value(new, "--backend") == "openai"
        assert "--no-oversample" in new


def test_an_unknown_dataset_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot run dataset 'trace'"):
        argv(random_workload(dataset="trace"))


@pytest.mark.vllm
def test_the_real_parser_takes_the_arguments_of_every_dataset(installation: Installation) -> None:
    adapted = list(bench_argv(random_workload(), "/m", None, "http://127.0.0.1:8000", 5, adapters=("a", "b")))
    wanted = [argv(random_workload(), "served"), argv(prefix_workload()), argv(EVERYTHING), adapted]
    done = subprocess.run(
        [installation.python, "-c", PARSE],
        input=json.dumps(wanted),
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    lines = [line.removeprefix("parsed ") for line in done.stdout.splitlines() if line.startswith("parsed ")]
    random, prefix, sharegpt, to_adapters = [json.loads(line) for line in lines]
    assert (random["served_model_name"], random["random_output_len"], random["request_rate"]) == ("served", "32", "inf")
    assert (prefix["prefix_repetition_num_prefixes"], prefix["ignore_eos"]) == ("3", "True")
    assert (sharegpt["no_oversample"], sharegpt["sharegpt_output_len"], sharegpt["burstiness"]) == ("True", "8", "0.5")
    assert sharegpt["goodput"] == "['ttft:500', 'tpot:50']"
    assert (to_adapters["lora_modules"], random["lora_modules"]) == ("['a', 'b']", "None")
