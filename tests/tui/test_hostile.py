"""Text from outside, on every place of the shell's screens: nothing crashes, nothing reaches the terminal as code."""

import re
from pathlib import Path

import pytest

from store.records import EventRecord, ServerRecord
from store.writer import Writer
from tests.tui.conftest import ago, busy_samples, fed, screen_text, server
from tui.app import LlmtuneApp, parting_words
from tui.messages import GoingOn
from tui.widgets.status_line import StatusLine

MARKUP = (
    "[/mnt/x]",
    "[bold red]x[/]",
    "[$error]x[/$error]",
    "[a=b]",
    "[@click=app.quit]x[/]",
    "[core.py:58] up",
    "'[/x]' \\[y]",
    "[",
)
HOSTILE = {
    "closing tag": MARKUP[0],
    "all markup": " ".join(MARKUP),
    "escapes": "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J \x9b31mx",
    "controls": "a\x00b\x08c\x7fd\r\ne a\u202eb\u2066c a\udcffb",
    "wide, combining, joined": "模型测试" * 10 + "e\u0301\u0323" * 30 + "👩‍👩‍👧‍👦" * 10,
    "blank": "   ",
    "long": "x" * 10_000,
}
SMALL, LARGE = (80, 24), (140, 45)
CASES = [
    pytest.param(tuple(HOSTILE), SMALL, id="all"),
    pytest.param(("all markup", "wide, combining, joined"), LARGE, id="the worst, large"),
]
KEYS = (("1",), ("enter",), ("escape", "y"), ("escape", "x"), ("n", "question_mark"), ("escape", "2"), ("s",))


def put(writer: Writer, data_dir: Path, number: int, text: str) -> None:
    """The text in every field of the server, in its log, its samples and its events."""
    kept = text.encode(errors="replace").decode().replace("\0", "")  # as far as a database takes it
    (data_dir / "log").write_bytes(f"{text}\nINFO 11-30 08:37:38 [a.py:1] {text}\n".encode(errors="surrogateescape"))
    writer.update(
        ServerRecord,
        number,
        name=kept,
        model=f"/models/{kept}",
        served_name=kept,
        vllm_version=kept,
        command=["vllm", "serve", kept],
        env={"CUDA_VISIBLE_DEVICES": kept},
        failure=kept,
        facts={"attention_backend": kept, "kv_cache_tokens": kept},
    )
    samples = busy_samples(number, 5)
    for sample in samples:
        sample.raw["gpus"][0].update(name=kept, throttle_reasons=[kept])
        sample.raw["waiting_by_reason"] = {kept: 1.0}
    writer.insert_samples(samples)
    writer.insert(EventRecord(at=ago(1), level="warning", text=kept, server_id=number))


@pytest.mark.parametrize(("names", "size"), CASES)
async def test_no_text_breaks_a_screen(
    app: LlmtuneApp, writer: Writer, data_dir: Path, names: tuple[str, ...], size: tuple[int, int]
) -> None:
    number = writer.insert(server(data_dir, log_path=str(data_dir / "log")))
    async with app.run_test(size=size) as pilot:
        for name in names:
            text = HOSTILE[name]
            put(writer, data_dir, number, text)
            shown = []
            for keys in KEYS:
                await pilot.press(*keys)
                await fed(pilot)
                shown.append(screen_text(app))
            app.screen.query_one(StatusLine).say(text, error=True)
            app.screen.query_one(StatusLine).store_error = text
            await pilot.pause()
            shown.append(screen_text(app))
            for page in shown:
                assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page), name
                assert len(page.splitlines()) == size[1], name
            if text.isascii() and text.isprintable() and 0 < len(text.strip()) < 20:
                assert all(text in page for page in (shown[0], shown[1], shown[-1])), name


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_reaches_the_terminal_after_leaving(name: str, data_dir: Path) -> None:
    assert "\x1b" not in parting_words(GoingOn((), (server(data_dir, name=HOSTILE[name]),)), lambda *_: False)
