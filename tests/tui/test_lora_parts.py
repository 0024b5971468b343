"""What the LoRA screens are made of, without a screen: progress, curves, lines, forms, costs, commands."""

import json
import math
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from lora.base_model import BaseModel, base_of
from lora.memory_free import Holder, MemoryFree
from lora.records import ALL_LINEAR, ATTENTION_QV
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import TrainingRecord
from store.writer import Writer
from tests.tui.conftest import server
from tests.tui.hostile import NUMBERS, TEXTS
from tests.tui.lora_world import (
    BASE,
    PLANNED,
    STEPS,
    a_dataset,
    a_training,
    an_adapter,
    an_evaluation,
    fill,
    progress_lines,
)
from tui import errands
from tui.lora.cost import Cost, cost_of, cost_rows, pace_of, question, steps_of
from tui.lora.curves import charts_of, curve_rows, loss_text, rate_text, trailing_mean
from tui.lora.details import AdapterDetails, DatasetDetails, TrainingDetails, detail_rows
from tui.lora.documents import adapter_parts, dataset_parts
from tui.lora.form import TrainingForm, Wanted, first_form, other_targets, read_form, targets_of
from tui.lora.lines import (
    adapter_line,
    dataset_line,
    matching,
    modules_of,
    served_by,
    size_text,
    training_line,
    training_state,
)
from tui.lora.progress import Progress, ProgressTail, Step, with_record
from tui.lora.source import LoraSource
from tui.lora.words import evaluation_text, perplexity, proof_text
from tui.panels.row import text_of, width_of
from tui.widgets.lora_list import laid, shares
from tuning.document import as_text

# The shape of Qwen2.5-7B, which the issue gives the figures of.
QWEN = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "tie_word_embeddings": False,
}


@pytest.fixture
def qwen() -> BaseModel:
    return base_of(QWEN)


def tail(tmp_path: Path, text: str) -> ProgressTail:
    (tmp_path / "progress.jsonl").write_text(text)
    return ProgressTail(tmp_path / "progress.jsonl")


def shown(rows: Any) -> str:
    return "\n".join(map(text_of, rows))


# progress


def test_progress_is_followed_from_where_it_was_read_to(tmp_path: Path) -> None:
    followed = tail(tmp_path, progress_lines(50))
    first = followed.read()
    assert (len(first.steps), first.planned, first.steps[-1].step) == (50, PLANNED, 50)
    assert followed.read() is first
    with (tmp_path / "progress.jsonl").open("a") as file:
        file.write('{"kind": "step", "step": 51, "loss": 1.5, "sec')
        file.flush()
        assert followed.read() is first  # not a whole line yet
        file.write('onds": 80}\n')
        file.flush()
    assert followed.read().steps[-1] == Step(51, loss=1.5, seconds=80.0)


def test_an_evaluation_joins_its_step(tmp_path: Path) -> None:
    step = tail(tmp_path, progress_lines(40)).read().steps[-1]
    assert step.step == 40
    assert step.loss is not None
    assert step.eval_loss == pytest.approx(1.7661, abs=1e-3)


def test_a_step_told_again_replaces_what_followed(tmp_path: Path) -> None:
    """As after a resumption from the checkpoint of step 2."""
    lines = [{"kind": "step", "step": at, "loss": 9.0 - at} for at in range(1, 6)]
    lines += [{"kind": "eval", "step": 5, "eval_loss": 1.0}, {"kind": "step", "step": 3, "loss": 0.5}]
    found = tail(tmp_path, "".join(f"{json.dumps(line)}\n" for line in lines)).read()
    assert [(step.step, step.loss) for step in found.steps] == [(1, 8.0), (2, 7.0), (3, 0.5)]
    assert found.last("eval_loss") is None


def test_a_resumption_forgets_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"kind": "plan", "step": 0, "steps": 9}]
    lines += [*({"kind": "step", "step": at, "loss": 1.0} for at in range(1, 6))]
    lines.append({"kind": "plan", "step": 4, "steps": 9})
    found = tail(tmp_path, "".join(f"{json.dumps(line)}\n" for line in lines)).read()
    assert [step.step for step in found.steps] == [1, 2, 3, 4]


def test_nothing_that_stands_in_a_file_harms(tmp_path: Path) -> None:
    lines = [
        "not json",
        "[1, 2]",
        '"text"',
        "null",
        '{"kind": "step"}',
        '{"kind": "step", "step": -1, "loss": 1}',
        '{"kind": "step", "step": 1e300, "loss": 1}',
        '{"kind": "step", "step": true, "loss": 1}',
        '{"kind": "step", "step": 1, "steps": "x", "loss": NaN, "gpu_gib": Infinity, "seconds": "soon"}',
        '{"kind": "step", "step": 2, "loss": 1e400, "learning_rate": null}',
        '{"kind": "other", "step": 3, "loss": 1}',
        "[" * 100_000,
        "\x00\xff",
    ]
    found = tail(tmp_path, "\n".join(lines) + "\n").read()
    assert found.steps == (Step(1), Step(2))
    assert found.planned is None
    assert found.seconds_left() is None


def test_a_file_that_became_smaller_is_read_anew(tmp_path: Path) -> None:
    followed = tail(tmp_path, progress_lines(30))
    followed.read()
    (tmp_path / "progress.jsonl").write_text(progress_lines(3))
    assert len(followed.read().steps) == 3


def test_a_file_that_is_not_there_is_no_progress(tmp_path: Path) -> None:
    assert ProgressTail(tmp_path / "none").read() == Progress()
    (tmp_path / "folder").mkdir()
    assert ProgressTail(tmp_path / "folder").read().note == "the progress cannot be read: Is a directory"


def test_time_left_is_at_the_pace_of_the_newest_steps() -> None:
    """An evaluation of a minute between two of them counts for nothing."""
    steps = tuple(Step(at, seconds=2.0 * at + (60.0 if at > 15 else 0.0)) for at in range(1, 31))
    assert Progress(steps, 100).seconds_left() == pytest.approx(2.0 * 70)
    assert Progress(steps[:1], 100).seconds_left() is None
    assert Progress(steps, None).seconds_left() is None
    assert Progress(tuple(Step(at, seconds=5.0) for at in range(9)), 100).seconds_left() is None


def test_without_a_file_the_store_knows_the_curve() -> None:
    raw = {
        "curve": [[1, 2.0], [10, 1.5], "x", [3], [None, 1], [4, float("nan")]],
        "evals": [[0, 2.2], [10, 1.6]],
        "live": {"learning_rate": 1e-4, "tokens_per_s": 900.0, "gpu_gib": 7.5, "loss": "x"},
    }
    found = with_record(Progress(), a_training(step=12, loss=1.4, eval_loss=1.6, raw=raw))
    assert [step.step for step in found.steps] == [0, 1, 10, 12]
    assert (found.last("loss"), found.last("gpu_gib"), found.planned) == (1.4, 7.5, PLANNED)
    assert found.steps[2] == Step(10, loss=1.5, eval_loss=1.6)
    assert with_record(Progress(), a_training(step=None, steps=None)).steps == ()


# curves


@pytest.mark.parametrize(("width", "height"), [(80, 8), (58, 40), (19, 5), (200, 60)])
def test_curves_fill_their_room_and_no_more(tmp_path: Path, width: int, height: int) -> None:
    rows = curve_rows(tail(tmp_path, progress_lines()).read(), width, height)
    assert len(rows) in (height, height - 1)
    assert {width_of(row) for row in rows} == {width}
    text = shown(rows)
    assert "loss" in text
    assert ("learning rate" in text) == (height >= 14)


def test_there_is_no_curve_where_there_is_no_room() -> None:
    assert curve_rows(Progress(), 80, 4) == []
    assert curve_rows(Progress(), 10, 30) == []


def test_an_evaluation_is_told_apart_without_colours(tmp_path: Path) -> None:
    rows = curve_rows(tail(tmp_path, progress_lines()).read(), 80, 20)
    dots = "\n".join(text_of(row) for row in rows[1:])
    assert dots.count("●") == STEPS // 40


def test_single_losses_are_joined_by_their_mean() -> None:
    assert trailing_mean([(1.0, 1.0), (2.0, 3.0), (3.0, 5.0)], 2) == ((2.0, 2.0), (3.0, 4.0))
    few, many = (tuple(Step(at, loss=float(at)) for at in range(1, count)) for count in (12, 61))
    assert [curve.label for curve in charts_of(Progress(few))[0].curves] == ["training", "evaluation"]
    assert [curve.label for curve in charts_of(Progress(many))[0].curves] == ["training", "mean of 10", "evaluation"]
    assert charts_of(Progress(many))[0].curves[1].points[-1] == (60.0, 55.5)


@pytest.mark.parametrize("name", NUMBERS)
def test_no_number_breaks_a_curve(name: str) -> None:
    values = NUMBERS[name]
    steps = tuple(
        Step(at, *(values[(at + of) % len(values)] for of in range(8)))  # no tail lets these through
        for at in range(1, 40)
    )
    for size in ((80, 10), (58, 42)):
        rows = curve_rows(Progress(steps, 50), *size)
        assert {width_of(row) for row in rows} == {size[0]}
        assert "nan" not in shown(rows).lower()
        assert "inf" not in shown(rows).lower()
    assert all(math.isfinite(value) for chart in charts_of(Progress(steps)) for value in chart.values)


def test_figures_are_short_whatever_they_are() -> None:
    assert [rate_text(value) for value in (2e-4, 1.83e-5, 0, 0.4041, None, float("nan"))] == [
        "2e-4", "1.83e-5", "0", "0.404", "–", "–",
    ]  # fmt: skip
    assert [loss_text(value) for value in (1.23456, 1e9, None, float("inf"))] == ["1.235", "1.0e+09", "–", "–"]
    assert [size_text(value) for value in (20_212_345, 5_000, 3 * 10**9, None)] == ["20.2 MB", "5.0 kB", "3.0 GB", "–"]
    assert (perplexity(1.3), perplexity(1e9), perplexity(None)) == ("3.67", "–", "–")


# lines and details


def test_a_training_without_its_keeper_says_that_it_stands_still() -> None:
    assert training_state(a_training(), kept=True) == "▶ running"
    assert training_state(a_training(), kept=False) == "! interrupted"
    assert training_state(a_training(state="done"), kept=False) == "✔ done"


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
        TrainingDetails(training, False, Progress(), dataset, (adapter,)),
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
        ("training", training_line(training, False, Progress())),
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
        TrainingDetails(training, True, with_record(Progress(), training)),
        AdapterDetails(adapter, (adapter,), evaluation=evaluation),
        DatasetDetails(dataset),
    ):
        text = shown(detail_rows(details, 80, 30)).lower()
        assert "nan" not in text
        assert " inf" not in text
    training_line(training, True, with_record(Progress(), training))
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


# the source


def test_the_source_reads_again_only_what_changed(writer: Writer, data_dir: Path) -> None:
    fill(writer, data_dir)
    source = LoraSource(data_dir, lambda _: True)
    with open_reader(database_file(data_dir), remembers=True) as reader:
        first = source.read(reader, ("training", 2))
        assert [line.cells[0] for line in first.training_lines] == ["support-qv", "first"]
        assert [line.cells[0] for line in first.adapter_lines] == ["imported@1", "support-qv@2", "support-qv@1"]
        assert [line.cells[0] for line in first.dataset_lines] == ["tiny", "support"]
        assert first.adapter_lines[1].cells[-1] == "● qwen-lora"
        assert source.read(reader, ("training", 2)) is first
        with (data_dir / "trainings" / "2-support-qv" / "progress.jsonl").open("a") as file:
            file.write('{"kind": "step", "step": 121, "loss": 1.0, "seconds": 182}\n')
        assert source.read(reader, ("training", 2)).training_lines[0].cells[2] == f"121/{PLANNED}"
        with open_writer(database_file(data_dir)) as other:
            other.insert(an_adapter(3))
        assert source.read(reader, ("adapter", 2)).adapter_lines[0].cells[0] == "support-qv@3"
        details = source.read(reader, ("adapter", 2)).details
        assert isinstance(details, AdapterDetails)
        assert [one.version for one in details.versions] == [1, 2, 3]
        assert details.evaluation is not None
        assert source.read(reader, ("adapter", 99)).details is None


# the form


def wanted(form: TrainingForm, **dataset: Any) -> Wanted:
    found = read_form(form, [a_dataset(id=1, **dataset)])
    assert isinstance(found, Wanted), found
    return found


FORM = TrainingForm(dataset="support", model=BASE, name="mine")


def test_the_form_is_read_into_settings() -> None:
    found = wanted(replace(FORM, targets="q_proj, v_proj", epochs="", steps="60", checkpointing="no", eval_every="5"))
    assert found.name == "mine"
    assert (found.settings.targets, found.settings.steps, found.settings.epochs) == (ATTENTION_QV, 60, None)
    assert (found.settings.gradient_checkpointing, found.settings.eval_every) == (False, 5)
    assert found.settings.validation == pytest.approx(0.1)
    assert wanted(FORM).settings.targets == ALL_LINEAR


@pytest.mark.parametrize(
    ("changes", "mistake"),
    [
        ({"dataset": "other"}, "data set: there is none called 'other'; there are support"),
        ({"model": " "}, "model: name the folder"),
        ({"name": "a b"}, "adapter: 'a b' is no name"),
        ({"name": ""}, "adapter: '' is no name"),
        ({"r": "0"}, "rank r: '0' is no whole number of at least 1"),
        ({"r": "99999999999999999999999"}, "rank r:"),
        ({"r": "²"}, "rank r:"),
        ({"alpha": "nan"}, "alpha: 'nan' is not a number above 0"),
        ({"dropout": "1"}, "dropout: '1' is not a share"),
        ({"learning_rate": "fast"}, "learning rate: 'fast' is not a number"),
        ({"learning_rate": "inf"}, "learning rate: 'inf'"),
        ({"batch": "1.5"}, "batch: '1.5' is no whole number"),
        ({"steps": "5"}, "give epochs or steps, one of the two"),
        ({"epochs": ""}, "give epochs or steps, one of the two"),
        ({"targets": " , "}, "targets: name layers, or all-linear"),
        ({"quantization": "int8"}, "weights: 'int8' is not one of nf4, none"),
        ({"checkpointing": "maybe"}, "recompute: 'maybe' is not one of yes, no"),
        ({"eval_every": "x"}, "evaluate: 'x' is no whole number"),
        ({"seed": "-1"}, "seed: '-1'"),
        ({"warmup": "2"}, "warm-up: '2' is not a share"),
    ],
)
def test_what_is_wrong_is_said_by_its_field(changes: dict[str, str], mistake: str) -> None:
    found = read_form(replace(FORM, **changes), [a_dataset(id=1)])
    assert isinstance(found, list)
    assert any(line.startswith(mistake) for line in found), found


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_text_breaks_the_form(text: str) -> None:
    form = TrainingForm(**dict.fromkeys(asdict(TrainingForm()), text))
    found = read_form(form, [a_dataset(id=1, name=text)])
    assert isinstance(found, list)
    rows = cost_rows(Cost(mistakes=tuple(found)), 80)
    assert all(text_of(row).isprintable() for row in rows)
    first_form([a_dataset(id=1, name=text, model=text)], like=a_training(settings={"r": text, "targets": [text]}))


def test_one_key_changes_between_all_layers_and_the_two() -> None:
    assert other_targets("all-linear") == "q_proj, v_proj"
    assert other_targets("q_proj v_proj") == "all-linear"
    assert other_targets("k_proj") == "q_proj, v_proj"
    assert targets_of("a, b a") == ("a", "b")


def test_the_form_begins_with_what_was_chosen_and_last_used() -> None:
    sets = [a_dataset(id=2, name="newer", model=None), a_dataset(id=1)]
    assert first_form(sets).dataset == "newer"
    assert (first_form(sets, model="/m").model, first_form(sets, 1).model) == ("/m", BASE)
    like = first_form(sets, like=a_training())
    assert (like.dataset, like.targets, like.learning_rate, like.epochs) == ("support", "q_proj, v_proj", "2e-4", "3")
    assert first_form([]).dataset == ""


# what it comes to


def test_the_users_own_setting_on_the_shape_of_qwen(qwen: BaseModel) -> None:
    """r 16 on q_proj and v_proj: the figures of the issue."""
    form = replace(FORM, r="16", alpha="16", targets="q_proj, v_proj")
    free = MemoryFree("GPU 0 (NVIDIA H200)", True, 131.0, 140.4)
    cost = cost_of(wanted(form), qwen, free)
    text = shown(cost_rows(cost, 100))
    assert "5,046,272 parameters in 56 layers, of 7,620,662,784 (0.066 %), 20.2 MB" in text
    assert "540: 1,440 conversations, 8 a step, 3 epochs" in text
    assert "✔ it fits: needs about" in text
    assert "GPU 0 (NVIDIA H200) has 131.0 of 140.4 free" in text
    assert "not known yet" in text


def test_who_holds_the_memory_is_named(qwen: BaseModel) -> None:
    holders = (Holder("pid 7 (server 3 qwen-7b) 130.7 GiB", 130.7, 7, 3), Holder("pid 9 1.2 GiB", 1.2, 9))
    free = MemoryFree("GPU 0", True, 1.5, 140.4, holders)
    cost = cost_of(wanted(FORM), qwen, free)
    text = shown(cost_rows(cost, 100))
    assert "✗" in text
    assert "GiB too little" in text
    assert "pid 7 (server 3 qwen-7b) 130.7 GiB, pid 9 1.2 GiB" in text
    assert "^g stops server 3" in text
    assert [one.server_id for one in cost.stoppable] == [3]
    assert "too little free" in question(cost)


def test_what_cannot_be_told_is_not_told(qwen: BaseModel) -> None:
    unknown = shown(cost_rows(cost_of(wanted(FORM), "its layers are not known here", None), 80))
    assert "its size is not known: its layers are not known here" in unknown
    assert "what it needs is not known" in unknown
    unread = cost_of(wanted(FORM), qwen, MemoryFree("GPU 0", True, None, None))
    assert unread.short_gib is None
    assert "what is free cannot be read" in shown(cost_rows(unread, 80))
    assert "asking what is free" in shown(cost_rows(cost_of(wanted(FORM), qwen, None), 80))


def test_a_target_that_the_model_lacks_is_a_mistake(qwen: BaseModel) -> None:
    cost = cost_of(wanted(replace(FORM, targets="q_proj w_pack")), qwen, None)
    assert cost.mistakes[0].startswith("targets: no layer of the model is called w_pack")


@pytest.mark.parametrize(
    ("examples", "batch", "accumulation", "epochs", "steps"),
    [(1440, 1, 8, 3.0, 540), (9, 1, 8, 3.0, 6), (9, 2, 8, 0.5, 1), (0, 1, 1, 1.0, 1), (100, 4, 4, 2.5, 18)],
)
def test_steps_are_counted_as_a_trainer_does(
    examples: int, batch: int, accumulation: int, epochs: float, steps: int
) -> None:
    settings = wanted(FORM).settings
    made = replace(settings, batch=batch, accumulation=accumulation, epochs=epochs)
    assert steps_of(made, examples) == steps
    assert steps_of(replace(made, epochs=None, steps=7), examples) == 7


def test_the_pace_is_that_of_the_same_model() -> None:
    settings, sets = wanted(replace(FORM, batch="2")).settings, [a_dataset(id=1)]
    done = a_training(id=4, step=540, seconds=810.0)
    found = pace_of(settings, sets[0], [done], sets)
    assert found is not None
    assert found.seconds == pytest.approx(3.0)  # twice the conversations a step
    assert found.basis == "training 4, 1.50 s a step"
    shorter = a_dataset(id=2, train_tokens=216_000)
    half = pace_of(settings, shorter, [done], [*sets, shorter])
    assert half is not None
    assert half.seconds == pytest.approx(1.5)
    others: list[TrainingRecord] = [
        replace(done, base_model="/other"),
        replace(done, seconds=float("nan")),
        replace(done, step=1),
        replace(done, settings={}),
    ]
    assert pace_of(settings, sets[0], others, sets) is None


# commands


def test_a_command_goes_on_by_itself_and_says_what_came_of_it(tmp_path: Path) -> None:
    errand = errands.begin(tmp_path, "listing", ["lora", "list"], None)
    deadline = time.monotonic() + 30
    while errand.status is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert errand.status == 0
    assert errand.outcome().startswith("there is no adapter yet")
    assert errand.log.stat().st_mode & 0o777 == 0o600


def test_a_command_that_fails_says_so(tmp_path: Path) -> None:
    errand = errands.begin(tmp_path, "showing x", ["lora", "show", "x"], None)
    assert errand.process.wait(30) != 0
    assert errand.outcome().startswith("showing x: ")
    assert "nothing has been recorded" in errand.outcome()


def test_what_is_said_of_an_adapter_stands_apart_from_its_heads() -> None:
    adapter = an_adapter(losses={"base_validation": 2.155}, served={"verdict": "in effect"})
    told = [text_of(row) for row in detail_rows(AdapterDetails(adapter, (adapter,)), 60, 30)]
    assert any(line.startswith(" losses    base validation 2.155") for line in told)
    assert all(line[10] == " " for line in told[1:] if line.strip())
