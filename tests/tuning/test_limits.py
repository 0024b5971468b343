import pytest

from tuning.judged import Limit
from tuning.plans.limits import LimitError, read_limit


def test_a_limit_names_a_workload_or_all() -> None:
    text = "chat.p99_ttft_ms <= 500"
    assert read_limit(text, ["chat"]) == Limit("chat", "p99_ttft_ms", "<=", 500.0, text)
    assert read_limit(" error_rate==0 ", ["chat"]) == Limit(None, "error_rate", "==", 0.0, "error_rate==0")
    assert read_limit("my-load.goodput_per_s > 1.5") == Limit(
        "my-load", "goodput_per_s", ">=", 1.5, "my-load.goodput_per_s > 1.5"
    )
    assert read_limit("preemptions <= 0").sign == "=="


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p99_ttft_ms", "is not a limit"),
        ("chat.p99_ttft_ms <= fast", "not a number"),
        ("p99_ttft_ms <= nan", "finite"),
        ("p99_ttft <= 500", "did you mean p99_ttft_ms"),
        ("talk.p99_ttft_ms <= 500", "no workload of this plan; it has chat"),
        ("error_rate = 0", "=="),
        ("p99_ttft_ms == 500", "for 0 only"),
        ("p99_ttft_ms <= -1", "never below 0"),
        ("preemptions < 0", "never below 0"),
        ("goodput_per_s >= 0", "every measurement keeps"),
        ("error_rate == 0 or 1 == 1", "is not a limit"),
    ],
)
def test_a_mistake_is_said_in_a_line(text: str, said: str) -> None:
    with pytest.raises(LimitError, match=said) as caught:
        read_limit(text, ["chat"])
    assert "\n" not in str(caught.value)
