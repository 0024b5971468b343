"""What a server, a log or a disk may put in front of a screen, and samples and records that are full of it."""

import itertools
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from engine.scrape.metric_names import LATENCIES
from store.records import EventRecord, SampleRecord, ServerRecord
from store.writer import Writer
from tests.tui.conftest import ago, busy_samples

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
TEXTS = {
    "closing tag": MARKUP[0],
    "an attribute": MARKUP[3],
    "a source line": MARKUP[5],
    "all markup": " ".join(MARKUP),
    "escapes": "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J \x9b31mx",
    "the clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07\x1b]8;;http://x\x1b\\link\x1bP+q\x1b\\",
    "controls": "a\x00b\x08c\x7fd\r\ne a\u202eb\u2066c a\udcffb",
    "wide, combining, joined": "模型测试" * 10 + "e\u0301\u0323" * 30 + "👩‍👩‍👧‍👦" * 10,
    "blank": "   ",
    "long": "x" * 10_000,
}
MIXED = (1, float("nan"), float("inf"), None, 1e300, -1)
NUMBERS: dict[str, tuple[Any, ...]] = {**{str(one): (one,) for one in MIXED}, "mixed": MIXED}
"""What the numbers of samples are replaced by, each in its turn."""


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
        sample.raw["gpus"][0].update(
            name=kept, uuid=kept, throttle_reasons=[kept], error=kept, processes=[{"pid": 1, "name": kept}]
        )
        sample.raw.update(words(kept))
    writer.insert_samples(samples)
    writer.insert(EventRecord(at=ago(1), level="warning", text=kept, server_id=number))


def words(text: str) -> dict[str, Any]:
    """What of a sample's `raw` holds a server's words."""
    counts = {text: 1.0, f"{text}2": 2.0}
    return {
        "model_name": text,
        "version": text,
        "sleep_state": text,
        "waiting_by_reason": counts,
        "requests_finished": counts,
        "rejections": counts,
        "prompt_by_source": counts,
        "engines": [{"engine": name, "running": 3.0, "waiting": 1.0, "kv_perc": 50.0} for name in counts],
        "lora": {"most": 4.0, "running": list(counts), "waiting": [text]},
    }


def spoilt(sample: SampleRecord, numbers: Iterator[Any]) -> SampleRecord:
    """The sample with each of its numbers, however deep, replaced by the next of `numbers`."""
    keep = ("at", "server_id", "run_id", "raw", "id")
    columns = {each.name: next(numbers) for each in fields(sample) if each.name not in keep}
    return replace(sample, **columns, raw=_spoilt(sample.raw, numbers))


def _spoilt(value: Any, numbers: Iterator[Any]) -> Any:
    if isinstance(value, dict):
        return {name: _spoilt(each, numbers) for name, each in value.items()}
    if isinstance(value, list):
        return [_spoilt(each, numbers) for each in value]
    return next(numbers) if isinstance(value, int | float) and not isinstance(value, bool) else value


def spoilt_samples(server_id: int, numbers: tuple[Any, ...], seconds: int = 40) -> list[SampleRecord]:
    """A server's last `seconds`, all that a sample may hold, each number one of `numbers` in turn."""
    following = itertools.cycle(numbers)
    samples = busy_samples(server_id, seconds)
    for sample in samples:
        sample.raw.update(words("r"), sleep_state="awake", **MORE)
    return [spoilt(sample, following) for sample in samples]


MORE: dict[str, Any] = {
    "process_start": 1000.0,
    "kv_cache_tokens": 18000.0,
    "spec_accepted_by_position": {"0": 1.0, "1": 2.0},
    "counters": dict.fromkeys(
        ("spec_drafts", "spec_draft_tokens", "spec_accepted_tokens", "prompt_tokens_cached"), 1.0
    ),
    "histograms": {
        name: {"sum": 1.0, "count": 3.0, "corners": [[0.01, 1.0], [0.1, 2.0], [None, 3.0]]}
        for name in (*LATENCIES, "prompt_length", "output_length", "step_tokens")
    },
}
