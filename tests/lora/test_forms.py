"""Each form as a conversation, and each way in which a record is none."""

import json
from typing import Any

import pytest

from lora.data.forms import convert
from lora.data.records import Converted, Record


def made(value: dict[str, Any]) -> Converted:
    return convert(Record(7, value))


def turns(value: dict[str, Any]) -> list[tuple[str, str]]:
    converted = made(value)
    assert not converted.faults, converted.faults
    (example,) = converted.examples
    assert example.line == 7
    return [(message.role, message.content) for message in example.messages]


def fault(value: dict[str, Any]) -> tuple[str, str]:
    converted = made(value)
    assert not converted.examples
    (one,) = converted.faults
    assert one.line == 7
    return one.kind, one.detail


def said(*texts: str, human: str = "user", machine: str = "assistant") -> list[dict[str, str]]:
    return [{"role": (human, machine)[index % 2], "content": text} for index, text in enumerate(texts)]


AB = [("user", "a"), ("assistant", "b")]


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("alpaca", {"instruction": "a", "input": "", "output": "b"}),
        ("alpaca", {"instruction": "a", "input": "<noinput>", "output": "b"}),
        ("alpaca", {"instruction": "a", "output": " b \n"}),
        ("alpaca", {"Instruction": "a", "Input": None, "Response": "b"}),
        ("alpaca", {"messages": None, "conversations": None, "instruction": "a", "output": None, "response": "b"}),
        ("messages", {"messages": said("a", "b")}),
        ("messages", {"messages": [{"role": "system", "content": ""}, *said("a", "b")]}),
        ("messages", {"messages": json.dumps(said("a", "b"))}),
        ("messages", {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}, said("", "b")[1]]}),
        ("sharegpt", {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}),
        ("sharegpt", {"conversation": said("a", "b", human="User", machine="bot")}),
        ("prompt/completion", {"prompt": "a", "completion": " b"}),
        ("prompt/completion", {"question": "a", "answer": "b"}),
        ("prompt/completion", {"input": "a", "output": "b"}),
        ("prompt/completion", {"prompt": said("a"), "completion": [{"role": "assistant", "content": "b"}]}),
        ("self-instruct", {"instruction": "a", "instances": [{"input": "", "output": "b"}]}),
    ],
)
def test_forms_are_told_apart_by_their_fields(form: str, value: dict[str, Any]) -> None:
    assert made(value).form == form
    assert turns(value) == AB


def test_an_input_follows_the_instruction() -> None:
    assert turns({"instruction": "Add", "input": "1 2", "output": 3})[0] == ("user", "Add\n\n1 2")
    assert turns({"instruction": "Add", "input": "1 2", "output": 3})[1] == ("assistant", "3")
    assert turns({"instruction": "Add", "context": "1 2", "response": 3})[0] == ("user", "Add\n\n1 2")
    assert turns({"question": "Add", "context": "1 2", "answer": 3})[0] == ("user", "Add\n\n1 2")
    assert turns({"input": "Add", "context": "1 2", "output": 3})[0] == ("user", "Add\n\n1 2")


def test_system_and_history_come_first() -> None:
    value = {"instruction": "c", "output": "d", "system": "s", "history": [["a", "b"]]}
    assert turns(value) == [("system", "s"), *AB, ("user", "c"), ("assistant", "d")]


def test_a_task_with_several_instances_gives_as_many_conversations() -> None:
    value = {"instruction": "a", "instances": [{"input": "1", "output": "x"}, {"input": "2", "output": ""}]}
    converted = made(value)
    assert [example.messages[0].content for example in converted.examples] == ["a\n\n1"]
    assert [one.kind for one in converted.faults] == ["empty_answer"]


def test_indentation_of_more_than_one_line_stays() -> None:
    value = {"prompt": "a", "completion": "\r\n\n    x = 1\r\n    return x\r\n\n"}
    assert turns(value)[1][1] == "    x = 1\n    return x"


@pytest.mark.parametrize(
    ("value", "kind", "detail"),
    [
        ({"instruction": "a", "output": ""}, "empty_answer", ""),
        ({"instruction": "a", "output": " \n"}, "empty_answer", ""),
        ({"instruction": "a", "output": None}, "empty_answer", ""),
        ({"instruction": "a", "output": float("nan")}, "empty_answer", ""),
        ({"instruction": "", "output": "b"}, "empty_question", ""),
        ({"instruction": "a", "output": {"x": 1}}, "not_text", "output"),
        ({"instruction": "a", "output": True}, "not_text", "output"),
        ({"instruction": "a", "output": "\ud83d"}, "half_character", "output"),
        ({"instruction": "a", "output": "\udce9"}, "encoding", "output"),
        ({"instruction": "a", "instances": []}, "no_answer", "no instances"),
        ({"messages": []}, "no_answer", "0 turns"),
        ({"messages": said("a")}, "no_answer", "one turn"),
        ({"messages": said("a", "b", "c", "")}, "empty_answer", ""),
        ({"messages": [*said("a", "b"), *said("", "c")[1:]]}, "roles", "two assistant turns in a row"),
        ({"messages": [*said("a"), *said("b", "c")]}, "roles", "two user turns in a row"),
        ({"messages": [*said("a"), {"role": "system", "content": "s"}, *said("b", "c")[1:]]}, "roles", "a system turn"),
        ({"messages": said("x", "b")[1:]}, "roles", "an answer without a question"),
        ({"messages": said("a", "b", machine="wizard")}, "unknown_role", "turn 2: 'wizard'"),
        ({"messages": [{"content": "a"}, *said("a", "b")[1:]]}, "unknown_role", "turn 1 has none"),
        ({"messages": said("a", "b", machine="tool")}, "tools", "turn 2"),
        ({"messages": [*said("a"), {"role": "assistant", "content": None, "tool_calls": [1]}]}, "tools", "turn 2"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "not_text", "turn 1"),
        ({"messages": ["a", "b"]}, "not_text", "turn 1"),
        ({"messages": "no list"}, "not_text", ""),
        ({"prompt": "a", "chosen": "b", "rejected": "c"}, "preference", ""),
        ({"turns": ["a", "b"], "question_id": 1}, "no_answer", "fields: turns, question_id"),
        ({"text": "a"}, "unknown_form", "fields: text"),
        ({}, "unknown_form", "no fields"),
    ],
)
def test_what_cannot_be_used_says_why(value: dict[str, Any], kind: str, detail: str) -> None:
    found, why = fault(value)
    assert found == kind
    assert detail in why


def test_cut_conversations_are_used_without_what_was_cut() -> None:
    converted = made({"messages": [*said("x", "z")[1:], *said("a", "b", "c")]})
    assert [(message.role, message.content) for message in converted.examples[0].messages] == AB
    assert [one.kind for one in converted.repairs] == ["leading_answer", "open_question"]


def test_fields_that_nothing_is_made_of_are_named() -> None:
    value = {"messages": [{"role": "user", "content": "a"}, {**said("", "b")[1], "weight": 1}], "id": 1, "tag": ""}
    assert made(value).unused == ("id", "turn.weight")


def test_names_of_fields_are_clean() -> None:
    value = {"messages": [{"role": "user", "content": "a"}, {**said("", "b")[1], "\x1b[2Jx": 1}], "\x1b[1my": 1}
    assert made(value).unused == ("turn.x", "y")
