import pytest

from tuning.plans.condition import ConditionError, read_condition

POINT = {"max-num-batched-tokens": 2048, "max-num-seqs": 256, "util": 0.9, "dtype": "half", "eager": True}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max-num-batched-tokens < max-num-seqs", False),
        ("max-num-batched-tokens >= max-num-seqs * 8", True),
        ("max_num_seqs == 256", True),
        ("max-num-seqs - 56 == 200", True),
        ("max-num-seqs-56 == 200", True),
        ("2 + 3 * 4 == 14", True),
        ("(2 + 3) * 4 == 20", True),
        ("10 - 2 - 3 == 5", True),
        ("-util < 0 and not util > 0.95", True),
        ("util > 0.95 or max-num-seqs > 128", True),
        ("util > 0.5 or util > 0.4 and util > 0.99", True),
        ("dtype == 'half'", True),
        ('dtype != "half"', False),
        ("dtype == 3", False),
        ("dtype != 3", True),
        ("dtype < 3", False),
        ("eager", True),
        ("eager == true", True),
        ("not eager", False),
        ("1e3 == 1000", True),
        ("max-num-seqs / 0 > 1", False),
        ("dtype + 1 == 2", False),
    ],
)
def test_a_condition_is_asked_of_a_point(text: str, expected: bool) -> None:
    assert read_condition(text).holds(POINT) is expected


@pytest.mark.parametrize("text", ["nothing < 3", "nothing >= 3", "not nothing > 3", "nothing > 3 and util > 0.5"])
def test_what_hangs_on_an_unknown_flag_does_not_hold(text: str) -> None:
    assert read_condition(text).holds(POINT) is False


@pytest.mark.parametrize("text", ["nothing > 3 or util > 0.5", "util > 0.5 or nothing > 3"])
def test_an_unknown_side_does_not_hide_a_true_one(text: str) -> None:
    assert read_condition(text).holds(POINT) is True


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a <", 4),
        ("", 1),
        ("a b", 3),
        ("a < 3)", 6),
        ("(a < 3", 7),
        ("a ; b", 3),
        ("  $", 3),
        ("a < and", 5),
        ("* 3", 1),
    ],
)
def test_a_mistake_is_named_with_its_column(text: str, column: int) -> None:
    with pytest.raises(ConditionError, match=f"^column {column}: [^\n]+$"):
        read_condition(text)


def test_nothing_can_be_called_or_looked_into() -> None:
    for text in ("__import__('os')", "a.b", "a[0]", "a < 1 if b else c", "lambda: 1"):
        with pytest.raises(ConditionError):
            read_condition(text)


def test_endless_nesting_is_refused_in_a_line() -> None:
    with pytest.raises(ConditionError, match="too deeply"):
        read_condition("(" * 5000 + "1" + ")" * 5000)
