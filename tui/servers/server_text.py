"""One server in words: the stages of its start as a checklist, and all that is known of it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from textual.content import Content

from engine.launch.command import copyable
from engine.text import clean
from store.clock import parse_utc
from store.records import ServerRecord
from tui.format import ABSENT, local_clock, number, since, span, started_by

DONE, NOW, BROKEN, TO_COME, LEFT_OUT = "✔", "◐", "✗", "·", "–"
_COLOURS = {DONE: "$success", NOW: "$warning", BROKEN: "$error", TO_COME: "$text-muted", LEFT_OUT: "$text-muted"}


def command_line(server: ServerRecord) -> str:
    """What starts this server, as a shell takes it; secrets are `***`."""
    return copyable(server.command, server.env) if server.command else ""


def gpu_words(server: ServerRecord) -> str:
    """The GPUs that were given to it: `cpu`, their indices, or `all`."""
    if "+cpu" in (server.vllm_version or ""):
        return "cpu"
    return server.env.get("CUDA_VISIBLE_DEVICES", "all")


def checklist(server: ServerRecord, now: datetime) -> list[Content]:
    """The stages of a start in the order of vLLM's log, each with a glyph and what it took.

    A stage is done once the log has told its figures. The first that is not is under way, or is where it broke; a
    server that is ready has left out what it never told (no compilation and no graphs with `enforce-eager`).
    """
    facts = server.facts
    told = [
        ("weights", _joined(_fact(facts, "weights_gib", 2, " GiB"), _fact(facts, "load_s", 1, " s"))),
        ("compile", _fact(facts, "compile_s", 1, " s")),
        ("KV cache", _fact(facts, "kv_cache_tokens", 0, " tokens")),
        ("graphs", _fact(facts, "graph_capture_s", 0, " s")),
    ]
    config = facts.get("engine_config")
    eager = isinstance(config, dict) and str(config.get("enforce_eager")) == "True"
    ready = since(server.started_at, _moment(server.ready_at, now)) if server.ready_at else None
    last_told = max((at for at, (_, figures) in enumerate(told) if figures), default=-1)
    items: list[Content] = []
    broken = server.state == "failed"
    under_way = server.state == "starting"
    for at, (name, figures) in enumerate(told):
        if figures:
            items.append(_item(DONE, name, figures))
        elif server.ready_at or at < last_told or (eager and name in ("compile", "graphs")):
            items.append(_item(LEFT_OUT, name, ""))
        elif broken or under_way:
            items.append(_item(BROKEN if broken else NOW, name, ""))
            broken = under_way = False
        else:
            items.append(_item(TO_COME, name, ""))
    if ready is not None:
        items.append(_item(DONE, "ready", f"after {span(ready)}"))
    elif broken or under_way:
        items.append(_item(BROKEN if broken else NOW, "ready", ""))
    else:
        items.append(_item(TO_COME, "ready", ""))
    return items


def flow(items: Sequence[Content], width: int, gap: str = "   ") -> Content:
    """Items side by side, on as many lines as `width` cells need; none is broken in two."""
    lines: list[list[Content]] = [[]]
    used = 0
    for item in items:
        wanted = item.cell_length + (len(gap) if lines[-1] else 0)
        if lines[-1] and used + wanted > width:
            lines.append([])
            used, wanted = 0, item.cell_length
        lines[-1].append(item)
        used += wanted
    return Content("\n").join(Content(gap).join(line) for line in lines)


def details(server: ServerRecord, now: datetime) -> list[tuple[str, str]]:
    """All that is known, as names and values, both safe to show without markup."""
    facts = server.facts
    concurrency = _fact(facts, "max_concurrency", 1, "x")
    rows = [
        ("model", server.model),
        ("address", server.url),
        ("served as", server.served_name or ""),
        ("started by", started_by(server)),
        ("vLLM", server.vllm_version or ""),
        ("GPU", gpu_words(server)),
        ("weights", _joined(_fact(facts, "weights_gib", 2, " GiB"), _fact(facts, "load_s", 1, " s"))),
        ("KV cache", _joined(_fact(facts, "kv_cache_gib", 2, " GiB"), _fact(facts, "kv_cache_tokens", 0, " tokens"))),
        (
            "concurrency",
            f"{concurrency} at {_fact(facts, 'max_concurrency_at_tokens', 0, ' tokens')}" if concurrency else "",
        ),
        ("graphs", _joined(_fact(facts, "graph_gib", 2, " GiB"), _fact(facts, "graph_capture_s", 0, " s"))),
        ("init", _fact(facts, "init_s", 1, " s")),
        ("attention", str(facts.get("attention_backend") or "")),
        ("kernel", str(facts.get("quantization_kernel") or "")),
        ("process", f"{server.pid}" if server.pid is not None else ""),
        ("started", local_clock(server.started_at) if server.started_at else ""),
        ("ready", local_clock(server.ready_at) if server.ready_at else ""),
        ("ended", _ended(server)),
        ("failure", _joined(server.failure_class or "", server.failure or "", gap=": ")),
        ("log", server.log_path),
        ("command", command_line(server)),
    ]
    return [(name, clean(value, 2000)) for name, value in rows if value]


def detail_lines(rows: Sequence[tuple[str, str]], width: int) -> Content:
    """Names and values in two columns; a value wraps under itself."""
    column = 12
    lines: list[Content] = []
    for name, value in rows:
        pieces = Content(value).wrap(max(10, width - column)) if value else [Content()]
        for at, piece in enumerate(pieces):
            lines.append(Content.assemble((f"{name if at == 0 else '':<{column}}", "$text-muted"), piece))
    return Content("\n").join(lines)


def age(server: ServerRecord, now: datetime) -> str:
    """How long it has been in its present state, or when it ended."""
    if server.stopped_at:
        return local_clock(server.stopped_at)
    return span(since(server.ready_at or server.started_at, now))


def _ended(server: ServerRecord) -> str:
    if not server.stopped_at:
        return ""
    status = "" if server.exit_code is None else f", exit status {server.exit_code}"
    return f"{local_clock(server.stopped_at)}{status}"


def _item(glyph: str, name: str, figures: str) -> Content:
    return Content.assemble(
        (f"{glyph} ", f"bold {_COLOURS[glyph]}"), (name, "$text-muted"), f" {figures}" if figures else ""
    )


def _fact(facts: dict[str, Any], key: str, decimals: int, unit: str) -> str:
    """A figure of the log with its unit, empty while the log has not told it."""
    value = facts.get(key)
    known = isinstance(value, int | float) and not isinstance(value, bool)
    text = number(value if known else None, decimals, unit)
    return "" if text == ABSENT else text


def _joined(*parts: str, gap: str = " ") -> str:
    return gap.join(part for part in parts if part)


def _moment(at: str | None, now: datetime) -> datetime:
    return parse_utc(at) if at else now
