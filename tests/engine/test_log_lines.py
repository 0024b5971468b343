import json
from pathlib import Path

import pytest

from engine.logs.log_lines import LogLine, parse_line, split_lines
from tests.engine.observed import CPU, H200, LOGS, file_id

SAMPLE = "KV cache"


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (
            "INFO 07-28 23:02:27 [kv_cache_utils.py:833] KV cache",
            LogLine(None, None, "INFO", "07-28 23:02:27", "kv_cache_utils.py:833", SAMPLE),
        ),
        (
            "(VllmWorker rank=0 pid=41) INFO 07-28 23:02:27 [a.py:1] KV cache",
            LogLine("VllmWorker rank=0", 41, "INFO", "07-28 23:02:27", "a.py:1", SAMPLE),
        ),
        (
            "\x1b[1;36m(EngineCore_DP0 pid=387)\x1b[0;0m WARNING 03-08 16:44:28 [a.py:51] KV cache",
            LogLine("EngineCore_DP0", 387, "WARNING", "03-08 16:44:28", "a.py:51", SAMPLE),
        ),
        (
            "(APIServer pid=1) (EngineCore_DP6 pid=2454) (Worker_DP6_EP6 pid=6) ERROR 03-08 16:44:28 [a.py:5] KV cache",
            LogLine("Worker_DP6_EP6", 6, "ERROR", "03-08 16:44:28", "a.py:5", SAMPLE),
        ),
        (
            "my prefix (Worker pid=3) INFO 11-01 10:00:00 [v1/core/a.py:2] KV cache",
            LogLine("Worker", 3, "INFO", "11-01 10:00:00", "v1/core/a.py:2", SAMPLE),
        ),
        (
            "INFO 11-01 10:00:00 [a.py:2] (Worker pid=3) KV cache",
            LogLine("Worker", 3, "INFO", "11-01 10:00:00", "a.py:2", SAMPLE),
        ),
        (
            "2026-11-30T10:00:00.123456789Z (APIServer pid=1) INFO:     KV cache",
            LogLine("APIServer", 1, "INFO", None, None, SAMPLE),
        ),
        ("INFO:     KV cache", LogLine(None, None, "INFO", None, None, SAMPLE)),
        ("(Worker_TP0 pid=34322)", LogLine("Worker_TP0", 34322, None, None, None, "")),
        ("(Worker_TP0 pid=34322) ", LogLine("Worker_TP0", 34322, None, None, None, "")),
        ("", LogLine(None, None, None, None, None, "")),
        ("  File (model pid) x", LogLine(None, None, None, None, None, "  File (model pid) x")),
        ('{"not": "a log line"}', LogLine(None, None, None, None, None, '{"not": "a log line"}')),
        ("{broken", LogLine(None, None, None, None, None, "{broken")),
    ],
)
def test_heads_of_all_versions(raw: str, line: LogLine) -> None:
    assert parse_line(raw) == line


def test_a_json_log_line() -> None:
    record = {
        "asctime": "11-30 10:00:00",
        "levelname": "INFO",
        "name": "vllm.v1.core.kv_cache_utils",
        "processName": "EngineCore",
        "process": 90,
        "message": "KV \x1b[31mcache",
    }
    expected = LogLine("EngineCore", 90, "INFO", "11-30 10:00:00", "vllm.v1.core.kv_cache_utils", SAMPLE)
    assert parse_line(json.dumps(record)) == expected


def test_lines_of_one_message_joined_by_cr_lf_are_all_kept() -> None:
    text = "ERROR 11-30 08:59:10 [core.py:1] one\r\nERROR 11-30 08:59:10 [core.py:1]   two\r\nplain\r\n"
    assert [line.text for line in split_lines(text)] == ["one", "  two", "plain"]


def test_only_the_last_state_of_a_progress_bar_counts() -> None:
    bar = "(EngineCore pid=6) Capturing:   0%|  | 0/51\rCapturing:  50%|█ | 25/51\rCapturing: 100%|██| 51/51\n"
    assert split_lines(bar)[0].text == "Capturing: 100%|██| 51/51"


def test_a_log_line_behind_an_unfinished_progress_bar_is_read() -> None:
    line = parse_line("Loading shards:  50%|█ | 1/2(EngineCore pid=6) INFO 11-30 08:49:48 [a.py:3] KV cache")
    assert line == LogLine("EngineCore", 6, "INFO", "11-30 08:49:48", "a.py:3", SAMPLE)


@pytest.mark.parametrize("path", LOGS, ids=file_id)
def test_every_line_of_a_real_log_is_there_under_its_number(path: Path) -> None:
    text = path.read_text()
    lines = split_lines(text)
    assert len(lines) == len(text.removesuffix("\n").split("\n")) * bool(text)
    assert not [line for line in lines if "pid=" in line.text or "\r" in line.text or "\x1b" in line.text]


def test_processes_of_a_real_log() -> None:
    spoke = {(line.process, line.pid) for line in split_lines((CPU / "logs/eager.log").read_text())}
    assert spoke == {
        (None, None),
        ("APIServer", 26366),
        ("EngineCore", 26849),
        ("VllmWorker-0", 26944),
        ("Worker", 26944),
    }
    lines = split_lines((H200 / "logs/fail-kvsmall.log").read_text())
    assert [line.text[:40] for line in lines if line.level == "ERROR" and "Error" in line.text] == [
        "    raise ValueError(",
        "ValueError: To serve at least one reques",
    ]
