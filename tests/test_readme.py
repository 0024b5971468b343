"""The README promises nothing that is not there."""

import re
from pathlib import Path

import pytest

from tui.cli import build_parser, split_rest
from tuning.plans.grid import candidates
from tuning.plans.plan_file import read_plan
from tuning.records import RUN_METRICS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_its_plan_is_one() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", README, flags=re.DOTALL)
    plan = read_plan(text)
    points, skipped = candidates(plan)
    assert len(points) == 5
    assert not skipped
    assert [workload.name for workload in plan.workloads] == ["chat", "prefix"]


@pytest.mark.parametrize("line", re.findall(r"^    llmtune (.+?)(?:  .*)?$", README, flags=re.MULTILINE))
def test_its_commands_are_understood(line: str) -> None:
    alternatives = [line.replace("|".join(words), word) for words in _choices(line) for word in words] or [line]
    for one in alternatives:
        own, _ = split_rest(one.replace("SESSION", "1").replace("CANDIDATE", "2").split())
        build_parser().parse_args(own)


def _choices(line: str) -> list[list[str]]:
    return [group.split("|") for group in re.findall(r"\S+\|\S+", line)]


def test_it_names_every_metric() -> None:
    explained = README.replace("`mean_`", "mean").replace("ITL", "itl")
    missing = [
        name
        for name in RUN_METRICS
        if not name.endswith(("_ttft_ms", "_itl_ms", "_tpot_ms", "_e2el_ms")) and f"`{name}`" not in explained
    ]
    assert missing == []


def test_its_pictures_exist() -> None:
    pictures = set(re.findall(r"\]\((docs/images/\S+?)\)", README))
    assert pictures
    assert [name for name in pictures if not (ROOT / name).is_file()] == []
