"""The comparison as text, Markdown and JSON."""

import json

from rich.cells import cell_len

from tests.tuning.compared.measured import a_plan, a_side
from tuning.compared.comparing import compare
from tuning.compared.report import parts
from tuning.compared.report_json import to_json
from tuning.document import Table, as_markdown, as_text

COMPARED = compare(
    a_side(effects={1: 0.04, 2: -0.2}), a_side(effects={1: 0.04, 2: -0.1}, id=15, seed=2, begins=200_000)
)


def test_the_sentence_comes_first_and_the_machines_before_the_numbers() -> None:
    text = as_text(parts(COMPARED))
    lines = [line for line in text.split("\n") if line]
    assert lines[0] == 'Session 14 "knobs" (A) against 15 "knobs" (B)'
    assert lines[1] == COMPARED.sentence
    assert text.index("environments do not differ") < text.index("B against A") < text.index("What this can say")


def test_a_table_of_a_terminal_fits_eighty_cells() -> None:
    tables = [each for each in parts(COMPARED) if isinstance(each, Table)]
    assert len(tables) == 1
    assert all(cell_len(line) <= 78 for line in as_text(tables).split("\n"))
    seqs = next(row for row in tables[0].rows if row[0] == "seqs 256")
    assert seqs[1].endswith("✗")
    assert seqs[4] == "differs"


def test_markdown_has_the_intervals_and_every_metric() -> None:
    text = as_markdown(parts(COMPARED, all_metrics=True, wide=True))
    assert "mean TTFT ms, which decides nothing" in text
    assert ", n 4 ✓ |" in text
    assert "| the default itself | 2" in text


def test_json_has_all_of_it() -> None:
    document = to_json(COMPARED)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    (workload,) = document["workloads"]
    first = workload["metrics"][0]
    assert first["decides"] is True
    assert set(first["candidates"][0]["difference"]) == {"change", "low", "high"}
    assert first["candidates"][0]["a"]["verdict"] == "better"


def test_hostile_names_stay_text() -> None:
    plan = a_plan(name="x\x1b[31m\n| [a](b) |\u202e")
    compared = compare(a_side(plan), a_side(plan, id=15, begins=200_000))
    for text in (
        as_text(parts(compared)),
        as_markdown(parts(compared, all_metrics=True, wide=True)),
        json.dumps(to_json(compared)),
    ):
        assert "\x1b" not in text
        assert "\u202e" not in text
