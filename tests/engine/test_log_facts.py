from pathlib import Path
from typing import Any

import pytest

from engine.logs.log_facts import LogReader, engine_config, read_facts
from engine.records import LogFacts
from tests.engine.observed import CPU, H200, LOGS, file_id

# What the files say, in this order.
NAMES = (
    "weights_gib",
    "load_s",
    "kv_cache_gib",
    "kv_cache_tokens",
    "max_concurrency",
    "max_concurrency_at_tokens",
    "graph_capture_s",
    "graph_gib",
    "compile_s",
    "init_s",
)
STARTED: dict[str, tuple[float | None, ...]] = {
    "h200-first": (14.29, 1.777227, 112.98, 2115440, 516.46, 4096, 6, 0.89, 24.61, 50.59),
    "h200-A1": (14.29, 2.083327, 112.98, 2115440, 516.46, 4096, 5, 0.89, 24.73, 52.04),
    "h200-A2": (14.29, 1.818393, 113.04, 2116592, 516.75, 4096, 5, 0.89, 4.37, 29.45),
    "h200-B1": (14.29, 1.676379, 113.06, 2116976, 516.84, 4096, 5, 0.89, 26.75, 56.09),
    "h200-live": (14.29, 1.708199, 112.98, 2115440, 516.46, 4096, 4, 0.89, 24.73, 51.99),
    "h200-cont": (14.29, 1.401041, 112.98, 2115568, 516.50, 4096, None, None, None, 2.60),
    "h200-static": (14.29, 1.710323, 113.53, 2125744, 518.98, 4096, None, None, None, 3.18),
    "h200-util-02": (14.29, 1.424126, 1.84, 34496, 8.42, 4096, None, None, None, 2.58),
    "h200-lora": (3.45, 2.036862, 37.34, 1398208, 341.36, 4096, None, None, None, 4.96),
    "h200-fail-lorarank": (3.43, 2.585530, 37.35, 1398848, 341.52, 4096, None, None, None, 25.47),
    "h200-fail-kvsmall": (14.29, 1.474313, 0.03, None, None, None, None, None, None, None),
    "h200-fail-util-low": (14.29, 1.580192, -0.95, None, None, None, None, None, None, None),
    "cpu-eager": (None, 0.18, 2.0, 93184, 45.5, 2048, None, None, None, 3.85),
    "cpu-first-start": (None, 0.43, 2.0, 93184, 45.5, 2048, None, None, None, 0.93),
    "cpu-live": (None, 0.38, 2.0, 93184, 45.5, 2048, None, None, None, 2.82),
    "cpu-lora": (None, 0.17, 2.0, 93184, 91.0, 1024, None, None, None, 2.87),
    "cpu-fail-kv-bytes": (None, 0.21, 0.0, None, None, None, None, None, None, None),
    "cpu-fail-no-adapter": (None, 0.31, 0.56, 25856, 50.5, 512, None, None, None, 0.30),
}


@pytest.mark.parametrize("path", LOGS, ids=file_id)
def test_numbers_of_real_logs(path: Path) -> None:
    facts = read_facts(path.read_text())
    expected = STARTED.get(file_id(path), (None,) * len(NAMES))
    assert tuple(getattr(facts, name) for name in NAMES) == expected


@pytest.mark.parametrize("path", LOGS, ids=file_id)
def test_words_of_real_logs(path: Path) -> None:
    facts = read_facts(path.read_text())
    silent = path.stem in ("fail-badarg", "fail-port", "fail-dtype", "fail-rank-flag")
    version = None if silent else "0.25.1" if H200 in path.parents else "0.32.0"
    assert facts.vllm_version == version
    loads_a_model = H200 in path.parents and file_id(path) in STARTED
    assert facts.attention_backend == ("FLASH_ATTN" if loads_a_model else None)
    assert facts.listening == (not path.stem.startswith("fail"))
    assert (facts.served_url is not None) == facts.listening


def test_configuration_of_a_real_log() -> None:
    facts = read_facts((H200 / "logs/first.log").read_text())
    assert facts.served_url == "http://127.0.0.1:8000"
    assert facts.engine_config["model"] == "/models/qwen2.5-7b"
    assert facts.engine_config["max_seq_len"] == "4096"
    assert facts.engine_config["dtype"] == "torch.bfloat16"
    assert facts.engine_config["enforce_eager"] == "False"
    assert facts.engine_config["device_config"] == "cuda"
    assert facts.engine_config["max_num_batched_tokens"] == "8192"  # the server's own default
    assert facts.non_default_args is not None
    assert facts.non_default_args.startswith("{'model_tag': '/models/qwen2.5-7b', 'host': '127.0.0.1'")


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_log_read_in_pieces_gives_the_same_facts(size: int) -> None:
    data = (H200 / "logs/A1.log").read_bytes()
    reader = LogReader()
    for start in range(0, len(data), size):
        reader.feed(data[start : start + size])
    assert reader.facts == read_facts(data.decode())


def test_a_line_counts_when_its_end_has_come() -> None:
    reader = LogReader()
    reader.feed(b"INFO 07-28 23:02:27 [w.py:5] Available KV cache memory: 18.8")
    assert reader.facts == LogFacts()
    reader.feed(b"3 GiB\n")
    assert reader.facts.kv_cache_gib == 18.83


def test_bytes_that_are_no_text_do_no_harm() -> None:
    reader = LogReader()
    reader.feed(b"\xff\xfe\x00 init engine (profile\n" + b"x\r" * 100_000)
    reader.feed(b"\nModel loading took 1.5 GiB and 2.0 seconds\n")
    assert reader.facts.weights_gib == 1.5


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        ("Model loading took 1.1201 GiB and 0.494173 seconds", {"weights_gib": 1.1201, "load_s": 0.494173}),
        ("Model loading took 9.3456 GiB memory and 12.5 seconds", {"weights_gib": 9.3456, "load_s": 12.5}),
        ("Model loading took 9.4 GiB memory and 12.500000 seconds", {"weights_gib": 9.4, "load_s": 12.5}),
        ("Loading weights took 0.71 seconds", {"load_s": 0.71}),
        ("Available KV cache memory: 18.83 GiB", {"kv_cache_gib": 18.83}),
        ("Available KV cache memory: -0.95 GiB", {"kv_cache_gib": -0.95}),
        ("Available KV cache memory: 0.0 GiB", {"kv_cache_gib": 0.0}),
        ("Auto set (3.2/23.54) GiB for KV cache on node 0, with 3.5 GiB requested", {"kv_cache_gib": 3.2}),
        ("GPU KV cache size: 176,240 tokens", {"kv_cache_tokens": 176240}),
        (
            "Maximum concurrency for 8,192 tokens per request: 21.51x",
            {"max_concurrency": 21.51, "max_concurrency_at_tokens": 8192},
        ),
        (
            "GPU KV cache size: 150,745 tokens, Maximum concurrency for 124,000 tokens per request: 1.22x",
            {"kv_cache_tokens": 150745, "max_concurrency": 1.22, "max_concurrency_at_tokens": 124000},
        ),
        (
            "XPU KV cache size: 9,728 tokens, Maximum concurrency for 2,048 tokens per request: 4.75x",
            {"kv_cache_tokens": 9728, "max_concurrency": 4.75, "max_concurrency_at_tokens": 2048},
        ),
        ("GPU + host KV cache size: 9,728 tokens, ", {"kv_cache_tokens": 9728}),
        ("Graph capturing finished in 12 secs, took 0.40 GiB", {"graph_capture_s": 12.0, "graph_gib": 0.4}),
        ("Graph capturing finished in 1 secs, took -0.03 GiB", {"graph_capture_s": 1.0, "graph_gib": -0.03}),
        ("torch.compile takes 31.86 s in total", {"compile_s": 31.86}),
        ("torch.compile took 24.73 s in total", {"compile_s": 24.73}),
        ("init engine (profile, create kv cache, warmup model) took 13.80 seconds", {"init_s": 13.8}),
        ("init engine (profile, create kv cache, warmup model) took 0.93 s", {"init_s": 0.93}),
        (
            "init engine (profile, create kv cache, warmup model) took 31.20 s (compilation: 9.87 s)",
            {"init_s": 31.2, "compile_s": 9.87},
        ),
        (
            "init engine (profile, create kv cache, warmup model) took 31.20 s (compilation: 9.87 s — "
            "language_model: 8.00 s, encoder: 1.87 s)",
            {"init_s": 31.2, "compile_s": 9.87},
        ),
        ("vLLM API server version 0.10.0", {"vllm_version": "0.10.0"}),
        ("▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.33.0", {"vllm_version": "0.33.0"}),
        ("Starting vLLM API server 0 on http://0.0.0.0:8000", {"listening": True, "served_url": "http://0.0.0.0:8000"}),
        ("Starting vLLM API server on http://h:1", {"listening": True, "served_url": "http://h:1"}),
        ("Starting vLLM server on http://[::]:8000", {"listening": True, "served_url": "http://[::]:8000"}),
        ("Using FLASH_ATTN attention backend out of potential backends: [...]", {"attention_backend": "FLASH_ATTN"}),
        ("Using Flash Attention backend on V1 engine.", {"attention_backend": "Flash Attention"}),
        ("Using AttentionBackendEnum.TRITON_ATTN backend.", {"attention_backend": "TRITON_ATTN"}),
        ("Using MarlinLinearKernel for GPTQMarlinLinearMethod", {"quantization_kernel": "MarlinLinearKernel"}),
        ("Using MacheteLinearKernel for CompressedTensorsWNA16", {"quantization_kernel": "MacheteLinearKernel"}),
        ("Using FlashInferCutlassNvFp4 for NVFP4 GEMM", {"quantization_kernel": "FlashInferCutlassNvFp4"}),
        (
            "The model is convertible to awq_marlin during runtime. Using awq_marlin kernel.",
            {"quantization_kernel": "awq_marlin"},
        ),
        # What only looks alike.
        ("Maximum concurrency for many tokens per request: lots", {}),
        ("Using NCCL backend. It is a backend.", {}),
        ("Engine 000: Avg prompt throughput: 1.0 tokens/s, GPU KV cache usage: 0.0%", {}),
        ("Available KV cache memory: 1.2.3e999 GiB", {}),
        ("GPU KV cache size: ,,, tokens", {}),
    ],
)
def test_wordings_of_all_versions(message: str, facts: dict[str, Any]) -> None:
    heads = (
        "INFO 07-28 23:02:27 [cuda.py:8] ",
        "\x1b[1;36m(EngineCore_DP0 pid=387)\x1b[0;0m INFO 03-08 16:44:29 [cuda.py:5] ",
    )
    for head in heads:
        if message.startswith("Using NCCL"):
            head = head.replace("cuda.py", "parallel_state.py")
        assert read_facts(f"{head}{message}") == LogFacts(**facts)


def test_of_several_workers_what_decides_is_kept() -> None:
    facts = read_facts(
        "(Worker_TP0 pid=1) INFO 07-28 23:02:27 [w.py:5] Model loading took 7.1 GiB and 3.0 seconds\n"
        "(Worker_TP1 pid=2) INFO 07-28 23:02:27 [w.py:5] Model loading took 7.2 GiB and 2.0 seconds\n"
        "(Worker_TP0 pid=1) INFO 07-28 23:02:27 [w.py:5] Available KV cache memory: 18.83 GiB\n"
        "(Worker_TP1 pid=2) INFO 07-28 23:02:27 [w.py:5] Available KV cache memory: 18.10 GiB\n"
    )
    assert (facts.weights_gib, facts.load_s, facts.kv_cache_gib) == (7.2, 3.0, 18.1)


def test_what_a_client_asks_for_is_no_fact() -> None:
    assert read_facts('INFO:     1.2.3.4:5 - "GET /Application startup complete. HTTP/1.1" 200 OK') == LogFacts()


def test_ready_text_of_uvicorn_with_and_without_prefix() -> None:
    for line in (
        "INFO:     Application startup complete.",
        "(APIServer pid=1) INFO:     Application startup complete.",
    ):
        assert read_facts(line).listening


def test_engine_config_keeps_values_with_commas_whole() -> None:
    text = (
        "model='/m/a, b=c', tokenizer=\"it's, x\", dtype=torch.bfloat16, "
        "compilation_config={'mode': <Mode.NONE: 0>, 'sizes': [1, 2]}, pooler=Pool(a=1, b=(2, 3)), rest"
    )
    assert engine_config(text) == {
        "model": "/m/a, b=c",
        "tokenizer": "it's, x",
        "dtype": "torch.bfloat16",
        "compilation_config": "{'mode': <Mode.NONE: 0>, 'sizes': [1, 2]}",
        "pooler": "Pool(a=1, b=(2, 3))",
    }


def test_keys_among_the_arguments_are_not_kept() -> None:
    facts = read_facts("INFO 07-28 23:02:27 [a.py:5] non-default args: {'model': 'm', 'api_key': ['top-secret']}")
    assert facts.non_default_args == "{'model': 'm', 'api_key': ***}"


def test_a_cpu_server_has_no_weights_line() -> None:
    assert read_facts((CPU / "logs/eager.log").read_text()).weights_gib is None
