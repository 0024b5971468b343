"""The arguments of `vllm bench serve` for one run of a workload, as its parser of vLLM 0.32.0 takes them."""

import re
from collections.abc import Sequence

from tuning.records import Workload

PERCENTILES = "50,90,99"


def bench_argv(
    workload: Workload,
    model: str,
    served_name: str | None,
    base_url: str,
    seed: int,
    version: str | None = None,
    adapters: Sequence[str] = (),
) -> tuple[str, ...]:
    """The arguments after `vllm bench serve`. A warm-up is the same with another seed.

    `version` is vLLM's own; None is one from 0.11 on. Before, `--backend` was `--endpoint-type`, and a file could not
    be kept from being sent twice. `--num-warmups` is left at 0, since it repeats one prompt; `--ignore-eos` is stated
    for random too, which only forces it from 0.11.2 on. Each request goes to one of `adapters`, drawn by the seed, or
    to the base where there are none.
    """
    old = before_0_11(version)
    argv = ["--endpoint-type" if old else "--backend", "openai", "--base-url", base_url]
    argv += ["--endpoint", "/v1/completions"]
    argv += ["--model", model, "--tokenizer", model]
    if served_name is not None:
        argv += ["--served-model-name", served_name]
    argv += _dataset(workload, old)
    if adapters:
        argv += ["--lora-modules", *adapters]
    argv += ["--num-prompts", str(workload.requests), "--seed", str(seed)]
    argv += ["--request-rate", "inf" if workload.request_rate is None else _number(workload.request_rate)]
    argv += ["--burstiness", _number(workload.burstiness)]
    if workload.max_concurrency is not None:
        argv += ["--max-concurrency", str(workload.max_concurrency)]
    if workload.temperature is not None:
        argv += ["--temperature", _number(workload.temperature)]
    if forces_eos(workload):
        argv += ["--ignore-eos"]
    argv += ["--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", PERCENTILES]
    if workload.goodput:
        argv += ["--goodput", *workload.goodput]
    argv += ["--disable-tqdm", *workload.extra_args]
    return tuple(argv)


def before_0_11(version: str | None) -> bool:
    """Whether `version` ("0.10.2", "0.32.0+cpu") is older than 0.11; one that cannot be read is not."""
    match = re.match(r"(\d+)\.(\d+)", version or "")
    return match is not None and (int(match[1]), int(match[2])) < (0, 11)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def forces_eos(workload: Workload) -> bool:
    """Whether every answer runs to the length asked for, whatever the model says."""
    return workload.ignore_eos or workload.dataset == "random"


def _dataset(workload: Workload, old: bool) -> list[str]:
    shape = workload.shape
    if workload.dataset == "random":
        argv = ["--dataset-name", "random"]
        for key, value in (("input-len", 1024), ("output-len", 128), ("range-ratio", 0.0), ("prefix-len", 0)):
            argv += [f"--random-{key}", str(shape.get(key.replace("-", "_"), value))]
        return argv
    if workload.dataset == "prefix_repetition":
        argv = ["--dataset-name", "prefix_repetition"]
        for key, value in (("prefix-len", 256), ("suffix-len", 256), ("num-prefixes", 10), ("output-len", 128)):
            argv += [f"--prefix-repetition-{key}", str(shape.get(key.replace("-", "_"), value))]
        return argv
    if workload.dataset == "sharegpt" and workload.path is not None:
        # A file with fewer conversations than requests would be sent twice, and the second time read from the cache.
        argv = ["--dataset-name", "sharegpt", "--dataset-path", workload.path]
        argv += [] if old else ["--no-oversample"]
        if (output_len := shape.get("output_len")) is not None:
            argv += ["--sharegpt-output-len", str(output_len)]
        return argv
    raise ValueError(f"workload {workload.name!r}: cannot run dataset {workload.dataset!r}")
