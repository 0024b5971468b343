import json
import math
import time

import pytest

from tests.tuning.imported.results import a_result
from tuning.imported.parsing import parse

ONE = json.dumps(a_result())


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (ONE, 1),
        (f"{ONE}\n{ONE}\n", 2),
        (f"{ONE}\r\n\r\n{ONE}", 2),
        (ONE + ONE, 2),  # appended by a version that wrote no line end
        (f"[{ONE}, {ONE}]", 1),
        (json.dumps([a_result()], indent=4), 1),
        ("\ufeff" + ONE, 1),
    ],
)
def test_whatever_form_results_are_saved_in(text: str, values: int) -> None:
    parsed = parse(text.encode())
    assert (len(parsed.values), parsed.trouble) == (values, None)


def test_what_a_shell_of_another_system_wrote() -> None:
    assert len(parse(ONE.encode("utf-16")).values) == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary"),
        (b'{"model_id": "\xff\xfe\xfa"}', "neither UTF-8"),
        (b"============ Serving Benchmark Result ============\n", "--save-result"),
        (b"date,duration\n1,2\n", "no JSON"),
        (ONE[:-20].encode(), "cut off in line 1"),
        (b'{"a": 1, b}', "line 1, column 10 is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_none_has_one_line(data: bytes, reason: str) -> None:
    parsed = parse(data)
    assert parsed.values == ()
    assert parsed.trouble is not None
    assert reason in parsed.trouble
    assert "\n" not in parsed.trouble


def test_a_cut_line_does_not_hide_the_others() -> None:
    parsed = parse(f"{ONE}\n{ONE[:200]}\n{ONE}\n{ONE[:-1]}".encode())
    assert len(parsed.values) == 2
    assert parsed.trouble is not None
    assert "line 3" in parsed.trouble or "line 2" in parsed.trouble
    assert "1 more" in parsed.trouble
    assert "2 before or after it were read" in parsed.trouble


def test_numbers_that_json_does_not_know() -> None:
    parsed = parse(b'{"a": NaN, "b": Infinity, "c": -Infinity, "d": 1e999, "e": ' + b"9" * 5000 + b', "f": 7}')
    (value,) = parsed.values
    assert math.isnan(value["a"])
    assert value["b"] == math.inf
    assert (value["d"], value["e"], value["f"]) == (None, None, 7)
    assert parsed.not_finite == 5


def test_a_file_of_nothing_but_openings_ends_soon() -> None:
    began = time.monotonic()
    parsed = parse(b'{"a":\n' * 200_000)
    assert parsed.values == ()
    assert time.monotonic() - began < 5
