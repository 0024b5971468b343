import tomllib
from typing import Any

import pytest

from tuning.plans.toml_lines import KeyPath, key_lines, line_of

TEXT = """\
# a comment with [brackets]
name = "x"   # [not] a table
"quoted key" = 1
a.b.c = 2

[server]
max-model-len = 4096
  [server.env]
  HF_HOME = "/hf"
[grid]
max-num-seqs = [
  64,  # ]
  256,
]
candidates = [
  {a = 1},

  {b = "]"}, {c = 3},
]
[[workload]]
name = "one"
note = \"\"\"
[fake]
name = "inside"
\"\"\"
[[workload]]   # two
name = "two"
[workload.deep]
key = 'lit[eral'
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 2),
        (("quoted key",), 3),
        (("a", "b", "c"), 4),
        (("a",), 4),
        (("server",), 6),
        (("server", "max-model-len"), 7),
        (("server", "env"), 8),
        (("server", "env", "HF_HOME"), 9),
        (("grid", "max-num-seqs"), 11),
        (("grid", "candidates", 0), 16),
        (("grid", "candidates", 1), 18),
        (("grid", "candidates", 2), 18),
        (("workload",), 20),
        (("workload", 0), 20),
        (("workload", 0, "name"), 21),
        (("workload", 0, "note"), 22),
        (("workload", 1), 26),
        (("workload", 1, "name"), 27),
        (("workload", 1, "deep", "key"), 29),
    ],
)
def test_a_key_is_found_on_its_line(path: KeyPath, line: int) -> None:
    assert key_lines(TEXT)[path] == line


def test_every_key_that_tomllib_sees_has_a_line_that_names_it() -> None:
    lines, text = key_lines(TEXT), TEXT.splitlines()

    def look(value: Any, path: KeyPath) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                look(inner, (*path, key))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for index, inner in enumerate(value):
                look(inner, (*path, index))
        elif isinstance(path[-1], str):
            assert path[-1] in text[line_of(lines, path) - 1]

    look(tomllib.loads(TEXT), ())


def test_nothing_inside_a_text_is_taken_for_a_key() -> None:
    assert ("fake",) not in key_lines(TEXT)


def test_texts_in_a_list_have_lines_of_their_own() -> None:
    lines = key_lines('limits = [\n  "a [1]",\n\n  "b",\n]\n')
    assert (lines["limits", 0], lines["limits", 1]) == (2, 4)


def test_what_is_not_there_is_where_its_table_is() -> None:
    lines = key_lines(TEXT)
    assert line_of(lines, ("workload", 1, "requests")) == 26
    assert line_of(lines, ("decide", "metric")) == 1


def test_line_ends_of_windows_do_not_shift_lines() -> None:
    assert key_lines("a = 1\r\n[b]\r\nc = 2\r\n")[("b", "c")] == 3
