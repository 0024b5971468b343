"""The arguments of `llmtune lora train|attach|stop|resume`; as light as tui.lora.parser, which calls it."""

import argparse
from collections.abc import Callable

Add = Callable[..., argparse.ArgumentParser]


def add_training(add: Add, vllm: argparse.ArgumentParser) -> None:
    """The actions of a training."""
    _train(add("train", "train an adapter on a data set, in the background", vllm))
    attach = add("attach", "follow a training or an evaluation that runs", vllm)
    _work(attach)
    _headless(attach)
    _work(add("stop", "end a training after the step in hand, or an evaluation; what is kept so far stays"))
    _work(add("resume", "go on with a training from its newest checkpoint, or with an evaluation"))


def _work(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "work",
        metavar="WORK",
        help="a training's number, its name, or `last`; an evaluation as eval:NUMBER, eval:last or NAME@VERSION",
    )


def _headless(action: argparse.ArgumentParser) -> None:
    action.add_argument("--headless", action="store_true", help="plain lines in place of the screens")


def _train(train: argparse.ArgumentParser) -> None:
    train.add_argument("dataset", metavar="DATASET", help="its number, its name, or `last` (llmtune lora list)")
    train.add_argument("--model", metavar="MODEL", help="the base: a folder or a hub name (the data set's)")
    train.add_argument("--name", metavar="NAME", help="of training and adapter (the base's and the data set's)")
    lora = train.add_argument_group("the adapter")
    lora.add_argument("--r", type=_whole, default=16, metavar="R", help="rank (16)")
    lora.add_argument("--alpha", type=_number, default=32, metavar="A", help="scale, as A/R (32)")
    lora.add_argument("--dropout", type=_fraction, default=0.05, metavar="P", help="(0.05)")
    lora.add_argument(
        "--targets",
        type=_targets,
        default="all-linear",
        metavar="NAMES",
        help="layers, as q_proj,v_proj (all linear layers but the output layer)",
    )
    run = train.add_argument_group("the training")
    length = run.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=_number, metavar="E", help="passes over the data (3)")
    length.add_argument("--steps", type=_whole, metavar="N", help="updates of the weights")
    run.add_argument("--learning-rate", type=_number, default=2e-4, metavar="L", help="at its highest (2e-4)")
    run.add_argument("--warmup", type=_fraction, default=0.03, metavar="SHARE", help="of the steps until then (0.03)")
    run.add_argument("--batch", type=_whole, default=1, metavar="N", help="examples at once (1)")
    run.add_argument("--accumulation", type=_whole, default=8, metavar="N", help="batches to an update (8)")
    run.add_argument("--max-length", type=_whole, default=1024, metavar="N", help="leave out what is longer (1024)")
    run.add_argument("--seed", type=int, default=0, metavar="S", help="of order, dropout and the adapter's start (0)")
    run.add_argument("--eval-every", type=_whole, metavar="N", help="steps (a tenth of all)")
    run.add_argument("--save-every", type=_whole, metavar="N", help="steps between checkpoints (a tenth of all)")
    machine = train.add_argument_group("the machine")
    machine.add_argument("--quantization", choices=("nf4", "none"), default="nf4", help="of the base (nf4)")
    machine.add_argument(
        "--dtype", choices=("auto", "bfloat16", "float16", "float32"), default="auto", help="to compute in (auto)"
    )
    machine.add_argument(
        "--no-gradient-checkpointing", action="store_true", help="faster by a quarter, for much more memory"
    )
    machine.add_argument("--python", metavar="PATH", help="a Python with transformers and peft (vLLM's)")
    machine.add_argument("--stop-servers", action="store_true", help="stop servers of ours that hold the memory needed")
    machine.add_argument("--anyway", action="store_true", help="also where too little memory is free")
    _headless(train)
    train.add_argument("--no-wait", action="store_true", help="do not follow it")


def _targets(text: str) -> str | tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise argparse.ArgumentTypeError("no layer is named: as q_proj,v_proj")
    return "all-linear" if names == ("all-linear",) else names


def _whole(text: str) -> int:
    try:
        if (value := int(text)) >= 1:
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")


def _number(text: str) -> float:
    try:
        if 0 < (value := float(text)) < float("inf"):
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text} is not a number above 0")


def _fraction(text: str) -> float:
    try:
        if 0 <= (value := float(text)) < 1:
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text} is not a number from 0 to below 1")
