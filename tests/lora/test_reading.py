"""Files as people have them: told apart by content, every record with its line, nothing dropped in silence."""

import json
from pathlib import Path

import pytest

from lora.data.reading import contents_of, read_file
from lora.data.records import Contents
from lora.records import DataUnfit

ONE = {"instruction": "a", "input": "", "output": "b"}
TWO = {"instruction": "c", "input": "d", "output": "e"}


def lines_of(contents: Contents) -> list[int]:
    return [record.line for record in contents.records]


def faults_of(contents: Contents) -> list[tuple[int, str]]:
    return [(fault.line, fault.kind) for fault in contents.faults]


def read(text: str) -> Contents:
    return contents_of(text.encode())


def test_a_list_over_many_lines_tells_where_each_record_begins() -> None:
    contents = read(json.dumps([ONE, TWO], indent=2))
    assert contents.container == "json"
    assert [record.value for record in contents.records] == [ONE, TWO]
    assert lines_of(contents) == [2, 7]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_lines_with_any_end_and_mark_are_the_same_records(end: str, mark: bytes) -> None:
    contents = contents_of(mark + f"{json.dumps(ONE)}{end}{end}{json.dumps(TWO)}{end}".encode())
    assert contents.container == "jsonl"
    assert [record.value for record in contents.records] == [ONE, TWO]
    assert lines_of(contents) == [1, 3]
    assert not contents.faults
    assert any("byte order mark" in note for note in contents.notes) == bool(mark)
    assert any("lines end with CR" in note for note in contents.notes) == (end != "\n")


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be", "utf-32"])
def test_other_unicode_is_read_by_its_mark(codec: str) -> None:
    text = json.dumps([{"prompt": "é", "completion": "ü"}], ensure_ascii=False)
    data = text.encode(codec) if codec != "utf-16-be" else b"\xfe\xff" + text.encode(codec)
    assert contents_of(data).records[0].value == {"prompt": "é", "completion": "ü"}


def test_broken_lines_are_told_by_number_and_the_others_kept() -> None:
    contents = read('{"prompt": "a", "completion": "b"}\n{"prompt": \n\nnonsense\n[1]\n"text"\n{"x": 1}\n')
    assert lines_of(contents) == [1, 7]
    assert faults_of(contents) == [(2, "broken"), (4, "broken"), (5, "not_object"), (6, "not_object")]
    assert "column 12" in contents.faults[0].detail


def test_a_broken_first_line_does_not_hide_the_others() -> None:
    contents = read('{"prompt": "a"\n' + f"{json.dumps(ONE)}\n{json.dumps(TWO)}\n")
    assert (contents.container, lines_of(contents), faults_of(contents)) == ("jsonl", [2, 3], [(1, "broken")])


def test_separators_of_unicode_do_not_end_a_line() -> None:
    contents = contents_of('{"prompt": "a\u2028b", "completion": "c\x85d"}\n'.encode())
    assert contents.records[0].value["prompt"] == "a\u2028b"


def test_a_list_that_breaks_off_keeps_what_came_before() -> None:
    whole = json.dumps([ONE, TWO], indent=1)
    contents = read(whole[: whole.index('"e"')])
    assert [record.value for record in contents.records] == [ONE]
    assert faults_of(contents) == [(7, "cut_off")]


def test_a_list_with_a_missing_comma_and_one_with_text_behind_it() -> None:
    assert faults_of(read(f"[{json.dumps(ONE)}\n{json.dumps(TWO)}]")) == [(2, "cut_off")]
    assert faults_of(read(f"[{json.dumps(ONE)}]\n[{json.dumps(TWO)}]")) == [(2, "cut_off")]


def test_objects_over_several_lines_without_a_list() -> None:
    contents = read(json.dumps(ONE, indent=2) + "\n" + json.dumps(TWO, indent=2))
    assert [record.value for record in contents.records] == [ONE, TWO]
    assert lines_of(contents) == [1, 6]


def test_records_in_a_field_of_one_object() -> None:
    contents = read(json.dumps({"version": 1, "data": [ONE, TWO], "dev": [ONE]}, indent=1))
    assert [record.value for record in contents.records] == [ONE, TWO]
    assert lines_of(contents) == [4, 9]
    assert contents.notes == ("records taken from its field “data”; left alone: “dev” (1)",)


def test_one_object_that_is_a_record_itself() -> None:
    record = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    assert read(json.dumps(record, indent=2)).records[0].value == record


@pytest.mark.parametrize("mark", [",", "\t", ";", "|"])
def test_tables_by_any_separator(mark: str) -> None:
    contents = read(f'instruction{mark}output\na{mark}"b{mark} ""c""\nd"\n\ne{mark}f\n')
    assert contents.container == "csv"
    assert [record.value for record in contents.records] == [
        {"instruction": "a", "output": f'b{mark} "c"\nd'},
        {"instruction": "e", "output": "f"},
    ]
    assert lines_of(contents) == [2, 5]


def test_tables_tell_rows_that_do_not_fit_and_quotes_that_do_not_end() -> None:
    contents = read('prompt,completion\na,b,c\nd\ne,f\ng,"h\ni,j\n')
    assert lines_of(contents) == [4]
    assert faults_of(contents) == [(2, "columns"), (3, "columns"), (5, "cut_off")]
    assert contents.faults[0].detail == "3 in place of 2"


def test_a_field_of_a_table_may_be_long() -> None:
    long = "x" * 200_000
    assert read(f"prompt,completion\na,{long}\n").records[0].value["completion"] == long


def test_a_pandas_index_is_no_field() -> None:
    assert read(",prompt,completion\n0,a,b\n").records[0].value == {"prompt": "a", "completion": "b"}


def test_a_header_with_a_name_twice_is_refused() -> None:
    with pytest.raises(DataUnfit, match="names a field twice"):
        read("prompt,prompt,completion\na,b,c\n")


def test_bytes_that_are_not_utf8_lose_their_record_alone() -> None:
    data = '{"prompt": "a", "completion": "b"}\n{"prompt": "é", "completion": "b"}\n'.encode("latin-1")
    contents = contents_of(data)
    assert len(contents.records) == 2  # the form tells of the second, where its text is read
    assert "1 bytes are not UTF-8: if it was saved as Windows-1252" in contents.notes[0]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf \n", "empty"),
        (b"PAR1....", "Parquet"),
        (b"\x1f\x8b\x08", "gunzip"),
        (b"PK\x03\x04", "CSV"),
        (b"\x7fELF\0\0\0", "NUL bytes"),
        (b"just some words\nand more\n", "neither JSON nor CSV"),
    ],
)
def test_what_is_no_data_says_what_to_do(data: bytes, said: str) -> None:
    with pytest.raises(DataUnfit, match=said):
        contents_of(data)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataUnfit, match="is a folder"):
        read_file(tmp_path)
    with pytest.raises(DataUnfit, match="no such file"):
        read_file(tmp_path / "none.json")


def test_deep_nesting_is_a_fault_and_no_crash() -> None:
    deep = "[" * 100_000
    assert faults_of(read(f'{{"prompt": "a", "completion": "b"}}\n{{"prompt": {deep}\n')) == [(2, "broken")]
    assert faults_of(read(f"[{deep}")) == [(1, "cut_off")]
