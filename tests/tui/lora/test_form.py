"""The form of a training as settings, and what is wrong with it."""

from dataclasses import asdict, replace

import pytest

from lora.records import ALL_LINEAR, ATTENTION_QV
from tests.tui.hostile import TEXTS
from tests.tui.lora_world import (
    BASE,
    FORM,
    a_dataset,
    a_training,
    wanted,
)
from tui.lora.cost import Cost, cost_rows
from tui.lora.form import TrainingForm, first_form, other_targets, read_form, targets_of
from tui.panels.row import text_of


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
