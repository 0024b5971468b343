"""The arguments of `llmtune lora eval|serve|rollback|price`; as light as tui.lora.parser, which calls it."""

import argparse
from collections.abc import Callable

Add = Callable[..., argparse.ArgumentParser]
_ADAPTER = "NAME (its newest version), NAME@VERSION or its number"


def add_serving(add: Add, vllm: argparse.ArgumentParser) -> None:
    """The actions that come after an adapter is there."""
    _eval(add("eval", "an adapter against its base: losses on data it never saw, answers side by side", vllm))
    _serve(add("serve", "serve adapters, and prove that each is in effect", vllm))
    _rollback(add("rollback", "put an earlier version in place of the one that is served", vllm))
    _price(add("price", "what serving adapters costs, measured as a session", vllm))


def _data(action: argparse.ArgumentParser) -> None:
    action.add_argument("--dataset", metavar="NAME", help="its validation part (that of the adapter's own training)")
    action.add_argument("--data", metavar="FILE", help='prepared conversations, {"messages": […]} a line')
    action.add_argument("--base", metavar="MODEL", help="the base model (the one the adapter was made for)")
    action.add_argument("--python", metavar="PATH", help="a Python with transformers (vLLM's where not given)")


def _eval(action: argparse.ArgumentParser) -> None:
    action.add_argument("adapter", metavar="ADAPTER", help=_ADAPTER)
    _data(action)
    action.add_argument("--prompt", action="append", metavar="TEXT", help="a question for both; may be repeated")
    action.add_argument("--max-length", type=_count, default=1024, metavar="N", help="leave out what is longer (1024)")
    action.add_argument("--max-new-tokens", type=_count, default=64, metavar="N", help="of an answer (64)")
    action.add_argument(
        "--quantization", choices=("none", "nf4"), default="none", help="of the base, as it is to be served (none)"
    )
    action.add_argument("--no-wait", action="store_true", help="do not wait for it; `llmtune lora attach` shows it")


def _proof(action: argparse.ArgumentParser) -> None:
    action.add_argument("--no-proof", action="store_true", help="do not prove that the adapters are in effect")
    action.add_argument("--records", type=_count, default=32, metavar="N", help="of its data, for the proof (32)")


def _serve(action: argparse.ArgumentParser) -> None:
    action.add_argument("adapters", nargs="+", metavar="ADAPTER", help=_ADAPTER)
    action.add_argument("--server", metavar="SERVER", help="load them into this running server of ours")
    action.add_argument("--name", metavar="NAME", help="what to call a new server (the first adapter's name)")
    action.add_argument("--no-wait", action="store_true", help="do not wait until it is ready; nothing is proved then")
    action.add_argument(
        "--anyway",
        action="store_true",
        help="also what vLLM serves otherwise than it was trained, or on a changed base",
    )
    _data(action)
    _proof(action)
    action.epilog = "what follows -- is given to `vllm serve`"


def _rollback(action: argparse.ArgumentParser) -> None:
    action.add_argument("name", metavar="NAME", help="the adapter's name")
    action.add_argument("--to", type=_count, metavar="VERSION", help="(the one before what is served)")
    action.add_argument("--server", metavar="SERVER", help="(the only one that serves it)")
    action.add_argument("--anyway", action="store_true", help="also what vLLM serves otherwise than it was trained")
    _data(action)
    _proof(action)


def _price(action: argparse.ArgumentParser) -> None:
    action.add_argument("adapters", nargs="+", metavar="ADAPTER", help=_ADAPTER)
    action.add_argument("--base", metavar="MODEL", help="the base model (the one the adapters were made for)")
    action.add_argument("--out", metavar="PLAN.toml", help="write the plan there in place of starting the session")
    action.add_argument("--requests", type=_count, default=200, metavar="N", help="of a run (200)")
    action.add_argument("--concurrency", type=_count, default=16, metavar="N", help="requests at once (16)")
    action.add_argument("--input-len", type=_count, default=512, metavar="N", help="tokens of a prompt (512)")
    action.add_argument("--output-len", type=_count, default=128, metavar="N", help="tokens of an answer (128)")
    action.add_argument("--blocks", type=_count, default=4, metavar="N", help="of the session, at most (4)")
    action.add_argument("--headless", action="store_true", help="plain lines in place of the screens")
    action.epilog = "what follows -- is given to `vllm serve` of each candidate"


def _count(text: str) -> int:
    try:
        if (value := int(text)) >= 1:
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
