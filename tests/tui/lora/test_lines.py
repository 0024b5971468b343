"""Trainings, adapters and data sets as lines and details."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.launch.adapter_flags import modules_of
from tests.tui.conftest import server
from tests.tui.hostile import TEXTS
from tests.tui.lora_world import (
    BASE,
    a_dataset,
    a_training,
    an_adapter,
    an_evaluation,
    shown,
)
from tui.lora.details import AdapterDetails, DatasetDetails, TrainingDetails, detail_rows
from tui.lora.documents import adapter_parts, dataset_parts
from tui.lora.lines import (
    adapter_line,
    dataset_line,
    matching,
    served_by,
    training_line,
)
from tui.lora.progress import Doing, Progress, Step, with_record
from tui.lora.standing import training_state, unkept_text
from tui.lora.words import evaluation_text, proof_text
from tui.panels.row import text_of, width_of
from tui.widgets.lora_list import laid, shares
from tuning.document import as_text


def test_a_training_without_its_keeper_says_whether_it_computes_on() -> None:
    assert training_state(a_training(), "kept", Progress()) == "▶ running"
    assert training_state(a_training(), "left", Progress()) == "! interrupted"
    assert training_state(a_training(), "alone", Progress()) == "! computes on"
    assert training_state(a_training(state="done"), "left", Progress()) == "✔ done"
    for held, end, words in (
        ("kept", None, ""),
        ("alone", None, "its trainer computes on: R follows it again"),
        ("left", None, "its trainer has ended: R goes on from the newest checkpoint"),
        ("left", "done", "its trainer is done: R registers the adapter"),
    ):
        assert unkept_text(a_training(), held, Progress(end=end)).endswith(words)  # type: ignore[arg-type]
    assert unkept_text(a_training(state="failed"), "left", Progress()) == ""


@pytest.mark.parametrize(
    ("doing", "state", "said"),
    [
        (Doing("loading"), "▶ loading", "loads the model"),
        (Doing("evaluation", 40, 12, 160), "▶ evaluating", "evaluates 12 of 160"),
        (Doing("evaluation"), "▶ evaluating", "evaluates"),
        (Doing("checkpoint", 1200), "▶ saving", "writes the checkpoint of step 1,200"),
        (Doing("adapter"), "▶ saving", "writes the adapter"),
    ],
)
def test_what_takes_long_beside_the_steps_is_said(doing: Doing, state: str, said: str) -> None:
    progress = Progress(tuple(Step(at, seconds=float(at)) for at in range(9)), 540, doing=doing)
    assert training_state(a_training(), "kept", progress) == state
    details = TrainingDetails(a_training(id=1), "kept", progress)
    top = text_of(detail_rows(details, 100, 20)[0])
    assert said in top
    assert "left" not in top
    steps = replace(details, progress=replace(progress, doing=None))
    assert "about 8:52 left" in text_of(detail_rows(steps, 100, 20)[0])
    early = replace(details, progress=Progress(progress.steps[:1], 540))
    assert "time left not known yet" in text_of(detail_rows(early, 100, 20)[0])
    gone = TrainingDetails(a_training(id=1), "left", progress)
    assert said not in shown(detail_rows(gone, 100, 20)), "whoever has ended does nothing any more"


def test_adapters_are_served_where_their_folder_is(tmp_path: Path) -> None:
    folder = str(tmp_path / "adapters" / "a" / "1")
    one = server(tmp_path, command=["vllm", "serve", BASE, "--lora-modules", "x=/other", f"a={folder}/", "--port", "1"])
    two = server(tmp_path, command=["vllm", "serve", f"--lora-modules={json.dumps({'name': 'a', 'path': folder})}"])
    none = server(tmp_path, command=["vllm", "--lora-modules", "{broken", "[1]", "--max-loras", "a=1"])
    assert modules_of(one) == {"x": "/other", "a": f"{folder}/"}
    assert modules_of(none) == {}
    loaded = server(tmp_path, command=none.command, raw={"spec": {"flags": {"lora-modules": [f"a={folder}", 3, "x"]}}})
    assert modules_of(loaded) == {"a": folder}
    assert modules_of(server(tmp_path, raw={"spec": {"flags": {"lora-modules": 3}}})) == {}
    adapter = an_adapter(name="a", id=7)
    found = served_by([one, two, none], [adapter], lambda record: str(tmp_path / record.path))
    assert found == {7: (one, two)}
    assert adapter_line(adapter, found[7]).cells[-1] == "● qwen-7b +1"
    assert adapter_line(adapter, ()).cells[-1] == "○ nowhere"


def test_the_filter_finds_every_word() -> None:
    lines = [dataset_line(a_dataset(id=1)), dataset_line(a_dataset(id=2, name="other"))]
    assert [line.id for line in matching(lines, "SUPPORT alpaca")] == [1]
    assert [line.id for line in matching(lines, "")] == [1, 2]


def test_lists_share_the_room() -> None:
    assert shares([1, 1, 1], 12) == [1, 1, 1]
    assert shares([0, 0, 0], 12) == [1, 1, 1]
    assert shares([100, 2, 100], 12) == [5, 2, 5]
    assert shares([100, 100, 100], 2) == [1, 1, 1]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("width", [20, 60, 80, 140])
def test_no_text_leaves_its_row(name: str, width: int) -> None:
    text = TEXTS[name]
    training = a_training(
        id=1,
        name=text,
        state="failed",
        base_model=text,
        adapter_name=text,
        message=text,
        environment={"gpu": text, "torch": text},
        settings={"r": text, "targets": [text], "quantization": text, "batch": text},
    )
    adapter = an_adapter(
        id=1,
        name=text,
        base_model=text,
        signature=text,
        notes=text,
        gpu=text,
        imported_from=text,
        parameters={"r": text, "targets": text, "alpha": [text]},
        losses={text: 1.0, "validation": text},
        served={text: text, "state": text, "at": text, "server_id": text},
    )
    dataset = a_dataset(
        id=1,
        name=text,
        model=text,
        created_at="no time",
        sources=[{"path": text, "form": text, "bytes": text}, text],
        report={"left_out": [{"what": text, "number": text, "lines": [text]}, 3], "advice": [text], "learnt": text},
    )
    evaluation = an_evaluation(1, answers=[{"prompt": text, "base": text, "adapter": text}, text])
    served = server(Path("/x"), name=text)
    found = (
        TrainingDetails(training, "left", Progress(), dataset, (adapter,)),
        AdapterDetails(adapter, (adapter,), (served,), training, evaluation),
        DatasetDetails(dataset, (training,)),
    )
    for details in found:
        for height in (9, 40):
            rows = detail_rows(details, width, height)
            assert {width_of(row) for row in rows} <= {width}
            assert len(rows) <= height
            assert all(char.isprintable() for char in shown(rows).replace("\n", ""))
    lines = (
        ("training", training_line(training, "left", Progress())),
        ("adapter", adapter_line(adapter, (served,))),
        ("dataset", dataset_line(dataset)),
    )
    for kind, line in lines:
        assert laid(kind, line.cells, 80).replace("\n", "").isprintable()  # type: ignore[arg-type]
    as_text(dataset_parts(found[2]))
    as_text(adapter_parts(found[1], [evaluation], text))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1, 1e300, 10**400, None, "x", True])
def test_no_number_leaves_its_row(number: Any) -> None:
    training = a_training(
        id=1, step=number, steps=number, loss=number, eval_loss=number, seconds=number, settings={"r": number}
    )
    adapter = an_adapter(id=1, size_bytes=number, seconds=None, losses={"validation": number}, parameters={"r": number})
    dataset = a_dataset(id=1, train_examples=number, train_tokens=number, report={"length_tokens": {"median": number}})
    evaluation = an_evaluation(1, base_loss=number, adapter_loss=number, difference=number, low=number, records=number)
    for details in (
        TrainingDetails(training, "kept", with_record(Progress(), training)),
        AdapterDetails(adapter, (adapter,), evaluation=evaluation),
        DatasetDetails(dataset),
    ):
        text = shown(detail_rows(details, 80, 30)).lower()
        assert "nan" not in text
        assert " inf" not in text
    training_line(training, "kept", with_record(Progress(), training))
    adapter_line(adapter, ())
    dataset_line(dataset)


def test_what_an_evaluation_found_stands_in_a_line() -> None:
    assert evaluation_text(an_evaluation(1)) == (
        "loss 1.300 against 2.100 of its base: −0.800 [−0.910, −0.690], perplexity 8.17 → 3.67, better on 147 of 160 "
        "records"
    )


def test_the_last_proof_stands_in_a_line() -> None:
    losses = {"base": 2.1, "adapter": 1.3}
    served = {"at": "2026-11-30T12:00:00.000Z", "state": "proved", "server_id": 3, "losses": losses}
    assert "server 3: in effect: its answers are likelier" in proof_text(served)
    assert proof_text(served).endswith("loss 1.300 against 2.100")
    assert "NOT in effect" in proof_text({"state": "nothing"})
    assert proof_text({}) == ""


def test_what_is_said_of_an_adapter_stands_apart_from_its_heads() -> None:
    adapter = an_adapter(losses={"base_validation": 2.155}, served={"verdict": "in effect"})
    told = [text_of(row) for row in detail_rows(AdapterDetails(adapter, (adapter,)), 60, 30)]
    assert any(line.startswith(" losses    base validation 2.155") for line in told)
    assert all(line[10] == " " for line in told[1:] if line.strip())
