"""Who is warned of what others can reach or see, and who is not."""

import pytest

from engine.exposure import exposure_warnings, is_loopback
from engine.records import ServerSpec


def warnings(host: str = "127.0.0.1", environ: dict[str, str] | None = None, **fields: object) -> list[str]:
    return exposure_warnings(ServerSpec("m", host, 8000, **fields), environ or {})  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.1.1", "localhost", "::1", "[::1]"])
def test_loopback_is_nobodys_business(host: str) -> None:
    assert is_loopback(host)
    assert warnings(host) == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "gpu-box", ""])
def test_a_wider_address_wants_a_key(host: str) -> None:
    (line,) = warnings(host)
    assert "--api-key" in line
    assert "\n" not in line
    assert warnings(host, {"VLLM_API_KEY": "x"}) == []
    assert warnings(host, env={"VLLM_API_KEY": "x"}) == []
    assert warnings(host, flags={"api-key": "x"}) == []
    assert warnings(host, extra_args=("--api-key", "x")) == []


def test_a_password_on_the_command_line_is_seen_by_others() -> None:
    (line,) = warnings(flags={"otlp-traces-endpoint": "http://me:pa55@host", "hf-token": "moved to the environment"})
    assert "otlp-traces-endpoint" in line
    assert "pa55" not in line
    assert len(warnings(extra_args=("--x", "https://me:pa55@host"))) == 1
