"""The Monitor's panels: what they say of recorded servers, of servers that say nothing, and of hostile ones."""

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from textual.app import App, ComposeResult

from engine.limiting.bottleneck import Limit
from engine.limiting.knobs import Knob, Knobs
from engine.samples.window import Window
from tests.tui.panel_samples import HOSTILE_NUMBERS, HOSTILE_TEXTS, line, made, scraped, starved, texts, with_extras
from tui.panels.adapters import adapter_rows
from tui.panels.engines import engine_rows
from tui.panels.histories import HISTORIES, history_rows
from tui.panels.latencies import FULL, Units, latency_rows, read_latencies
from tui.panels.legend import DETAILS, LATENCIES
from tui.panels.limit import limit_rows
from tui.panels.requests import request_rows
from tui.panels.row import NARROWEST, Row, text_of, width_of
from tui.panels.scheduler import scheduler_rows
from tui.panels.slots import Slots
from tui.panels.speculation import speculation_rows
from tui.widgets.latency_table import LatencyTable
from tui.widgets.limit_line import LimitLine
from tui.widgets.monitor_details import MonitorDetails, columns_of, pack

PANELS: tuple[Callable[[Window, bool, int], list[Row]], ...] = (
    scheduler_rows,
    request_rows,
    engine_rows,
    adapter_rows,
    speculation_rows,
)


# scheduler


def test_scheduler_of_a_recorded_starved_server() -> None:
    busy = Window(60.0, [scraped("kv-starved-load-03", 3), scraped("kv-starved-load-06", 6)])
    rows = scheduler_rows(busy, True, NARROWEST, kv_tokens=18_000)
    assert texts(rows)[0] == "── scheduler  last 60 s ───────────────"
    assert line(rows, "KV tokens").split() == ["KV", "tokens", "34,496", "of", "34,496"]
    assert line(rows, "prefix hits").split() == ["prefix", "hits", "–", "of", "0.0/s"]  # nothing was asked
    assert line(rows, "preempted").split() == ["preempted", "8", "+100/min"]
    assert line(rows, "waiting") == "waiting   capacity   174 deferred     0"
    assert line(rows, "ended /s") == "ended /s  stop       0.0 length     0.0"
    assert line(rows, "prompt %") == "prompt %  computed     – cached       –"  # nothing was read in these three
    assert line(scheduler_rows(starved(), True, 39), "prompt %") == "prompt %  computed   100 cached       0"
    assert line(rows, "sleep") == "sleep            ● awake"
    assert not any("external" in text or "multi-modal" in text or "refused" in text for text in texts(rows))


def test_caches_refusals_and_reasons_have_a_row_where_a_server_has_them() -> None:
    samples = [
        {
            "running": 1.0,
            "raw": {
                "counters": {"external_prefix_queries": 100.0 * n, "external_prefix_hits": 25.0 * n, "mm_queries": 0.0},
                "rejections": {"max_num_queued_reqs": 2.0 * n},
                "requests_finished": {"stop": 1.0 * n, "length": 0.0, "error": 3.0 * n, "abort": 0.0},
                "sleep_state": "weights_offloaded",
            },
        }
        for n in (1, 2, 3)
    ]
    rows = scheduler_rows(made(samples), True, 60)
    assert line(rows, "external").split() == ["external", "25.0", "%", "of", "100/s"]
    assert line(rows, "refused/s") == "refused/s requests   2.0"
    assert "error      3.0" in line(rows, "ended /s")
    assert "abort" not in line(rows, "ended /s")
    assert "◌ asleep, weights offloaded" in line(rows, "sleep")
    assert "multi-modal" not in " ".join(texts(rows))


def test_preemptions_say_when_the_last_one_was_and_survive_a_restart() -> None:
    window = made([{"running": 1.0, "preemptions": float(n)} for n in (3, 5, 5, 5, 1)])
    rows = scheduler_rows(window, True, NARROWEST)
    assert line(rows, "preempted").split()[1:] == ["1", "+45.0/min"]
    last = line(rows, "          since").split()[-1]
    assert last.endswith(":01")
    quiet = scheduler_rows(made([{"running": 1.0, "preemptions": 3.0}] * 3), True, NARROWEST)
    assert line(quiet, "preempted").split()[1:] == ["3", "+0/min"]
    assert line(quiet, "          since").split()[-1] == "–"


# requests


def test_requests_of_a_recorded_load() -> None:
    rows = request_rows(with_extras(), True, NARROWEST, most=256)
    assert line(rows, "ended").split() == ["ended", "4.0/s", "200", "in", "50", "s"]
    assert line(rows, "at once").split()[-4:] == ["most", "32", "/", "256"]
    assert line(rows, "prompt").split() == ["prompt", "≤1,000", "≤1,000", "977"]  # all alike: no value is made up
    assert line(rows, "answer").split() == ["answer", "≤500", "≤500", "500"]
    assert line(rows, "steps").split() == ["steps", "80.3/s"]
    assert line(rows, "a request").split() == ["a", "request", "31.1", "s", "1,477", "tokens"]
    assert line(rows, "             ").split() == ["1,500", "J", "of", "GPU", "energy"]
    assert not any("energy" in text for text in texts(request_rows(starved(), True, NARROWEST)))


# what only some servers have


def test_engines_show_which_is_fullest_and_how_even_they_are() -> None:
    rows = engine_rows(with_extras(), True, NARROWEST)
    assert engine_rows(starved(), True, NARROWEST) == []
    assert "of 17,248" in line(scheduler_rows(with_extras(), True, NARROWEST), "KV fullest")
    assert line(rows, "▲ 0").split() == ["▲", "0", "0", "0", "91%", "0.0"]
    assert line(rows, "  1").split()[:4] == ["1", "0", "0", "12%"]
    for loads, word in (((40, 42), "≈ even"), ((60, 30), "≠ uneven"), ((90, 0), "! one-sided"), ((3, 0), "○ little")):
        engines = [
            {"engine": str(n), "running": float(load), "waiting": 0.0, "kv_perc": 1.0} for n, load in enumerate(loads)
        ]
        assert word in texts(engine_rows(made([{"running": 1.0, "raw": {"engines": engines}}]), True, NARROWEST))[0]


def test_adapters_keep_their_room_and_hide_none_silently() -> None:
    rows = adapter_rows(with_extras(), True, NARROWEST)
    assert adapter_rows(starved(), True, NARROWEST) == []
    assert line(rows, "adapters") == "adapters  in use  2 of 4 waiting      2"
    assert line(rows, "● running, waiting").endswith("chat")
    assert line(rows, "○ waiting").endswith("late")
    for names in ([], [f"adapter-{n}" for n in range(40)]):
        use = {"most": 4.0, "running": names, "waiting": []}
        other = adapter_rows(made([{"running": 1.0, "raw": {"lora": use}}]), True, NARROWEST)
        assert len(other) == len(rows)
        assert ("… 37 more" in texts(other)[-1]) == bool(names)


def test_a_recorded_server_with_an_adapter_has_its_panel() -> None:
    rows = adapter_rows(Window(60.0, [scraped("lora-after-load", 0)]), True, NARROWEST)
    assert line(rows, "adapters") == "adapters  in use  0 of 1 waiting      0"


def test_speculation_over_the_window() -> None:
    rows = speculation_rows(with_extras(), True, NARROWEST)
    assert speculation_rows(starved(), True, NARROWEST) == []
    assert line(rows, "accepted").split()[1:3] == ["75.0", "%"]
    assert line(rows, "a step makes").split()[-2:] == ["2.50", "tokens"]
    assert line(rows, "position 1").split()[2:4] == ["90.0", "%"]
    assert line(rows, "position 2").split()[2:4] == ["60.0", "%"]


def test_a_value_of_another_time_than_now_is_none_and_panels_keep_their_height() -> None:
    window = with_extras()
    for panel in PANELS:
        known, unknown = panel(window, True, NARROWEST), panel(window, False, NARROWEST)
        assert len(known) >= len(unknown) > 0
        if panel is not adapter_rows:
            assert len(known) == len(unknown)
        shown = " ".join(text for row in unknown[1:] for text, kind in row if kind == "strong")
        assert not re.search(r"\d", shown), shown
        assert "–" in " ".join(texts(unknown))


def test_the_help_explains_every_label() -> None:
    told = " ".join(f"{name}: {meaning}" for name, meaning in (*DETAILS, *LATENCIES))
    window = with_extras()
    rows = [row for panel in PANELS for row in panel(window, True, NARROWEST)[1:]]
    rows += latency_rows(read_latencies(window, FULL), FULL, 60.0, True, 68, Units())[1:]
    labels = {row[0][0].strip() for row in rows if len(row) > 2 and row[0][1] == "muted"} - {"", "tokens"}
    assert len(labels) > 20
    for label in labels:
        assert re.sub(r"position \d+", "position", label) in told, label


# what limits it


def test_the_limit_stands_on_two_lines_and_its_finding_is_strong() -> None:
    found = Limit(
        "kv",
        "KV-bound: KV above 95 % for 40 s of the last 60, 17 preemptions, 16 waiting for capacity.",
        {},
        "Raise gpu-memory-utilization (now 0.92); max-num-seqs (now 256) cannot help, it only lets in more.",
    )
    rows = limit_rows(found, 78)
    assert texts(rows) == [
        "▶ KV-bound: KV above 95 % for 40 s of the last 60, 17 preemptions, 16 waiting",
        "  for capacity. Raise gpu-memory-utilization (now 0.92); max-num-seqs (now …",
    ]
    assert rows[0][1][1] == "strong"
    assert (" Raise gpu-memory-utilization (now 0.92); max-num-seqs (now …", "") in rows[1]
    assert "only lets in more." in texts(limit_rows(found, 130))[1]
    assert limit_rows(None, 78) == []
    assert texts(limit_rows(Limit("idle", "Idle: no requests."), 78)) == ["○ Idle: no requests."]
    for text in HOSTILE_TEXTS:
        for width in (8, 20, 78):
            for row in limit_rows(Limit("compute", text, {}, text), width):
                assert width_of(row) == width


# everything, hostile


def hostile_samples(number: Any, text: str) -> list[dict[str, Any]]:
    label = text.encode(errors="replace").decode()
    group = {label: number, "stop": number, f"{label}2": 1.0}
    engines = [{"engine": label, "running": number, "waiting": number, "kv_perc": number, "generation_tokens": number}]
    raw = {
        "requests_finished": group,
        "waiting_by_reason": group,
        "rejections": group,
        "prompt_by_source": group,
        "spec_accepted_by_position": {label: number, "0": number},
        "counters": {"spec_drafts": 1.0, "spec_draft_tokens": number, "external_prefix_queries": 1e300, label: number},
        "histograms": {name: {"sum": number, "count": 3.0, "corners": [[0.01, number], [None, 3.0]]} for name in FULL},
        "engines": [*engines, {"engine": "b"}, "x"],
        "lora": {"most": number, "running": [label, label], "waiting": [label, 3]},
        "process_start": number,
        "kv_cache_tokens": number,
        "sleep_state": label,
    }
    columns = {"running": number, "waiting": number, "kv_perc": number, "preemptions": number, "gpu_energy_j": number}
    return [
        {**columns, "raw": raw},
        {"running": 1.0, "raw": {**raw, "lora": "x", "engines": 7}},
        {**columns, "raw": raw},
    ]


@pytest.mark.parametrize("number", HOSTILE_NUMBERS, ids=str)
def test_no_number_and_no_text_breaks_a_panel_or_its_width(number: Any) -> None:
    for text in HOSTILE_TEXTS:
        window = made(hostile_samples(number, text))
        slots = Slots()
        slots.follow(window, 30)
        for width in (NARROWEST, 58):
            for answers in (True, False):
                rows = [row for panel in PANELS for row in panel(window, answers, width)]
                rows += latency_rows(read_latencies(window, FULL), FULL, 60.0, answers, width, Units())
                rows += history_rows(slots, 60.0, answers, width, 4 * len(HISTORIES))
                for row in rows:
                    assert width_of(row) == width, text_of(row)
                    assert text_of(row).isprintable(), text_of(row)
                    assert not re.search(r"\b(nan|inf)\b", text_of(row))


# the widgets


class Page(App[None]):
    def compose(self) -> ComposeResult:
        yield LatencyTable()
        yield LimitLine()
        yield MonitorDetails()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (140, 45), (39, 10), (20, 8)])
async def test_widgets_draw_by_the_size_they_have(size: tuple[int, int]) -> None:
    app = Page()
    window = with_extras()
    async with app.run_test(size=size) as pilot:
        table, limit, details = app.query_one(LatencyTable), app.query_one(LimitLine), app.query_one(MonitorDetails)
        for answers in (True, False):
            table.draw(window, answers)
            limit.draw(Limit("idle", "Idle: no requests."), answers)
            details.draw(window, answers, Knobs(max_num_seqs=Knob(256, "flag")))
            await pilot.pause()
            assert ("Idle" in limit.text) == answers
            assert all(width_of(row) <= details.content_size.width for row in details.rows)
            assert len(details.rows) == details.content_size.height
        assert table.text.splitlines()[1].startswith("TTFT ")
        assert "end to end" in table.text
        table.styles.height = 8
        await pilot.pause()
        table.draw(window, True)
        assert "decode" in table.text
        if size == (140, 45):
            for word in ("scheduler", "requests", "engines", "LoRA adapters", "speculation", "TTFT p99"):
                assert word in details.text


async def test_nothing_is_worked_out_twice_for_one_sample() -> None:
    app = Page()
    window = starved()
    async with app.run_test(size=(120, 40)):
        details = app.query_one(MonitorDetails)
        details.draw(window, True)
        shown = details.rows
        details.draw(window, True)
        assert details.rows is shown
        details.draw(Window(60.0), True)
        assert details.rows != shown


def test_panels_are_packed_whole_in_their_order() -> None:
    panels = [[(("a", ""),)] * 5, [(("b", ""),)] * 6, [(("c", ""),)] * 2, []]
    assert [[text_of(row) for row in column] for column in pack(panels, 1, 8)] == [["a"] * 5 + ["c"] * 2]
    assert [len(column) for column in pack(panels, 2, 8)] == [7, 6]
    assert columns_of(39) == (1, 39)
    assert columns_of(78) == (1, 78)
    assert columns_of(79) == columns_of(80) == (2, 39)
    assert columns_of(60) == (1, 60)
    assert math.prod(columns_of(5)) == 5
