"""An adapter whose files are changed while a sweep serves it."""

import os
from pathlib import Path

import pytest

from engine.launch.installation import find_vllm
from lora.adapters.registry import Origin, adapter_folder, register
from store.database import open_writer
from store.location import database_file
from tests.faults.stand_in_vllm import make_installation, make_model
from tests.faults.world import PLAN, World, until
from tests.lora.made_adapters import write_adapter
from tuning.plans.plan_file import read_plan
from tuning.sessions import create_session, start_keeper

ADAPTED = """
[grid]
candidates = [{{ enable-lora = true, lora-modules = ["chat={folder}"] }}]
"""


@pytest.mark.faults
def test_a_sweep_ends_at_a_changed_adapter_and_goes_on_with_the_right_one(tmp_path: Path) -> None:
    _, environ = make_installation(tmp_path / "vllm")
    world = World(tmp_path / "data", environ)
    with open_writer(database_file(world.data_dir)) as writer:
        made = register(writer, world.data_dir, write_adapter(tmp_path / "made"), "chat", Origin("org/tiny"))
    folder = adapter_folder(world.data_dir, made.adapter)
    text = PLAN.format(model=make_model(tmp_path / "model"), blocks=2).replace(
        "[grid]\nmax-num-seqs = [2, 4, 6]\n", ADAPTED.format(folder=folder)
    )
    installation = find_vllm(str(tmp_path / "vllm" / "bin" / "vllm"), {**os.environ, **environ})
    weights = folder / "adapter_model.safetensors"
    good = weights.read_bytes()
    try:
        world.session_id = create_session(world.data_dir, read_plan(text), text, installation)
        start_keeper(world.data_dir, world.session_id, {}, {**os.environ, **environ})
        until(lambda: len(world.counted()) >= 1, 30, "a run is done")
        weights.write_bytes(good[:-4] + b"\0\0\0\0")
        until(lambda: world.session().state == "failed", 60, "the sweep ends")
        assert "chat@1 is not what was registered: adapter_model.safetensors has changed" in (
            world.session().message or ""
        )
        until(lambda: not world.kept(), 10, "its keeper has ended")
        kept = world.counted()
        refused = world.llmtune("resume", str(world.session_id))
        assert (refused.returncode, "adapter_model.safetensors has changed" in refused.stderr) == (1, True)
        weights.write_bytes(good)
        start_keeper(world.data_dir, world.session_id, {}, {**os.environ, **environ})
        until(lambda: world.session().state == "done", 60, "it goes on to its end")
        assert kept.items() <= world.counted().items()
        assert world.counted() == dict.fromkeys(world.planned(), 1)
        until(lambda: not world.kept(), 10, "its keeper has ended")
        world.nothing_left()
    finally:
        world.clean_up()
