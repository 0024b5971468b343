"""Secrets in plans: where they may stand, and that no other place or kept text holds one."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import tuning.sessions
from engine.records import Installation
from store.database import open_reader
from store.location import database_file
from tests.tuning.examples import plan
from tuning.plans.plan_file import read_plan
from tuning.plans.plan_secrets import hidden_text
from tuning.records import PlanError
from tuning.report import markdown, to_json
from tuning.results import session_result
from tuning.sessions import create_session
from tuning.sweeping.additions import why_not_added

TOKEN, PASSWORD = "hf_abcdefghijklmnopqrstuvwxyz0123456789", "pa55word-of-mine"
URL = f"https://me:{PASSWORD}@host/x"
PLAN = """\
model = "org/model"
[server]
max-model-len = 4096
{server}
[server.env]
HF_HOME = "/hf"
{env}
[grid]
max-num-seqs = [64]
{grid}
[[workload]]
name = "chat"
dataset = "random"
requests = 4
[budget]
{budget}
"""


def text(**parts: str) -> str:
    return PLAN.format(**{"server": "", "env": "", "grid": "", "budget": "", **parts})


@pytest.mark.parametrize(
    ("parts", "line", "key"),
    [
        ({"server": f'otlp-traces-endpoint = "{URL}"'}, 4, "otlp-traces-endpoint"),
        ({"server": 'hf-token = "short"'}, 4, "hf-token"),
        ({"server": f'paste = "HF_TOKEN={TOKEN} vllm serve org/model"'}, 4, "paste"),
        ({"server": f'kv-transfer-config = {{extra = "{URL}"}}'}, 4, "extra"),
        ({"grid": f'otlp-traces-endpoint = ["{URL}"]'}, 10, "otlp-traces-endpoint"),
        (
            {"budget": f'on_finish = "curl -H \\"Authorization: Bearer {PASSWORD}\\" https://pods/stop"'},
            16,
            "on_finish",
        ),
    ],
)
def test_a_secret_elsewhere_is_refused_by_line_and_not_repeated(parts: dict[str, str], line: int, key: str) -> None:
    with pytest.raises(PlanError) as refused:
        read_plan(text(**parts))
    found = [each for each in str(refused.value).splitlines() if "[server.env]" in each]
    assert any(each.startswith(f"plan.toml:{line}: ") and key in each for each in found)
    assert TOKEN not in str(refused.value)
    assert PASSWORD not in str(refused.value)


def test_what_only_looks_like_one_is_not() -> None:
    budget = 'on_finish = "runpodctl stop pod $RUNPOD_POD_ID"'
    read_plan(text(env=f'HF_TOKEN = "{TOKEN}"', server="""hf-overrides = {eos_token = "</s>"}""", budget=budget))


def test_a_setting_that_is_added_holds_none() -> None:
    assert "password" in str(why_not_added(plan(), {"otlp-traces-endpoint": URL}, []))


def test_the_kept_text_is_the_given_one_with_secrets_hidden() -> None:
    given = text(env=f'HF_TOKEN = "{TOKEN}"  # my token: {TOKEN}\nPORT = 1')
    hidden = hidden_text(given, {"HF_HOME": "/hf", "HF_TOKEN": TOKEN, "PORT": "1"})
    assert hidden is not None
    assert TOKEN not in hidden
    assert tomllib.loads(hidden)["server"]["env"] == {"HF_HOME": "/hf", "HF_TOKEN": "***", "PORT": 1}
    assert hidden.count("\n") == given.count("\n")


@pytest.mark.parametrize(
    ("written", "value"),
    [('HF_TOKEN = "4"', "4"), ('HF_TOKEN = "a\\u0062c-secret"', "abc-secret"), ("no toml", "x")],
    ids=["as short as other texts", "escaped", "no plan"],
)
def test_a_text_that_cannot_be_hidden_is_not_kept(written: str, value: str) -> None:
    assert hidden_text(text(env=written), {"HF_HOME": "/hf", "HF_TOKEN": value}) is None


def test_nothing_of_a_session_holds_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning.sessions, "describe_machine", lambda model, installation: {})
    secret = "a\\b-secret"
    env = {"HF_TOKEN": TOKEN, "PROXY": URL, "MY_PASSWORD": secret}
    installation = Installation("/v", "/p", ("/v",), "/", "0.25.1")
    lines = "\n".join((f'HF_TOKEN = "{TOKEN}"', f'PROXY = "{URL}"', 'MY_PASSWORD = "a\\\\b-secret"'))
    given = text(env=lines)
    of = replace(plan(), server_env=env)
    number = create_session(tmp_path, of, given, installation)
    with open_reader(database_file(tmp_path)) as reader:
        session = reader.session(number)
    result = session_result(session, [], [], session.created_at)
    everything = "\n".join((str(session), markdown(result, session), to_json(result, session, [], [])))
    files = b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
    for each in (TOKEN, PASSWORD, "b-secret"):
        assert each not in everything
        assert each.encode() not in files
    assert tomllib.loads(session.plan_toml)["server"]["env"]["PROXY"] == "https://me:***@host/x"
