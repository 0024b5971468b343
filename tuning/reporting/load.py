"""A workload in words."""

from engine.text import clean
from tuning.counting import counted
from tuning.figures import figure
from tuning.records import Workload


def load_text(workload: Workload) -> str:
    """`300 requests a run: random prompts, 512 tokens in, 128 out; all at once, 64 at a time at most. …`"""
    rate = "all at once" if workload.request_rate is None else f"{workload.request_rate:g} a second"
    most = "" if workload.max_concurrency is None else f", {workload.max_concurrency} at a time at most"
    met = f" Goodput counts requests within {', '.join(workload.goodput)} ms." if workload.goodput else ""
    called = ", ".join(clean(name, 60) for name in workload.adapters)
    whom = (
        f" Requests go to the adapters {called}, as far as a candidate serves them, else to the base." if called else ""
    )
    return (
        f"{counted(workload.requests, 'request')} a run: {_prompts(workload)}; {rate}{most}. On each launch "
        f"{counted(workload.warmup, 'warm-up run')} and {counted(workload.repeats, 'run')} that may count.{met}{whom}"
    )


def _prompts(workload: Workload) -> str:
    shape = workload.shape
    out = f", {figure(shape['output_len'])} out" if shape.get("output_len") else ""
    if workload.dataset == "random":
        shared = f", {figure(shape['prefix_len'])} of a shared prefix before" if shape.get("prefix_len") else ""
        spread = f", each ±{100 * shape['range_ratio']:g} %" if shape.get("range_ratio") else ""
        return f"random prompts, {figure(shape.get('input_len'))} tokens in{out}{spread}{shared}"
    if workload.dataset == "prefix_repetition":
        prefixes = f"{figure(shape.get('num_prefixes'))} prefixes of {figure(shape.get('prefix_len'))} tokens"
        return f"{prefixes}, {figure(shape.get('suffix_len'))} more of each request's own{out}"
    return f"{workload.dataset}{f' of {workload.path}' if workload.path else ''}{out}"
