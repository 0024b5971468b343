"""A document laid for a width: nothing is wider, nothing is lost."""

import pytest
from rich.cells import cell_len

from tui.document_text import document_content, wrapped
from tuning.document import Code, Heading, Paragraph, Part, Points, Table

TABLE = Table(
    ("", "one", "two", "three"), (("name of it", "1", "22", "333 words"), ("b", "4", "5", "6")), frozenset({1})
)


def lines(parts: list[Part], width: int) -> list[str]:
    return document_content(parts, width).plain.split("\n")


@pytest.mark.parametrize("width", [20, 33, 80])
def test_nothing_is_wider_than_the_screen(width: int) -> None:
    parts: list[Part] = [
        Heading("A heading of several words", 1),
        Paragraph("模型 wide signs and averylongwordthatnobodycanbreakatablankandstillfits", strong=True),
        Points(("first point with words", "second")),
        Code("llmtune compare 1 2\nsecond line"),
        TABLE,
    ]
    found = lines(parts, width)
    assert all(cell_len(line) <= width for line in found)
    assert "averylongwordthat" in "".join(found).replace(" ", "")


def test_columns_without_room_stand_below_beside_the_first_one_again() -> None:
    assert lines([TABLE], 80) == [
        "            one  two  three",
        "name of it    1  22   333 words",
        "b             4  5    6",
    ]
    assert lines([TABLE], 22) == [
        "            one  two",
        "name of it    1  22",
        "b             4  5",
        "            three",
        "name of it  333 words",
        "b           6",
    ]


def test_a_point_hangs_under_itself() -> None:
    assert lines([Points(("some words that need two lines",))], 22) == ["· some words that need", "  two lines"]


def test_words_are_broken_at_blanks_and_signs_that_move_the_cursor_go() -> None:
    assert wrapped("one two\nthree\x1b[31m four", 9) == ["one two", "three", "four"]
    assert wrapped("", 9) == []
