"""Every class of failure over the texts and forms of vLLM 0.10 to 0.33: class, numbers, cause and remedy."""

import json
import random

import pytest

from engine.explain import explain
from engine.failures.table import CLASSES
from tests.engine.failure_texts.table import TEXTS
from tests.engine.failure_texts.text import CACHE, LOADED, OOM, READY, V0_19, V0_25, Text, info
from tests.engine.log_forms import FORMS, Form, v0_25_1
from tests.engine.observed import CPU, H200

WITH_EXCEPTION = {name: text for name, text in TEXTS.items() if text.error}
# One wording of each theme, told in every form; the others in the one that their place in the table gives them.
IN_EVERY_FORM = ("kv-old", "free-device", "oom-sampler", "batched-seqs", "gated", "rank", "quota", "unknown")


# Logs of a real vLLM 0.32.0: class, what the cause names, what the remedy says.
REAL = {
    "fail-truncated": ("checkpoint_invalid", "incomplete metadata", "Fetch that file again"),
    "fail-no-weights": ("checkpoint_invalid", "holds no weights", "--load-format"),
    "fail-kv-bytes": ("no_kv_memory", "nothing for the KV cache", "--kv-cache-memory-bytes to 1073741824"),
    "fail-awq": ("quantization_unsupported", "awq", "--quantization out"),
    "fail-no-model": ("checkpoint_invalid", "/models/none", "Check the path"),
    "fail-no-adapter": ("lora_refused", "/nowhere", "--lora-modules"),
    "fail-rank-flag": ("lora_rank", "--max-lora-rank 24", "--max-lora-rank to 32"),
    "fail-dtype": ("dtype_unsupported", "bf16", "--dtype to auto"),
}


@pytest.mark.parametrize("name", REAL)
def test_failures_of_a_real_cpu_server(name: str) -> None:
    failure_class, cause, remedy = REAL[name]
    found = explain((CPU / f"logs/{name}.log").read_text())
    assert (found.outcome, found.failure_class) == ("failed", failure_class)
    assert cause in (found.cause or "")
    assert remedy in (found.remedy or "")


def check(text: Text, log: str) -> None:
    found = explain(text.before + log + text.after)
    assert (found.outcome, found.failure_class) == ("failed", text.failure_class), found.cause
    assert found.cause is not None
    assert found.remedy is not None
    assert text.cause in found.cause
    assert text.remedy in found.remedy
    assert {name: found.numbers.get(name) for name in text.numbers} == text.numbers
    assert "initialization failed" not in found.cause
    assert "[[" not in found.cause + found.remedy
    assert "{" not in found.remedy
    assert found.lines


@pytest.mark.parametrize("name", TEXTS)
def test_each_text_has_its_class_numbers_and_remedy(name: str) -> None:
    text = TEXTS[name]
    form = FORMS[list(TEXTS).index(name) % len(FORMS)]
    if text.before and form.__name__ in ("nested", "rank"):
        form = v0_25_1  # what stands before is told by an engine without workers
    check(text, form(text.error) if text.error else "")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("name", IN_EVERY_FORM)
def test_a_text_is_understood_in_every_form(name: str, form: Form) -> None:
    check(TEXTS[name], form(TEXTS[name].error))


def test_there_are_enough_texts_and_every_class_has_one() -> None:
    assert len(TEXTS) + len(list(H200.glob("logs/fail-*.log"))) >= 60
    assert {text.failure_class for text in TEXTS.values()} == set(CLASSES)


def test_a_worker_that_is_behind_is_told_by_its_own_lines() -> None:
    loaded = info("Model loading took 14.29 GiB memory and 1.5 seconds", "Worker_TP1 pid=2")
    failed = "({} pid=1) ERROR 09-18 10:00:00 [x.py:1] " + OOM
    assert explain(V0_19 + loaded + failed.format("Worker_TP0")).failure_class == "oom_load"
    assert explain(V0_19 + loaded + failed.format("Worker_TP1")).failure_class == "oom_profile"


def test_what_the_caller_knows_makes_the_remedy_exact() -> None:
    log = "vllm: error: unrecognized arguments: --max-seq-len-to-capture 8192\n"
    old = explain(log, known_flags=frozenset({"cuda-graph-sizes", "max-model-len"}))
    assert "use --cuda-graph-sizes" in (old.remedy or "")
    small = v0_25_1(TEXTS["kv-none-fits"].error)
    known = explain(TEXTS["kv-none-fits"].before + small, total_gib=23.6)
    assert known.numbers["needed_utilization"] == 0.8
    assert "--gpu-memory-utilization to 0.8" in (known.remedy or "")


def test_flags_of_a_whole_usage_text_are_those_of_the_installation() -> None:
    flags = " ".join(f"[--flag-{number}]" for number in range(30))
    log = f"usage: vllm serve {flags}\n  [--max-model-len N]\nvllm serve: error: unrecognized arguments: --flag-777\n"
    assert "Did you mean --flag-" in (explain(log).remedy or "")


def test_health_that_recovered_is_not_broken() -> None:
    bad = 'INFO:     127.0.0.1:4 - "GET /health HTTP/1.1" 503 Service Unavailable\n'
    good = 'INFO:     127.0.0.1:4 - "GET /health HTTP/1.1" 200 OK\n'
    assert explain(V0_25 + LOADED + CACHE + READY + bad * 5 + good).outcome == "ready"
    assert explain(V0_25 + LOADED + CACHE + READY + good + bad * 2).outcome == "ready"
    assert explain(V0_25 + LOADED + CACHE + READY + good + bad * 3).failure_class == "health_broken"


def test_damaged_logs_have_an_explanation_that_can_be_kept() -> None:
    chance = random.Random(1)
    logs = [form(text.error) for text in WITH_EXCEPTION.values() for form in FORMS]
    bits = ("", "\x1b[", "{", "}", "[[", "]]", "9" * 30, "\r", "\n", "'", "(", ")", "GiB", "-", ".", "\0", "\u202e")
    for _ in range(300):
        log = chance.choice(logs)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(log) + 1)
            log = log[:at] + chance.choice(bits) + log[at + chance.randrange(4) :]
        found = explain(log, chance.choice([None, 0, 1, -9, -11]))
        json.dumps(found.to_json(), allow_nan=False)
        if found.outcome == "failed":
            assert found.failure_class in CLASSES
            assert found.cause
            assert found.remedy
            assert (found.cause + found.remedy).isprintable()


@pytest.mark.parametrize(
    ("before", "failure_class"),
    [
        ("ValueError: the moon is full", "unknown"),
        ("torch.distributed.DistBackendError: NCCL error, remote process exited", "host_oom"),
        ("ConnectionResetError: [Errno 104] Connection reset by peer", "host_oom"),
    ],
)
def test_a_killed_process_is_the_cause_unless_something_went_wrong_before(before: str, failure_class: str) -> None:
    killed = "Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor."
    assert explain(v0_25_1((before,)) + v0_25_1((killed,))).failure_class == failure_class


def test_what_has_no_class_gives_way_to_what_has_one() -> None:
    benign = v0_25_1(("PermissionError: [Errno 13] Permission denied: '/root/.config/vllm'",))
    found = explain(benign + v0_25_1((OOM,)))
    assert found.failure_class == "oom_load"


def test_the_port_at_which_workers_meet_is_not_the_servers_own() -> None:
    found = explain(
        "[W918 10:00:00 socket.cpp:767] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address "
        "already in use).\n"
    )
    assert (found.failure_class, found.numbers) == ("port_in_use", {"port": 29500})
    assert "VLLM_PORT" in (found.remedy or "")


def test_a_signal_is_named() -> None:
    assert "signal 11" in (explain(LOADED, -11).cause or "")
    assert "--shm-size" in (explain(LOADED, -7).remedy or "")


@pytest.mark.parametrize(
    "error",
    [
        "ValueError: Invalid repository ID or local directory specified: 'https://me:hunter2pw@example.com/x'",
        "OSError: 401 Client Error: Unauthorized, token=hf_abcdefghijklmnopqrstuvwx",
        "vllm.OddError: --api-key hunter2pw was refused",
    ],
)
def test_no_secret_leaves_an_explanation(error: str) -> None:
    found = explain(v0_25_1((error,)))
    said = " ".join([found.cause or "", found.remedy or "", *found.lines])
    assert "***" in said
    assert "hunter2pw" not in said
    assert "hf_abc" not in said


GONE = "Engine core process EngineCore_0 died unexpectedly."
DEAD = (
    "Traceback (most recent call last):",
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace for the cause.",
)


@pytest.mark.parametrize(
    "gone", [GONE, "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"]
)
@pytest.mark.parametrize("after", [(), DEAD])
@pytest.mark.parametrize(
    ("oom_killed", "failure_class"), [(False, "interrupted"), (None, "interrupted"), (True, "host_oom")]
)
def test_an_engine_that_died_without_a_word_was_struck_from_outside(
    gone: str, after: tuple[str, ...], oom_killed: bool | None, failure_class: str
) -> None:
    log = v0_25_1((gone,)) + (v0_25_1(after) if after else "")
    assert explain(log, exit_code=1, oom_killed=oom_killed).failure_class == failure_class


def test_an_engine_that_said_why_it_died_was_not() -> None:
    assert explain(v0_25_1((OOM,)) + v0_25_1((GONE,)), exit_code=1).failure_class == "oom_load"
    assert (
        explain(v0_25_1(("ValueError: the moon is full",)) + v0_25_1((GONE,)), exit_code=1).failure_class == "unknown"
    )
