"""`llmtune demo`: the embedded plan on a small real model."""

import argparse
import os

import psutil

from engine.launch.command import model_argument
from tui.checkout import MODEL, VLLM, of_checkout
from tui.commands.sweep import begin, watch
from tui.output import UsageError
from tuning.plans.demo import demo_plan
from tuning.plans.plan_file import plan_toml


def have_gpu() -> bool:
    """Whether NVML shows a GPU; the plan's sizes differ."""
    from engine.gpus.gpu import GpuReader

    reader = GpuReader()
    try:
        return bool(reader.read().gpus)
    finally:
        reader.close()


def run(args: argparse.Namespace) -> int:
    model = args.model or of_checkout(MODEL)
    if model is None:
        raise UsageError("the demo needs a model: run `make demo` in a checkout, or give --model with a model's folder")
    # Absolute: the session can be resumed from anywhere.
    model = model_argument(model)
    args.vllm = args.vllm or os.environ.get("LLMTUNE_VLLM") or of_checkout(VLLM)
    plan = demo_plan(model, args.vllm, gpu=have_gpu(), memory_gib=psutil.virtual_memory().total / 2**30)
    return watch(args, *begin(args, plan, plan_toml(plan)))
