"""Text from outside, on every place of the shell's screens: nothing crashes, nothing reaches the terminal as code."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from store.records import EventRecord
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
CASES = [pytest.param(text, SMALL, id=name) for name, text in HOSTILE.items()]
CASES += [pytest.param(HOSTILE[name], LARGE, id=f"{name}, large") for name in ("all markup", "wide, combining, joined")]


@pytest.mark.parametrize(("text", "size"), CASES)
async def test_no_text_breaks_a_screen(
    app: LlmtuneApp, writer: Writer, data_dir: Path, text: str, size: tuple[int, int]
) -> None:
    kept = text.encode(errors="replace").decode().replace("\0", "")  # as far as a database takes it
    (data_dir / "log").write_bytes(f"{text}\nINFO 11-30 08:37:38 [a.py:1] {text}\n".encode(errors="surrogateescape"))
    number = writer.insert(
        server(
            data_dir,
            name=kept,
            model=f"/models/{kept}",
            served_name=kept,
            vllm_version=kept,
            command=["vllm", "serve", kept],
            env={"CUDA_VISIBLE_DEVICES": kept},
            log_path=str(data_dir / "log"),
            failure=kept,
            facts={"attention_backend": kept, "kv_cache_tokens": kept},
        )
    )
    samples = busy_samples(number, 5)
    for sample in samples:
        sample.raw["gpus"][0].update(name=kept, throttle_reasons=[kept])
        sample.raw["waiting_by_reason"] = {kept: 1.0}
    writer.insert_samples([replace(sample, server_id=number) for sample in samples])
    writer.insert(EventRecord(at=ago(1), level="warning", text=kept, server_id=number))
    async with app.run_test(size=size) as pilot:
        await fed(pilot)
        shown = [screen_text(app)]
        for keys in (("enter",), ("escape", "y"), ("escape", "x"), ("n", "question_mark"), ("escape", "2"), ("s",)):
            await pilot.press(*keys)
            await fed(pilot)
            shown.append(screen_text(app))
        app.screen.query_one(StatusLine).say(text, error=True)
        app.screen.query_one(StatusLine).store_error = text
        await fed(pilot)
        shown.append(screen_text(app))
        for page in shown:
            assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
            assert len(page.splitlines()) == size[1]
        if text.isascii() and text.isprintable() and 0 < len(text.strip()) < 20:
            assert all(text in page for page in (shown[0], shown[1], shown[-1]))
    assert "\x1b" not in parting_words(GoingOn((), (server(data_dir, name=text),)), lambda *_: False)
