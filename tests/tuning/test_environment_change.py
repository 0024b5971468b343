"""What is told of a machine that is not the one a session began on."""

from typing import Any

from tuning.environment_change import differences

H200: dict[str, Any] = {
    "vllm": "0.25.1",
    "driver": "580.159.04",
    "cuda": "13.0",
    "processor": "Xeon",
    "cores": 16,
    "kernel": "6.1",
    "python": "3.12.3",
    "gpus": [{"index": 0, "name": "NVIDIA H200", "uuid": "GPU-1", "mem_gib": 140.4, "limit_w": 700.0}],
    "model_hash": "a" * 64,
}


def test_the_same_machine_differs_in_nothing() -> None:
    assert differences(H200, {**H200, "kernel": "6.2", "python": "3.13.0"}) == []


def test_versions_and_model_are_told_with_both_values() -> None:
    now = {**H200, "vllm": "0.26.0", "model_hash": "b" * 64}
    assert differences(H200, now) == [
        "vLLM: 0.25.1 then, 0.26.0 now",
        "model: aaaaaaaaaaaa then, bbbbbbbbbbbb now",
    ]


def test_another_gpu_is_told_by_kind_then_by_identity_then_by_limit() -> None:
    def with_gpu(**changes: Any) -> dict[str, Any]:
        return {**H200, "gpus": [{**H200["gpus"][0], **changes}]}

    assert differences(H200, with_gpu(name="NVIDIA A40", mem_gib=45.0)) == ["GPUs: NVIDIA H200 then, NVIDIA A40 now"]
    assert differences(H200, with_gpu(uuid="GPU-2")) == ["GPUs: other ones of the same kind (NVIDIA H200)"]
    assert differences(H200, with_gpu(limit_w=450.0)) == ["power limit of GPU 0: 700 W then, 450 W now"]
    assert differences(H200, {**H200, "gpus": []}) == ["GPUs: NVIDIA H200 then, none now"]


def test_what_could_not_be_read_is_no_difference() -> None:
    assert differences(H200, {**H200, "driver": None, "model_hash": None}) == []
    assert differences({}, H200) == ["GPUs: none then, NVIDIA H200 now"]


def test_foreign_text_is_made_safe() -> None:
    found = differences(H200, {**H200, "vllm": "0.1\x1b[31m[/x]\n2"})
    assert found == ["vLLM: 0.25.1 then, 0.1[/x] 2 now"]


def test_the_two_stand_beside_each_other_in_the_words_of_whoever_asks() -> None:
    now = {**H200, "driver": "590.1", "gpus": [{**H200["gpus"][0], "limit_w": 450.0}]}
    assert differences(H200, now, "A {before}, B {now}") == [
        "driver: A 580.159.04, B 590.1",
        "power limit of GPU 0: A 700 W, B 450 W",
    ]
