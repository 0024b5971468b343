import pytest

from tuning.limits import Limit, read_limit


def test_a_limit_names_a_workload_or_all() -> None:
    assert read_limit("chat.p99_ttft_ms <= 500", ["chat"]) == Limit("chat", "p99_ttft_ms", "<=", 500.0)
    assert read_limit(" error_rate==0 ", ["chat"]) == Limit(None, "error_rate", "==", 0.0)
    assert read_limit("my-load.duration_s > 1.5", ["my-load"]) == Limit("my-load", "duration_s", ">", 1.5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p99_ttft_ms", "is not a limit"),
        ("chat.p99_ttft_ms <= fast", "not a number"),
        ("p99_ttft_ms <= nan", "finite"),
        ("p99_ttft <= 500", "did you mean p99_ttft_ms"),
        ("talk.p99_ttft_ms <= 500", "no workload of this plan; it has chat"),
        ("error_rate = 0", "=="),
        ("error_rate == 0 or 1 == 1", "is not a limit"),
    ],
)
def test_a_mistake_is_said_in_a_line(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        read_limit(text, ["chat"])
    assert "\n" not in str(caught.value)
