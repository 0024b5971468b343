"""What the tests with a real training share: it takes half a minute, so there is one."""

import json
from pathlib import Path

import pytest

from engine.records import Installation
from store.records import TrainingRecord
from tests.lora.real_place import LEARNS, RealPlace


@pytest.fixture(scope="session")
def real_place(tmp_path_factory: pytest.TempPathFactory, installation: Installation, model_dir: Path) -> RealPlace:
    folder = tmp_path_factory.mktemp("real")
    made = RealPlace(folder / "data", installation, model_dir)
    made.prepare(folder / "seven.jsonl")
    return made


@pytest.fixture(scope="session")
def whole(real_place: RealPlace) -> TrainingRecord:
    """A training that nothing interrupted, followed by lines of JSON; its adapter is `whole@1`."""
    done = real_place.train("whole", *LEARNS, "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["type"] for line in lines} == {"event", "step", "result"}
    assert lines[-1]["adapter"]["version"] == 1
    assert lines[-1]["training"]["state"] == "done"
    return real_place.training("whole")
