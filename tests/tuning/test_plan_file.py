import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.records import EngineError
from tests.tuning.examples import plan, prefix_workload, random_workload, sharegpt_workload
from tuning.plans.demo import demo_plan
from tuning.plans.plan_file import load_plan, plan_toml, read_plan
from tuning.plans.plan_json import plan_from_json, plan_json
from tuning.records import Budget, Decide, Plan, PlanError

CONTRACT = """\
name = "awq knobs"
model = "org/qwen3-14b-awq"
served_name = "qwen3-14b-awq"
vllm = "/venv/bin/vllm"
screen = "fresh"

[server]
max-model-len = 4096
[server.env]
HF_HOME = "/hf"

[grid]
max-num-batched-tokens = [2048, 8192]
gpu-memory-utilization = [0.90, 0.95]
max_num_seqs = [64, 256]
[[skip]]
when = "max-num-batched-tokens < max-num-seqs"

[[workload]]
name = "chat"
dataset = "sharegpt"
path = "talk.json"
requests = 200
request_rate = 10
max_concurrency = 10
temperature = 0
ignore_eos = false
warmup = 1
repeats = 3

[decide]
metric = {chat = "output_tok_per_s"}
limits = ["chat.p99_ttft_ms <= 500", "error_rate == 0"]

[budget]
hours = 6
gpu_price_per_hour = 0.44
money = 5.0
"""
SMALL = """\
model = "org/model"
[grid]
max-num-seqs = [64]
[[workload]]
name = "chat"
dataset = "random"
requests = 10
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    turns = [{"from": "human", "value": "Who are you?"}, {"from": "gpt", "value": "A model."}]
    (tmp_path / "talk.json").write_text(json.dumps([{"id": "1", "conversations": turns}]))
    return tmp_path


def mistakes(text: str, where: str = "plan.toml") -> list[str]:
    with pytest.raises(PlanError) as caught:
        read_plan(text, where, check_model=lambda model: None)
    return str(caught.value).split("\n")


def small(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new)


def test_the_plan_of_the_contract_is_read(folder: Path) -> None:
    read = read_plan(CONTRACT, str(folder / "plan.toml"))
    assert read.name == "awq knobs"
    assert read.vllm == "/venv/bin/vllm"
    assert read.server == {"max-model-len": 4096}
    assert read.server_env == {"HF_HOME": "/hf"}
    assert read.grid["max-num-seqs"] == (64, 256)
    (chat,) = read.workloads
    assert (chat.path, chat.request_rate, chat.max_concurrency) == (str(folder / "talk.json"), 10.0, 10)
    assert (chat.temperature, chat.warmup, chat.repeats, chat.ignore_eos) == (0.0, 1, 3, False)
    assert read.decide == Decide(
        metric={"chat": "output_tok_per_s"}, limits=("chat.p99_ttft_ms <= 500", "error_rate == 0")
    )
    assert read.budget == Budget(hours=6.0, gpu_price_per_hour=0.44, money=5.0)


def test_what_is_not_said_has_a_default() -> None:
    read = read_plan(SMALL, "knobs.toml")
    assert read.name == "knobs"
    assert read.workloads[0].request_rate is None
    assert read.workloads[0].shape == {"input_len": 1024, "output_len": 128, "range_ratio": 0.0, "prefix_len": 0}
    assert read.decide == Decide()


@pytest.mark.parametrize(
    "written",
    [
        demo_plan("org/model", "vllm"),
        demo_plan("org/model", None, gpu=True),
        plan(
            served_name="m",
            vllm="/venv/bin/vllm",
            server={"enforce-eager": True, "dtype": 'ha"lf', "hf-overrides": {"a": 1}, "allowed-origins": ["a", "b"]},
            server_env={"HF_HOME": "/hf\\x"},
            skip=("max-num-seqs > 100 and dtype == 'half'",),
            workloads=(
                random_workload(request_rate=2.5, temperature=None, goodput=("ttft:500",), extra_args=("--top-p", "1")),
                prefix_workload(burstiness=0.5, max_concurrency=4, warmup=0),
            ),
            decide=Decide(metric={"chat": "p99_ttft_ms"}, smallest_effect=0.03, error=0.1, blocks=6),
            budget=Budget(hours=1.5, gpu_price_per_hour=2.0, money=3.0, on_finish="echo 'done'"),
        ),
        plan(calibrate=True, grid={}),
    ],
    ids=["demo", "demo on a GPU", "everything", "A/A"],
)
def test_a_written_plan_reads_back_equal(written: Plan) -> None:
    assert read_plan(plan_toml(written), check_model=lambda model: None) == written
    assert plan_from_json(json.loads(json.dumps(plan_json(written)))) == written


def test_a_written_plan_with_a_file_reads_back_equal_from_anywhere(folder: Path) -> None:
    written = plan(workloads=(sharegpt_workload(path=str(folder / "talk.json"), shape={"output_len": 8}),))
    assert read_plan(plan_toml(written), "/elsewhere/plan.toml") == written


def test_every_mistake_is_reported_with_its_line(folder: Path) -> None:
    broken = (
        CONTRACT.replace("max_num_seqs = [64, 256]", "max-num-seq = [64, 256]")
        .replace("requests = 200", "requests = -200")
        .replace("warmup = 1", "warm_up = 1")
        .replace('"error_rate == 0"', '"error == 0"')
        .replace("hours = 6", 'hours = "6"')
    )
    assert mistakes(broken, str(folder / "p.toml")) == [
        f"{folder}/p.toml:15: [grid] max-num-seq: did you mean max-num-seqs?",
        f"{folder}/p.toml:23: [[workload]] requests: must be a whole number of at least 1, not -200",
        f"{folder}/p.toml:28: [[workload]] warm_up: unknown key; did you mean warmup?",
        f"{folder}/p.toml:33: [decide] limits: 'error' is not a metric; did you mean error_rate?",
        f"{folder}/p.toml:36: [budget] hours: must be a number above 0, not '6'",
    ]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("model = ", 1, "not TOML"),
        ("a = 1\na = 2", 2, "not TOML"),
        ('nmae = "x"\n' + SMALL, 1, "nmae: unknown key; did you mean name"),
        (small('"org/model"', "3"), 1, "model: must be a text in quotes, not 3"),
        (small('model = "org/model"\n', ""), 1, "names no model"),
        (small("[grid]\nmax-num-seqs = [64]\n", ""), 1, "there is no [grid]: name at least one flag"),
        (small("max-num-seqs = [64]\n", ""), 2, "[grid] is empty: name at least one flag"),
        (small("[64]", "[]"), 3, "[grid] max-num-seqs: has no values; give it at least one, or delete the line"),
        (small("[64]", "64"), 3, "must be a list of values, as max-num-seqs = [64]"),
        (small("[64]", "[64, 0]"), 3, "[grid] max-num-seqs: must be a whole number of at least 1, not 0"),
        (small("[64]", "[true]"), 3, "not true"),
        (small("max-num-seqs = [64]", "gpu-memory-utilization = [0.9, 92]"), 3, "at most 1, not 92"),
        (small("max-num-seqs = [64]", "gpu-memory-utilisation = [0.9]"), 3, "did you mean gpu-memory-utilization?"),
        (small("max-num-seqs", "port"), 3, "[grid] port: cannot be varied"),
        (small("[64]", "[64]\nmax_num_seqs = [2]"), 4, "stands twice"),
        (small("[64]", "[64]\ncandidates = [{max-num-seqs = 1}]"), 4, "in place of the other lines"),
        (small("max-num-seqs = [64]", "candidates = []"), 3, "has no entries"),
        (small("max-num-seqs = [64]", "candidates = [\n{a = 1},\n{max-num-seq = 2}]"), 5, "did you mean max-num-seqs"),
        (small("[grid]", "[server]\nport = 8000\n[grid]"), 3, "[server] port: a sweep chooses a free port"),
        (small("[grid]", "[server]\nmax-num-seqs = -1\n[grid]"), 3, "[server] max-num-seqs: must be a whole number"),
        (small("[grid]", "[server.env]\nA = [1]\n[grid]"), 3, "[server] env.A: must be a text"),
        (small("[grid]", 'screen = "hot"\n[grid]'), 2, '"hot" cannot be done yet'),
        (small("[grid]", '[[skip]]\nwhen = "a <"\n[grid]'), 3, "[[skip]] when: column 4"),
        (small("[grid]", "[[skip]]\n[grid]"), 2, "[[skip]] needs a condition"),
        (small('name = "chat"\n', ""), 4, "[[workload]] needs a name"),
        (small('"chat"', '"a.b"'), 5, "letters, digits"),
        (small('"random"', '"trace"'), 6, '"trace" cannot be run yet'),
        (small('"random"', '"custom"'), 6, '"custom" cannot be run yet'),
        (small('"random"', '"sharedgpt"'), 6, "is not known; use one of random, sharegpt"),
        (small("requests = 10\n", ""), 4, "needs the number of requests"),
        (SMALL + 'request_rate = "fast"\n', 8, 'or "inf", not'),
        (SMALL + "request_rate = 0\n", 8, "above 0"),
        (SMALL + "request_rate = nan\n", 8, "above 0"),
        (SMALL + "range_ratio = 1.0\n", 8, "below 1"),
        (SMALL + "suffix_len = 3\n", 8, "unknown key"),
        (SMALL + 'path = "x.json"\n', 8, "takes no file"),
        (SMALL + "temperature = -1\n", 8, "at least 0"),
        (SMALL + "repeats = 0\n", 8, "at least 1"),
        (SMALL + "repeats = 1000000\n", 8, "at most 100"),
        (SMALL + 'goodput = ["ttft:500", "tbt:3"]\n', 8, "METRIC:MILLISECONDS"),
        (SMALL + 'ignore_eos = "no"\n', 8, "true or false"),
        (SMALL + '[[workload]]\nname = "chat"\ndataset = "random"\nrequests = 1\n', 9, "used twice"),
        (SMALL + '[decide]\nmetric = "tok_per_s"\n', 9, "is not a metric; did you mean"),
        (SMALL + '[decide]\nmetric = {talk = "p99_ttft_ms"}\n', 9, "metric.talk: no workload"),
        (SMALL + "[decide]\nblocks = 0\n", 9, "at least 1"),
        (SMALL + "[decide]\nblocks = 14\n", 9, "at most 13"),
        ('calibrate = "yes"\n' + SMALL, 1, "calibrate: must be true or false"),
        (SMALL + "[decide]\nsmallest_effect = 2\n", 9, "below 1"),
        (SMALL + "[budget]\nmoney = 3\n", 9, "add gpu_price_per_hour"),
        (SMALL + "[budget]\nhours = -3\n", 9, "above 0"),
        (small("[[workload]]", "[workload]"), 4, "must be written as [[workload]], once for each"),
        (small('[[workload]]\nname = "chat"\ndataset = "random"\nrequests = 10\n', ""), 1, "there is no [[workload]]"),
    ],
)
def test_a_mistake_is_one_line_that_says_where_and_what(text: str, line: int, said: str) -> None:
    found = mistakes(text)
    assert len(found) == 1
    assert found[0].startswith(f"plan.toml:{line}: ")
    assert said in found[0]


def test_names_with_control_characters_stay_on_their_line() -> None:
    assert mistakes('"a\\nb\\u001b[2J" = 1\n' + SMALL) == ["plan.toml:1: 'a\\nb\\x1b[2J': unknown key"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (small("org/model", "a\\u0000b"), 1),
        ('name = "a\\nb"\n' + SMALL, 1),
        (small("[64]", '["a\\u001b[2J"]'), 3),
        (small("[grid]", '[server.env]\nA = "\\u0000"\n[grid]'), 3),
        (small("[grid]", '[server.env]\n"A=B" = "x"\n[grid]'), 3),
        (small('"random"', f'"sharegpt"\npath = "{"x" * 5000}"'), 7),
        (small('"random"', '"sharegpt"\npath = "~nobody-here/x"'), 7),
    ],
)
def test_what_no_name_or_path_can_be_is_a_mistake_of_its_line(text: str, line: int) -> None:
    (found,) = mistakes(text)
    assert found.startswith(f"plan.toml:{line}: ")
    assert found.isprintable()


def test_flags_that_only_look_like_a_knob_are_left_alone() -> None:
    read = read_plan(small("max-num-seqs = [64]", "max-num-active-seqs = [64]\nmax-num-scheduled-tokens = [64]"))
    assert list(read.grid) == ["max-num-active-seqs", "max-num-scheduled-tokens"]


def test_a_prefix_needs_a_request() -> None:
    text = small('"random"', '"prefix_repetition"') + "num_prefixes = 11\n"
    assert "each prefix needs at least one request" in mistakes(text)[0]


@pytest.mark.parametrize("fix", ["[server]\nnum-gpu-blocks-override = 9", '[server.env]\nVLLM_CPU_KVCACHE_SPACE = "1"'])
def test_a_utilization_that_would_do_nothing_is_not_varied(fix: str) -> None:
    text = small("[grid]\nmax-num-seqs = [64]", f"{fix}\n[grid]\ngpu-memory-utilization = [0.5]")
    (found,) = mistakes(text)
    assert found.startswith("plan.toml:4: grid: gpu-memory-utilization does nothing while ")
    assert read_plan(small("[grid]", f"{fix}\n[grid]")).grid == {"max-num-seqs": (64,)}


def test_explicit_candidates_stand_in_place_of_the_product() -> None:
    read = read_plan(small("max-num-seqs = [64]", "candidates = [{max_num_seqs = 4}, {dtype = 'half'}]"))
    assert read.explicit_candidates == ({"max-num-seqs": 4}, {"dtype": "half"})
    assert read.grid == {}


def test_a_plan_that_calibrates_needs_no_grid() -> None:
    read = read_plan("calibrate = true\n" + small("[grid]\nmax-num-seqs = [64]\n", ""))
    assert (read.calibrate, read.grid) == (True, {})
    assert read_plan("calibrate = true\n" + SMALL).grid == {"max-num-seqs": (64,)}  # there, and not used


def test_a_plan_of_an_earlier_version_does_not_calibrate() -> None:
    kept = plan_json(plan())
    del kept["calibrate"]
    assert plan_from_json(kept) == plan()


def test_a_pasted_line_becomes_the_baseline() -> None:
    pasted = "vllm serve org/other --port 9000 --host 0.0.0.0 --served-model-name m --max-num-seqs 32 --enforce-eager"
    text = small('model = "org/model"', f'[server]\npaste = "{pasted}"\nmax-num-seqs = 8')
    read = read_plan(text)
    assert (read.model, read.served_name) == ("org/other", "m")
    assert read.server == {"max-num-seqs": 8, "enforce-eager": True}


def test_a_pasted_line_that_is_none_is_a_mistake() -> None:
    found = mistakes(small("[grid]", '[server]\npaste = "ls -l"\n[grid]'))
    assert found[0].startswith("plan.toml:3: [server] paste: ")


def test_a_model_that_is_none_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found = None
    with pytest.raises(PlanError) as caught:
        read_plan(small("org/model", "empty"), str(tmp_path / "plan.toml"))
    found = str(caught.value)
    assert found.startswith(f"{tmp_path}/plan.toml:1: model: {tmp_path}/empty is not a model folder")

    def refuse(model: str) -> None:
        raise EngineError(f"{model} is no model")

    with pytest.raises(PlanError, match=r"plan.toml:1: model: org/model is no model"):
        read_plan(SMALL, check_model=refuse)


def test_files_beside_the_plan_that_flags_name_come_back_absolute(tmp_path: Path) -> None:
    (tmp_path / "chat.jinja").touch()
    text = SMALL.replace("[grid]\n", '[server]\nchat-template = "chat.jinja"\n[grid]\ntokenizer = [".", "org/name"]\n')
    plan = read_plan(text, str(tmp_path / "plan.toml"), check_model=lambda name: None)
    assert plan.server["chat-template"] == str(tmp_path / "chat.jinja")
    assert plan.grid["tokenizer"] == (str(tmp_path), "org/name")


def test_a_model_and_a_program_beside_the_plan_come_back_absolute(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    text = small('"org/model"', '"model"\nvllm = "venv/bin/vllm"')
    read = read_plan(text, str(tmp_path / "plan.toml"), check_model=lambda model: None)
    assert (read.model, read.vllm) == (str(tmp_path / "model"), str(tmp_path / "venv/bin/vllm"))
    assert read_plan(small('"org/model"', '"org/model"\nvllm = "vllm"')).vllm == "vllm"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no file"),
        ("", "not JSON"),
        ("{}", "not JSON in ShareGPT's form"),
        ("[1, 2]", "has no conversations"),
        ('[{"prompt": "x"}]', "has no conversations"),
        ('[{"conversations": [{"from": "human"}]}]', "has no conversations with a value"),
        ('[{"conversations": [{"value": "one turn"}]}]', "no conversation of two turns"),
        ("[]", "no conversation of two turns"),
        ('[{"conversations": [', "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_a_dataset_that_cannot_serve_is_a_mistake(tmp_path: Path, content: str | bytes | None, said: str) -> None:
    file = tmp_path / "talk.json"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    text = small('"random"', '"sharegpt"\npath = "talk.json"')
    (found,) = mistakes(text, str(tmp_path / "plan.toml"))
    assert found.startswith(f"{tmp_path}/plan.toml:7: [[workload]] path: ")
    assert said in found


def test_only_the_head_of_a_large_dataset_is_read(tmp_path: Path) -> None:
    turns = [{"from": "human", "value": "x" * 400_000}, {"from": "gpt", "value": "y"}]
    entries = json.dumps([{"conversations": turns}] * 4)
    (tmp_path / "talk.json").write_text(entries[:-30] + "broken far below")
    text = small('"random"', '"sharegpt"\npath = "talk.json"')
    assert read_plan(text, str(tmp_path / "plan.toml")).workloads[0].dataset == "sharegpt"


def test_sharegpt_needs_a_file() -> None:
    assert "sharegpt needs a file" in mistakes(small('"random"', '"sharegpt"'))[0]


def test_a_plan_is_loaded_from_its_file(folder: Path) -> None:
    file = folder / "plan.toml"
    file.write_text(CONTRACT)
    assert load_plan(file) == read_plan(CONTRACT, str(file))
    assert replace(load_plan(file), name="x").workloads[0].path == str(folder / "talk.json")


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_plan_that_cannot_be_read_is_said_in_a_line(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "plan.toml").write_bytes(content)
    with pytest.raises(PlanError, match=r"plan.toml: (there is no such plan|cannot read the plan)") as caught:
        load_plan(tmp_path / "plan.toml")
    assert "\n" not in str(caught.value)
