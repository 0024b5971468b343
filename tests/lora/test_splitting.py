"""Duplicates, and parts between which nothing leaks."""

import pytest

from lora.data.splitting import split, without_duplicates
from lora.records import Example, Message


def example(*texts: str, line: int = 1) -> Example:
    roles = ("user", "assistant")
    return Example(tuple(Message(roles[index % 2], text) for index, text in enumerate(texts)), line)  # type: ignore[arg-type]


def many(number: int) -> list[Example]:
    return [example(f"question {index}", f"answer {index}", line=index + 1) for index in range(number)]


def test_the_first_of_each_conversation_is_kept_and_the_others_are_told() -> None:
    examples = [
        example("a  b", "caf\u00e9", line=1),
        example("a b", "cafe\u0301 ", line=2),  # the same in another form of Unicode
        example("A b", "caf\u00e9", line=3),  # another case is another text to learn
        example("a b", "caf\u00e9", "c", "d", line=4),
    ]
    kept, faults = without_duplicates(examples)
    assert [one.line for one in kept] == [1, 3, 4]
    assert [(fault.line, fault.kind, fault.detail) for fault in faults] == [(2, "duplicate", "as line 1")]


@pytest.mark.parametrize("seed", range(20))
def test_questions_that_are_alike_stay_on_one_side(seed: int) -> None:
    examples = [
        *many(30),
        *[example(f"Question {index}?!", "another answer", line=100 + index) for index in range(30)],
        *[
            example(f"question {index}", f"answer {index}", f"go on {index}", "no", line=200 + index)
            for index in range(30)
        ],
    ]
    parts = split(examples, 0.2, seed)
    assert len(parts.validation) == 18
    assert len(parts.train) == 72
    sides = [{each.line % 100 % 31 for each in side if each.line >= 100} for side in (parts.train, parts.validation)]
    assert not sides[0] & sides[1]
    assert parts.shared == 90
    assert parts.overlap == 0


def test_the_seed_alone_decides() -> None:
    examples = many(200)
    parts = split(examples, 0.1, 7)
    again = split(list(reversed(examples)), 0.1, 7)
    assert {each.line for each in parts.validation} == {each.line for each in again.validation}
    assert [each.line for each in parts.train] == sorted(each.line for each in parts.train)
    assert {each.line for each in parts.validation} != {each.line for each in split(examples, 0.1, 8).validation}
    assert len(parts.validation) == 20


def test_a_few_more_records_leave_the_validation_nearly_as_it_was() -> None:
    before = {each.line for each in split(many(200), 0.1, 3).validation}
    after = {each.line for each in split(many(205), 0.1, 3).validation}
    assert len(before & after) >= 18


def test_a_group_that_is_too_large_stays_in_training() -> None:
    examples = [*[example("hi", f"answer {index}", line=index) for index in range(90)], *many(10)]
    parts = split(examples, 0.1, 0)
    assert len(parts.validation) == 10
    assert all(each.messages[0].content != "hi" for each in parts.validation)


def test_there_is_a_validation_wherever_one_can_be() -> None:
    assert len(split(many(2), 0.1, 0).validation) == 1
    assert len(split(many(1), 0.1, 0).validation) == 0
    assert len(split(many(50), 0.0, 0).validation) == 0
    two = [*[example("a", f"{index}") for index in range(9)], *[example("b", f"{index}") for index in range(6)]]
    assert len(split(two, 0.1, 0).validation) == 6
    assert not split([], 0.1, 0).train


def test_answers_that_stand_in_both_parts_later_in_a_conversation_are_counted() -> None:
    examples = [example(f"question {index}", "x", "Bye!", "Good bye.") for index in range(20)]
    assert split(examples, 0.2, 0).overlap == 4


def test_questions_of_marks_alone_are_not_all_alike() -> None:
    parts = split([example("?", "a"), example("!", "b"), example("?!", "c")], 0.3, 0)
    assert parts.shared == 0
