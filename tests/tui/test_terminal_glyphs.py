"""ASCII where the terminal draws nothing else: which terminals those are, and that every column stays."""

import pytest
from rich.cells import cell_len
from textual.drivers.headless_driver import HeadlessDriver

from tui.terminal import AsciiTable, draws_unicode, in_ascii


@pytest.mark.parametrize(
    ("environ", "tmux", "expected"),
    [
        ({"TERM": "xterm-256color"}, "", True),
        ({"TERM": "xterm", "LANG": "C"}, "", True),  # a rented machine: the terminal is at the other end
        ({"TERM": "screen", "LANG": "C", "TMUX": "x"}, "1", True),
        ({"TERM": "screen", "LANG": "en_US.UTF-8", "TMUX": "x"}, "0", False),
        ({"TERM": "tmux-256color", "TMUX": "x"}, "", True),  # tmux does not answer
        ({"TERM": "screen", "STY": "1.pts", "LANG": "C"}, "", False),
        ({"TERM": "screen", "STY": "1.pts", "LANG": "C", "LC_CTYPE": "C.UTF-8"}, "", False),  # as Python makes of it
        ({"TERM": "screen", "STY": "1.pts", "LC_ALL": "de_DE.utf8"}, "", True),
        ({"TERM": "linux", "LANG": "en_US.UTF-8"}, "", False),
        ({"TERM": "linux", "LLMTUNE_ASCII": "0"}, "", True),
        ({"TERM": "xterm", "LLMTUNE_ASCII": "1"}, "", False),
    ],
)
def test_which_terminals_draw_ascii_only(environ: dict[str, str], tmux: str, expected: bool) -> None:
    assert draws_unicode(environ, lambda _: tmux) == expected


@pytest.mark.parametrize(
    "text",
    [
        "▁▂▃▄▅▆▇█",
        "● ready  ✗ silent  ▶ KV-bound … 0–1 ≤ 5 °C",
        "模型 ｗｉｄｅ",
        "e\u0301té",
        "⣿⠀⡇",
        "\x1b[1mbold\x1b[0m",
    ],
)
def test_every_cell_keeps_its_place(text: str) -> None:
    plain = text.translate(AsciiTable())
    assert plain.isascii()
    assert cell_len(plain) == cell_len(text)


def test_levels_of_a_history_differ_in_ascii() -> None:
    assert len(set(" ▁▂▃▄▅▆▇█".translate(AsciiTable()))) == 9


def test_a_driver_writes_ascii_and_leaves_escapes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(HeadlessDriver, "write", lambda _, data: written.append(data))
    driver = in_ascii(HeadlessDriver)
    driver.write(driver.__new__(driver), "\x1b[1;1H● ready\n")
    assert written == ["\x1b[1;1H* ready\n"]
