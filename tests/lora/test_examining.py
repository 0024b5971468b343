"""The report on a file: every record is accounted for, and what to do is said."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from lora.data.examining import examine
from lora.data.faults import KINDS, REPAIRS, counts, lines_text
from lora.data.records import Counted, Examination, FaultKind
from lora.data.report import refuse_unusable, report_json, report_lines
from lora.data.report_text import lines_of_report
from lora.records import DataUnfit, Example


def alpaca(number: int, **more: Any) -> dict[str, Any]:
    return {"instruction": f"question {number}", "input": "", "output": f"answer {number}"} | more


def written(folder: Path, records: Sequence[Any]) -> Path:
    path = folder / "data.jsonl"
    lines = [each if isinstance(each, str) else json.dumps(each) for each in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def counting(lengths: dict[str, int | str], template: str = "model", ends: bool = True) -> Any:
    """A tokenizer that finds 10 tokens in everything but where it is told otherwise, by the last answer."""

    def count(examples: Sequence[Example]) -> Counted:
        found = [lengths.get(example.messages[-1].content, 10) for example in examples]
        return Counted(template, "<|end|>", ends, tuple(one if isinstance(one, str) else (one, 4) for one in found))

    return count


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    return written(
        tmp_path,
        [
            *[alpaca(number) for number in range(60)],
            "{broken",  # 61
            alpaca(3),  # 62
            alpaca(100, output=""),  # 63
            {
                "conversations": [
                    {"from": "gpt", "value": "x"},
                    {"from": "human", "value": "q"},
                    {"from": "gpt", "value": "a"},
                ]
            },
            {"text": "nothing"},  # 65
            alpaca(101, output="long"),  # 66
            alpaca(102, output="bad"),  # 67
        ],
    )


def test_every_record_is_accounted_for(mixed: Path) -> None:
    count = counting({"long": 5000, "bad": "turn 2 holds <|im_end|>"})
    found = examine(mixed, max_length=1024, model="m", count=count)
    assert found.records == 67
    assert counts(found.faults) == {
        "broken": 1, "unknown_form": 1, "empty_answer": 1, "duplicate": 1, "too_long": 1, "template": 1,
    }  # fmt: skip
    assert [fault.line for fault in found.faults] == [61, 62, 63, 65, 66, 67]
    assert counts(found.repairs) == {"leading_answer": 1}
    assert found.usable == 61 == found.records - len(found.faults)
    assert len(found.validation) == 6
    assert found.forms == {"alpaca": 64, "sharegpt": 1, "unknown": 1}
    assert all((example.tokens, example.answer_tokens) == (10, 4) for example in found.train)


def test_the_report_tells_lines_reasons_and_what_to_do(mixed: Path) -> None:
    count = counting({"long": 5000, "bad": "turn 2 holds <|im_end|>"})
    text = "\n".join(report_lines(examine(mixed, max_length=1024, model="m", count=count)))
    for said in (
        "67 records, JSON lines, form alpaca, sharegpt",
        "1 broken: no JSON (line 61; line 61: expecting property name",
        "1 said before, word for word (line 62; line 62: as line 4)",
        "1 with an empty answer (line 63)",
        "1 longer than the limit (line 66; line 66: 5,000 tokens)",
        "turn 2 holds <|im_end|>",
        "1 begin with an answer: it is left off (line 64)",
        "median 10, 95 % up to 10, longest 5,000 tokens, limit 1,024",
        "244 of 610 tokens bear loss",
        "55 train, 6 validation (10 % wanted, seed 0)",
        "user      question 0",
        "records of several forms: 64 alpaca",
        "1 are longer than the limit: --max-length 10 keeps 95 %, --max-length 5000 keeps all",
        "a validation of 6 says little",
    ):
        assert said in text or said.replace("--max-length 10 keeps 95 %, ", "") in text, said


def test_the_report_as_json_is_finite_and_whole(mixed: Path) -> None:
    report = report_json(examine(mixed, max_length=1024, model="m", count=counting({"long": 5000})))
    json.dumps(report, allow_nan=False)
    assert report["left_out"][0] == {
        "kind": "broken",
        "what": "broken: no JSON",
        "number": 1,
        "lines": [61],
        "details": ["expecting property name enclosed in double quotes at column 2"],
    }
    assert report["tokens"] == 620
    assert report["length_tokens"]["longest"] == 5000
    assert (report["train"], report["validation"]) == (56, 6)


def test_without_a_tokenizer_lengths_are_not_known(tmp_path: Path) -> None:
    found = examine(written(tmp_path, [alpaca(number) for number in range(30)]))
    assert found.lengths is None
    assert report_json(found)["tokens"] is None
    text = "\n".join(report_lines(found))
    assert "characters" in text
    assert "--model says whose tokenizer" in text


@pytest.mark.parametrize(
    ("template", "ends", "said"),
    [("plain", True, "no chat template"), ("model", False, "does not end an answer with <|end|>"), ("model", True, "")],
)
def test_what_the_template_means_for_serving_is_said(tmp_path: Path, template: str, ends: bool, said: str) -> None:
    path = written(tmp_path, [alpaca(number) for number in range(300)])
    advice = report_json(examine(path, model="m", count=counting({}, template, ends)))["advice"]
    assert said in "\n".join(advice)
    assert bool(advice) == bool(said)


def test_one_answer_for_all_is_told(tmp_path: Path) -> None:
    found = examine(written(tmp_path, [alpaca(number, output="Yes") for number in range(300)]))
    assert "300 of 300 last answers are the same" in "\n".join(report_json(found)["advice"])


def test_no_validation_is_told_with_its_reason(tmp_path: Path) -> None:
    same = written(tmp_path, [alpaca(1, output=f"{number}") for number in range(30)])
    assert "all begin with the same question" in "\n".join(report_json(examine(same))["advice"])
    assert "(--validation 0)" in "\n".join(report_json(examine(same, share=0.0))["advice"])


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([{"question_id": 1, "turns": ["a", "b"]}], "no question with an answer (fields: question_id, turns)"),
        ([{"text": "a"}], "rename fields to instruction and output"),
        ([alpaca(1, output="")], "of 1 records none can be used, most are with an empty answer"),
        (["[]"], "no records"),
    ],
)
def test_a_file_of_which_nothing_can_be_used_says_what_it_holds(tmp_path: Path, records: list[Any], said: str) -> None:
    found = examine(written(tmp_path, records))
    assert report_lines(found)  # the report stands all the same
    with pytest.raises(DataUnfit) as raised:
        refuse_unusable(found)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_text_of_the_file_is_shown_clean(tmp_path: Path) -> None:
    hostile = "\x1b[31mred\x1b[0m [bold]\u202e\nx"
    found = examine(written(tmp_path, [alpaca(1, instruction=hostile, **{"\x1b[2Jkey": "x"}), {hostile: 1}]))
    text = "\n".join(report_lines(found)) + json.dumps(report_json(found))
    assert not any(sign in text for sign in ("\x1b", "\u202e", "\\u001b", "\\u202e"))
    assert "red [bold]" in text


def test_many_lines_are_told_by_the_first_of_them(tmp_path: Path) -> None:
    assert lines_text([3]) == "line 3"
    assert lines_text([9, 3, 3]) == "lines 3, 9"
    assert lines_text(range(1, 2001)) == "lines 1, 2, 3, 4, 5 and 1,995 more"


def test_every_kind_that_is_found_has_words() -> None:
    """A kind that is not in the tables would vanish from the report."""
    assert set(get_args(FaultKind)) == {*KINDS, *REPAIRS}


def test_examination_is_the_same_each_time(mixed: Path) -> None:
    first: Examination = examine(mixed, seed=3)
    assert first == examine(mixed, seed=3)


def test_a_kept_report_reads_as_it_did(mixed: Path) -> None:
    found = examine(mixed, max_length=1024, model="m", count=counting({"long": 5000}))
    kept = json.loads(json.dumps(report_json(found)))
    assert lines_of_report(kept, 80) == report_lines(found, 80)
    assert max(map(len, report_lines(found, 80)[1:])) <= 80
    assert lines_of_report({}) == [": – records, a file, form none"]


def test_more_lines_than_are_kept_are_counted(tmp_path: Path) -> None:
    found = examine(written(tmp_path, [alpaca(0), *["{"] * 200]))
    assert any("200 broken: no JSON (lines 2, 3, 4, 5, 6 and 195 more;" in line for line in report_lines(found))


def test_keys_in_the_data_do_not_reach_the_report(tmp_path: Path) -> None:
    key = "hf_" + "a1B2" * 8
    found = examine(written(tmp_path, [alpaca(0, output=f"Use {key}.")]))
    assert found.train[0].messages[1].content == f"Use {key}."
    assert key not in json.dumps(report_json(found))
