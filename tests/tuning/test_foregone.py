from typing import Any

import pytest

from engine.failures.table import CLASSES
from tuning.plans.foregone import _ALIKE, Failed, smaller_that_starts, why_foregone
from tuning.records import Candidate

UTIL, TOKENS, SEQS, LENGTH = "gpu-memory-utilization", "max-num-batched-tokens", "max-num-seqs", "max-model-len"
SERVER = {LENGTH: 8192, "dtype": "half"}


def candidate(index: int, settings: dict[str, Any]) -> Candidate:
    return Candidate(index, str(settings), settings)


def foregone(failure_class: str, failed: dict[str, Any], settings: dict[str, Any]) -> str | None:
    return why_foregone(candidate(2, settings), SERVER, [Failed(candidate(1, failed), failure_class)])


@pytest.mark.parametrize(
    ("failure_class", "failed", "alike", "tried"),
    [
        ("kv_cache_too_small", {UTIL: 0.8}, [{UTIL: 0.7}, {UTIL: 0.8, LENGTH: 9000}], [{UTIL: 0.85}]),
        ("kv_cache_too_small", {UTIL: 0.8}, [], [{UTIL: 0.7, LENGTH: 4096}, {UTIL: 0.7, "dtype": "auto"}, {}]),
        ("kv_cache_too_small", {UTIL: 0.8, SEQS: 64}, [{UTIL: 0.8, SEQS: 128}], [{UTIL: 0.8, SEQS: 32}, {UTIL: 0.7}]),
        ("no_kv_memory", {UTIL: 0.5, TOKENS: 4096}, [{UTIL: 0.4, TOKENS: 8192}], [{UTIL: 0.4, TOKENS: 2048}]),
        ("free_memory_short", {UTIL: 0.9}, [{UTIL: 0.95}, {UTIL: 0.9, SEQS: 1}], [{UTIL: 0.85}, {SEQS: 1}]),
        ("oom_load", {UTIL: 0.9}, [{UTIL: 0.5}, {SEQS: 1}, {}], [{"quantization": "fp8"}]),
        ("oom_profile", {TOKENS: 8192}, [{TOKENS: 16384, UTIL: 0.5}], [{TOKENS: 4096}, {SEQS: 9}]),
        ("oom_graph", {UTIL: 0.9, SEQS: 64}, [{UTIL: 0.92, SEQS: 64}, {UTIL: 0.9, SEQS: 99}], [{UTIL: 0.9, SEQS: 32}]),
        ("oom_sampler", {UTIL: 0.9, SEQS: 512}, [{UTIL: 0.95, SEQS: 1024}], [{UTIL: 0.85, SEQS: 1024}]),
        ("oom_sampler", {UTIL: 0.9, SEQS: 512}, [], [{UTIL: 0.9, SEQS: 256}, {UTIL: 0.9}, {SEQS: 1024}]),
        ("batched_tokens_invalid", {TOKENS: 512}, [{TOKENS: 256}, {TOKENS: 256, UTIL: 0.5}], [{TOKENS: 1024}, {}]),
        ("model_len_invalid", {LENGTH: 65536}, [{LENGTH: 99999, SEQS: 7}], [{LENGTH: 32768}, {}]),
        ("lora_rank", {"max-lora-rank": 8}, [{"max-lora-rank": 1, SEQS: 7}], [{"max-lora-rank": 16}]),
        ("unknown_flag", {"x": 1}, [{"x": 1, SEQS: 7}, {"x": 1.0}], [{"x": 2}, {"x": True}, {SEQS: 7}]),
        ("quantization_unsupported", {"quantization": "awq"}, [{"quantization": "awq", UTIL: 0.5}], [{UTIL: 0.5}]),
        ("missing_tool", {"attention-backend": "x"}, [{"attention-backend": "x", SEQS: 7}], [{SEQS: 7}]),
        ("port_in_use", {UTIL: 0.9}, [], [{UTIL: 0.9, SEQS: 7}]),
        ("memory_race", {UTIL: 0.9}, [], [{UTIL: 0.95}]),
        ("host_oom", {UTIL: 0.9}, [], [{UTIL: 0.95}]),
        ("unknown", {UTIL: 0.9}, [], [{UTIL: 0.95}]),
    ],
)
def test_points_as_bad_or_worse_are_foregone_and_no_others(
    failure_class: str, failed: dict[str, Any], alike: list[dict[str, Any]], tried: list[dict[str, Any]]
) -> None:
    for settings in alike:
        why = foregone(failure_class, failed, settings)
        assert why is not None, settings
        assert failure_class in why
    for settings in tried:
        assert foregone(failure_class, failed, settings) is None, settings


def test_the_reason_names_the_point_that_failed() -> None:
    why = foregone("kv_cache_too_small", {UTIL: 0.8}, {UTIL: 0.7})
    assert why == "not tried: it would fail as gpu-memory-utilization 0.80 did (kv_cache_too_small)"
    assert "candidate 1" in (foregone("oom_load", {SEQS: 8}, {SEQS: 4}) or "")


def test_a_candidate_is_not_measured_against_itself() -> None:
    one = candidate(1, {UTIL: 0.8})
    assert why_foregone(one, SERVER, [Failed(one, "kv_cache_too_small")]) is None


def test_classes_are_those_of_the_contract() -> None:
    assert set(_ALIKE) <= set(CLASSES)


@pytest.mark.parametrize(
    ("failure_class", "numbers", "settings", "server", "offer"),
    [
        ("kv_cache_too_small", {"longest_model_len": 464}, {SEQS: 64}, {LENGTH: 8192}, {SEQS: 64, LENGTH: 464}),
        ("kv_cache_too_small", {"longest_model_len": 464, "needed_utilization": 0.9}, {UTIL: 0.5}, {}, {UTIL: 0.9}),
        ("kv_cache_too_small", {"longest_model_len": 464}, {UTIL: 0.5}, {}, {UTIL: 0.5, LENGTH: 464}),
        ("kv_cache_too_small", {}, {UTIL: 0.5}, {}, None),
        ("no_kv_memory", {"needed_utilization": 0.7}, {UTIL: 0.5}, {}, {UTIL: 0.7}),
        ("free_memory_short", {"highest_utilization": 0.86}, {UTIL: 0.92}, {}, {UTIL: 0.86}),
        ("free_memory_short", {}, {UTIL: 0.92}, {}, None),
        ("model_len_invalid", {"longest_model_len": 32768}, {LENGTH: 65536}, {}, {LENGTH: 32768}),
        ("lora_rank", {"fitting_rank": 32}, {"max-lora-rank": 16}, {}, {"max-lora-rank": 32}),
        ("batched_tokens_invalid", {"max_num_batched_tokens": 64, "max_num_seqs": 256}, {TOKENS: 64}, {},
         {TOKENS: 64, SEQS: 64}),
        ("batched_tokens_invalid", {"max_num_batched_tokens": 1024, "max_model_len": 4096}, {TOKENS: 1024}, {},
         {TOKENS: 4096}),
        ("oom_profile", {}, {TOKENS: 8192}, {SEQS: 256}, {TOKENS: 4096}),
        ("oom_profile", {}, {TOKENS: 256}, {SEQS: 256}, {TOKENS: 256, SEQS: 128}),
        ("oom_profile", {}, {UTIL: 0.9}, {}, None),
        ("oom_sampler", {"requests": 1024}, {UTIL: 0.9}, {}, {UTIL: 0.9, SEQS: 512}),
        ("oom_sampler", {}, {SEQS: 64}, {}, {SEQS: 32}),
        ("oom_sampler", {}, {UTIL: 0.9}, {}, {UTIL: 0.85}),
        ("oom_graph", {"wanted_gib": 1.0, "total_gib": 24.0}, {UTIL: 0.95}, {}, {UTIL: 0.88}),
        ("oom_graph", {}, {SEQS: 64}, {UTIL: 0.9}, {SEQS: 64, UTIL: 0.85}),
        ("oom_graph", {}, {SEQS: 64}, {}, {SEQS: 32}),
        ("oom_load", {}, {UTIL: 0.9}, {}, None),
        ("unknown", {}, {UTIL: 0.9}, {}, None),
        ("model_len_invalid", {"longest_model_len": 4096}, {LENGTH: 4096}, {}, None),
    ],
)  # fmt: skip
def test_what_is_offered_instead(
    failure_class: str,
    numbers: dict[str, float | int],
    settings: dict[str, Any],
    server: dict[str, Any],
    offer: dict[str, Any] | None,
) -> None:
    assert smaller_that_starts(failure_class, numbers, settings, server) == offer
