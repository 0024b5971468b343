"""Windows of recorded servers, for tests of what is drawn from one."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from engine.records import GpuReading
from engine.samples.sample_record import to_record
from engine.samples.window import Window
from engine.scrape.metrics import parse_metrics
from store.clock import format_utc
from store.records import SampleRecord
from tui.panels.row import Row, text_of

METRICS = Path(__file__).parent.parent / "fixtures/h200-vllm-0.25.1/metrics"
START = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)
STARVED = (("kv-starved-load-00", 0), ("kv-starved-load-03", 3), ("kv-starved-load-06", 6), ("kv-starved-load-09", 9))
STARVED += (("kv-starved-load-12", 12), ("kv-starved-end", 50))
"""A server whose KV cache is full: 200 users, and the seconds at which it was asked."""

HOSTILE_NUMBERS: tuple[Any, ...] = (1.0, float("nan"), float("inf"), None, 1e300)
HOSTILE_TEXTS = (
    "[/mnt/x]",
    "[a=b]",
    "[bold red]x[/]",
    "\x1b[31mred\x1b[0m\x1b[2J",
    "x" * 10_000,
    "模型测试" * 40,
    "e\u0301\u0323" * 30 + "👩‍👩‍👧‍👦" * 10,
    "a\nb\tc\x00\u202e",
    "",
)


def at(second: float) -> str:
    return format_utc(START + timedelta(seconds=second))


def scraped(page: str, second: float) -> SampleRecord:
    """The sample that a recorded page gives at a second of ours."""
    sample = parse_metrics((METRICS / f"{page}.txt").read_text(), at(second), second)
    return to_record(sample, GpuReading(at(second), second))


def starved(seconds: float = 60.0) -> Window:
    """The recorded server under load, as a window shows it."""
    return Window(seconds, [scraped(page, second) for page, second in STARVED])


def made(samples: Sequence[dict[str, Any]], seconds: float = 60.0) -> Window:
    """A window of samples a second apart, each given by its fields."""
    return Window(seconds, [SampleRecord(at=at(second), **fields) for second, fields in enumerate(samples)])


def texts(rows: list[Row]) -> list[str]:
    return [text_of(row).rstrip() for row in rows]


def line(rows: list[Row], label: str) -> str:
    """A panel's row by its label."""
    return next(text for text in texts(rows) if text.startswith(label))


def with_extras(seconds: float = 60.0) -> Window:
    """The recorded server, as if it had two engines, adapters, a draft model and GPUs."""
    window = Window(seconds)
    for sample in starved(seconds).samples:
        tokens, running = sample.generation_tokens or 0.0, sample.running or 0.0
        sample.raw["engines"] = [
            {
                "engine": "0",
                "running": 3 * running,
                "waiting": sample.waiting,
                "kv_perc": 91.0,
                "generation_tokens": 0.0,
            },
            {"engine": "1", "running": running, "waiting": 0.0, "kv_perc": 12.0, "generation_tokens": tokens},
        ]
        sample.raw["lora"] = {"most": 4.0, "running": ["sql-v3", "chat"], "waiting": ["chat", "late"]}
        sample.raw["counters"].update(
            spec_drafts=tokens / 2, spec_draft_tokens=tokens, spec_accepted_tokens=0.75 * tokens
        )
        sample.raw["spec_accepted_by_position"] = {"0": 0.45 * tokens, "1": 0.30 * tokens}
        window.add(replace(sample, gpu_energy_j=3 * tokens))
    return window
