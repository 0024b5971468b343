"""Text from outside and long histories on the LoRA screens."""

from pathlib import Path

import pytest

from store.evaluation_job import EvaluationJobRecord
from store.writer import Writer
from tests.store.examples import an_evaluation_job
from tests.tui.conftest import fed, server
from tests.tui.hostile import TEXTS
from tests.tui.lora.pilot import LARGE, SMALL, Deeds, is_on, on_lora, shows
from tests.tui.lora_world import SETTINGS, a_dataset, a_training, an_adapter
from tests.tui.test_hostile import page
from tui.app import LlmtuneApp
from tui.widgets.confirm import Confirm


@pytest.mark.parametrize("name", TEXTS)
async def test_no_text_breaks_the_lora_screens(
    name: str, app: LlmtuneApp, writer: Writer, data_dir: Path, deeds: Deeds
) -> None:
    kept = TEXTS[name].encode(errors="replace").decode().replace("\0", "")
    writer.insert(a_dataset(name=kept, model=kept, path=kept[:50], report={"advice": [kept], "learnt": kept}))
    writer.insert(
        a_training(
            name=kept,
            adapter_name=kept,
            base_model=kept,
            path="trainings/1",
            message=kept,
            environment={"gpu": kept},
            settings={**SETTINGS, "targets": [kept]},
        )
    )
    writer.insert(
        an_adapter(name=kept, base_model=kept, path="a/1", notes=kept, gpu=kept, losses={kept: 1.0}, training_id=1)
    )
    live = {"stage": kept, "seconds_left": kept}
    job = an_evaluation_job(1, name=kept, data=kept, path=kept, message=kept, state="running", raw={"live": live})
    number = writer.insert(job)
    writer.insert(server(data_dir, name=kept, model=kept, command=["vllm", "--lora-modules", f"a={data_dir}/a/1"]))
    folder = data_dir / "trainings" / "1"
    folder.mkdir(parents=True)
    (folder / "progress.jsonl").write_bytes(TEXTS[name].encode(errors="surrogateescape") + b"\n")
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await on_lora(pilot, "trainings")
        await shows(pilot, "▶ running")
        steps = (("enter",), ("escape", "x"), ("n", "j"), ("enter",), ("v",), ("escape", "j", "enter"), ("escape", "n"))
        for step in steps:
            await pilot.press(*step)
            await fed(pilot)
            page(pilot)
        await pilot.press("escape", "escape", "k")
        await fed(pilot)
        await pilot.press("x")
        await is_on(pilot, Confirm)
        page(pilot)
        await pilot.press("n", "D")
        await fed(pilot)
        page(pilot)
        writer.update(EvaluationJobRecord, number, state="failed")
        await fed(pilot)
        page(pilot)
        for size in ((120, 40), LARGE):
            await pilot.resize_terminal(*size)
            await fed(pilot)
            page(pilot)


async def test_a_long_history_opens_at_once(app: LlmtuneApp, writer: Writer, deeds: Deeds) -> None:
    with writer.transaction():
        for at in range(300):
            writer.insert(a_dataset(name=f"set-{at}"))
            writer.insert(a_training(name=f"training-{at}", state="done", dataset_id=1, path=f"trainings/{at}"))
            writer.insert(an_adapter(at + 1))
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot, "training-299")
        await pilot.press("end")
        await shows(pilot, "training-0 ")
        await pilot.press("down")
        await shows(pilot, "support-qv@300")
        page(pilot)
