import json
import time
from pathlib import Path

import pytest

from engine.explain import explain
from tests.engine.observed import CPU, H200, LOGS, file_id

HEAD = "(EngineCore pid=90) {level} 09-18 10:00:00 [core.py:1231] "
LOADED = HEAD.format(level="INFO") + "Model loading took 14.29 GiB and 1.5 seconds\n"
CACHE = HEAD.format(level="INFO") + "GPU KV cache size: 176,240 tokens\n"
GRAPHS = HEAD.format(level="INFO") + "Graph capturing finished in 5 secs, took 0.89 GiB\n"
READY = "INFO:     Application startup complete.\n"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 270.00 MiB. GPU 0 has a total capacity of 139.80 "
    "GiB of which 12.50 MiB is free. Including non-PyTorch memory, this process has 139.7 GiB memory in use."
)
WRAPPER = (
    "(APIServer pid=80) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
)


def error(text: str) -> str:
    return HEAD.format(level="ERROR") + text + "\n"


FAILED: dict[str, tuple[str, dict[str, float | int], str]] = {
    "fail-awq": ("quantization_unsupported", {}, "awq"),
    "fail-badarg": ("unknown_flag", {}, "--max-paddings 256"),
    "fail-batched-lt": ("batched_tokens_invalid", {"max_num_batched_tokens": 1024, "max_model_len": 4096}, "1024"),
    "fail-batched-lt-seqs": ("batched_tokens_invalid", {"max_num_batched_tokens": 64, "max_num_seqs": 256}, "256"),
    "fail-kvsmall": (
        "kv_cache_too_small",
        {
            "max_model_len": 32768,
            "needed_gib": 1.75,
            "available_gib": 0.03,
            "longest_model_len": 464,
            "short_gib": 1.72,
        },
        "1.75 GiB",
    ),
    "fail-len": ("model_len_invalid", {"max_model_len": 65536, "longest_model_len": 32768}, "65536"),
    "fail-lorarank": ("lora_rank", {"rank": 16, "max_lora_rank": 8, "fitting_rank": 16}, "16"),
    "fail-second": (
        "free_memory_short",
        {
            "free_gib": 120.24,
            "total_gib": 139.8,
            "utilization": 0.92,
            "wanted_gib": 128.62,
            "highest_utilization": 0.86,
        },
        "120.24 of 139.8 GiB",
    ),
    "fail-util-low": ("no_kv_memory", {"available_gib": -0.95, "weights_gib": 14.29}, "-0.95 GiB"),
}


@pytest.mark.parametrize("name", FAILED)
def test_real_failures_have_their_cause_numbers_and_line(name: str) -> None:
    failure_class, numbers, said = FAILED[name]
    text = (H200 / f"logs/{name}.log").read_text()
    found = explain(text)
    assert (found.outcome, found.failure_class, found.numbers) == ("failed", failure_class, numbers)
    assert found.cause is not None
    assert said in found.cause
    assert found.remedy
    assert "initialization failed" not in found.cause
    assert len(found.lines) == 1
    assert found.lines[0] in text


@pytest.mark.parametrize("path", [path for path in LOGS if not path.stem.startswith("fail")], ids=file_id)
def test_real_starts_are_ready_even_after_they_were_stopped(path: Path) -> None:
    found = explain(path.read_text())
    assert found.outcome == "ready"
    assert (found.failure_class, found.cause, found.remedy, found.lines) == (None, None, None, ())


@pytest.mark.parametrize("path", LOGS, ids=file_id)
def test_json_has_the_keys_of_the_contract(path: Path) -> None:
    found = explain(path.read_text()).to_json()
    assert list(found) == [
        *("schema", "vllm_version", "outcome", "class", "cause", "numbers", "remedy", "lines", "facts"),
    ]
    assert list(found["facts"]) == [
        *("weights_gib", "load_s", "kv_cache_gib", "kv_cache_tokens", "max_concurrency", "max_concurrency_at_tokens"),
        *("graph_capture_s", "graph_gib", "compile_s", "init_s", "attention_backend", "quantization_kernel"),
    ]
    assert found["schema"] == 1
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("before", "failure_class"),
    [
        ("", "oom_load"),
        (LOADED, "oom_profile"),
        (LOADED + CACHE, "oom_graph"),
        (LOADED + CACHE + GRAPHS, "oom_sampler"),
    ],
)
def test_memory_that_ran_out_is_told_by_the_stage(before: str, failure_class: str) -> None:
    found = explain(before + error(OOM) + WRAPPER)
    assert found.failure_class == failure_class
    assert found.numbers == {"wanted_gib": 0.264, "free_gib": 0.012, "total_gib": 139.8}
    assert found.cause is not None
    assert "0.264 GiB" in found.cause


def test_the_hint_about_free_memory_is_no_error() -> None:
    hint = (
        "Free memory on device (78.5/79.18 GiB) on startup. Desired GPU memory utilization is (0.92, 72.85 GiB). "
        "Actual usage is 15.5 GiB for consumed memory. Replace the config with `--kv-cache-memory=59602132992`"
    )
    assert explain(HEAD.format(level="INFO") + hint + "\n" + READY).outcome == "ready"
    assert explain(HEAD.format(level="INFO") + hint).outcome == "starting"


def test_a_cause_in_the_middle_of_a_warning_is_not_taken() -> None:
    warning = HEAD.format(level="WARNING") + "limits like `OSError: [Errno 28] No space left on device`\n"
    assert explain(warning).outcome == "starting"


def test_the_cause_is_the_first_that_went_wrong() -> None:
    found = explain(error("OSError: No space left on device") + error("OSError: Address already in use") + WRAPPER)
    assert found.failure_class == "disk_full"


def test_a_message_over_several_lines_is_found_with_all_of_them() -> None:
    text = (
        "ValueError: To serve at least one request with the model's max seq len (8192), (1.0 GiB KV\n"
        "cache is needed, which is larger than the available KV cache\n"
        "memory (0.5 GiB).\n"
    )
    found = explain(text)
    assert found.failure_class == "kv_cache_too_small"
    assert found.lines == tuple(text.splitlines())


def test_an_unknown_error_is_said_in_its_own_words_not_in_a_wrapper_s() -> None:
    text = (
        error("EngineCore failed to start.")
        + error("Traceback (most recent call last):")
        + error('  File "x.py", line 1, in y')
        + error("vllm.exceptions.OddError: the moon is [/full]")
        + WRAPPER
    )
    found = explain(text)
    assert found.failure_class == "unknown"
    assert found.cause == "vllm.exceptions.OddError: the moon is [/full]"
    assert found.lines == (
        HEAD.format(level="ERROR") + '  File "x.py", line 1, in y',
        HEAD.format(level="ERROR") + "vllm.exceptions.OddError: the moon is [/full]",
    )


def test_of_a_chain_the_exception_meant_for_the_reader_is_taken() -> None:
    text = (
        "Traceback (most recent call last):\nKeyError: 'qwen9'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\nValueError: Transformers does not know this architecture.\n"
    )
    assert explain(text).cause == "ValueError: Transformers does not know this architecture."


def test_a_value_error_that_pydantic_wrapped() -> None:
    text = (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
        "  Value error, No such thing here [type=value_error, input_value=ArgsKwargs((), {'x': 1})]\n"
    )
    assert explain(text).cause == "No such thing here"


def test_only_a_wrapper_says_that_the_log_does_not_tell() -> None:
    found = explain(WRAPPER)
    assert (found.outcome, found.failure_class) == ("failed", "unknown")
    assert found.cause == "The engine process ended and its log does not say why."


def test_a_server_that_died_while_it_served_failed() -> None:
    dead = error("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace above")
    found = explain(LOADED + CACHE + READY + error(OOM) + dead)
    assert (found.outcome, found.failure_class) == ("failed", "unknown")
    assert found.cause is not None
    assert "while serving" in found.cause
    stopped = HEAD.format(level="INFO") + "[shutdown] API server: shutdown triggered\n"
    assert explain(LOADED + CACHE + READY + stopped + dead).outcome == "ready"


def test_of_several_starts_in_one_file_the_last_counts() -> None:
    command = "# /venv/bin/vllm serve /models/m --port 8000\n"
    failed = command + error("OSError: No space left on device") + WRAPPER + "\n"
    ready = command + LOADED + READY
    assert explain(failed + ready).outcome == "ready"
    assert explain(ready + failed).failure_class == "disk_full"
    assert explain(ready + failed).facts.weights_gib is None
    assert explain(ready + command).outcome == "unknown"


@pytest.mark.parametrize(
    ("text", "exit_code", "outcome", "failure_class"),
    [
        (LOADED + READY, None, "ready", None),
        (LOADED + READY, 0, "ready", None),
        (LOADED + READY, -9, "failed", "host_oom"),
        (LOADED + READY, 1, "failed", "unknown"),
        (LOADED + READY + "INFO:     Shutting down\n", -9, "ready", None),
        ("", None, "unknown", None),
        ("hello\nworld\n", None, "unknown", None),
        (LOADED, None, "starting", None),
        (LOADED, -9, "failed", "host_oom"),
        (LOADED, -15, "failed", "interrupted"),
        (LOADED, 1, "failed", "unknown"),
        ("", 1, "failed", "unknown"),
        (LOADED + "KeyboardInterrupt\n", None, "failed", "interrupted"),
    ],
)
def test_outcomes_without_a_cause(text: str, exit_code: int | None, outcome: str, failure_class: str | None) -> None:
    found = explain(text, exit_code)
    assert (found.outcome, found.failure_class) == (outcome, failure_class)
    assert (found.cause is None) == (outcome != "failed")


def test_hostile_text_is_cleaned_and_keys_are_hidden() -> None:
    found = explain("vllm: error: unrecognized arguments: --api-key hunter2 \x1b[31m[/mnt/x]\u202e {cause}\n")
    assert found.cause == "This vLLM does not know: --api-key *** [/mnt/x] {cause}."
    assert found.lines == ("vllm: error: unrecognized arguments: --api-key *** [/mnt/x] {cause}",)


def test_numbers_that_no_server_prints_do_no_harm() -> None:
    text = error("Free memory on device (1.2.3/0 GiB) on startup is less than desired (9e999, 1 GiB)")
    assert explain(text + error(OOM.replace("270.00", "." * 50))).outcome == "failed"
    zero = error("Free memory on device (1/0 GiB) on startup is less than desired GPU memory utilization (0.9, 1 GiB)")
    assert explain(zero).remedy == "Stop what else uses the GPU."


def test_the_version_stands_beside_the_outcome() -> None:
    assert explain((CPU / "logs/eager.log").read_text()).vllm_version == "0.32.0"


@pytest.mark.parametrize(
    "line",
    ["a" * 50_000, "a-" * 25_000, "://a" * 10_000, "api_key='" + "\\'" * 20_000, "Worker proc " * 5000, "(" * 50_000],
)
def test_a_hostile_line_costs_no_more_than_its_length(line: str) -> None:
    began = time.perf_counter()
    explain(error(line) + line)
    assert time.perf_counter() - began < 10  # some took a minute when their patterns were not bounded
