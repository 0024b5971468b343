"""The arguments of `llmtune lora …`: light, since `llmtune --help` builds them too. What an action does is the module
`tui.commands.lora_ACTION`."""

import argparse

from tui.lora.serve_parser import add_serving
from tui.lora.train_parser import add_training

Parents = list[argparse.ArgumentParser]


def add_lora(
    lora: argparse.ArgumentParser,
    shared: argparse.ArgumentParser,
    vllm: argparse.ArgumentParser,
    as_json: argparse.ArgumentParser,
) -> None:
    """The actions of `llmtune lora`, each with the options that all commands share."""
    actions = lora.add_subparsers(metavar="ACTION", dest="action", required=True, title="actions")

    def add(name: str, text: str, *extra: argparse.ArgumentParser) -> argparse.ArgumentParser:
        parents = [shared, *extra, as_json]
        return actions.add_parser(name, help=text, description=text, parents=parents, allow_abbrev=False)

    _prepare(add("prepare", "a data set from a file of conversations: a report first, then a decision", vllm))
    add_training(add, vllm)
    add("list", "adapters, trainings and datasets")
    _show(add("show", "one version of an adapter: its files, and what vLLM makes of it", vllm))
    _import(add("import", "keep an adapter that was made elsewhere", vllm))
    _delete(add("delete", "delete one version of an adapter, once nothing serves or measures it"))
    add_serving(add, vllm)


def _prepare(prepare: argparse.ArgumentParser) -> None:
    prepare.add_argument(
        "file", metavar="FILE", help="JSON, JSON lines or CSV: alpaca, messages, ShareGPT, prompt/completion"
    )
    prepare.add_argument("--model", metavar="MODEL", help="whose tokenizer and chat template count the tokens")
    prepare.add_argument(
        "--max-length", type=_length, metavar="N", help="leave out what is longer, in tokens (1024 with --model)"
    )
    prepare.add_argument(
        "--validation", type=_share, default=0.1, metavar="SHARE", help="so much is held out (0.1), from 0 to 0.5"
    )
    prepare.add_argument("--seed", type=int, default=0, metavar="S", help="draws the part that is held out (0)")
    prepare.add_argument("--name", metavar="NAME", help="what to call it (the file's name where not given)")
    prepare.add_argument("--python", metavar="PATH", help="a Python that has transformers (vLLM's where not given)")
    prepare.add_argument("--yes", action="store_true", help="keep it without being asked")


def _length(text: str) -> int:
    try:
        if (value := int(text)) >= 1:
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text} is not a number of tokens")


def _share(text: str) -> float:
    try:
        if 0 <= (value := float(text)) <= 0.5:
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text} is not a share from 0 to 0.5")


def _adapter(action: argparse.ArgumentParser) -> None:
    action.add_argument("adapter", metavar="ADAPTER", help="NAME (its newest version), NAME@VERSION or its number")


def _show(show: argparse.ArgumentParser) -> None:
    _adapter(show)
    show.add_argument("--base", metavar="MODEL", help="the model it is to be served on (the one it was made for)")


def _import(action: argparse.ArgumentParser) -> None:
    action.add_argument("folder", metavar="FOLDER", help="the folder that holds adapter_config.json")
    action.add_argument("--name", metavar="NAME", help="what to call it (the folder's name where not given)")
    action.add_argument("--base", metavar="MODEL", help="the folder of its base model (what its config names)")
    action.add_argument("--notes", metavar="TEXT", help="a line about it, for yourself")
    action.add_argument("--check", action="store_true", help="only say what vLLM makes of it, keep nothing")
    action.add_argument("--anyway", action="store_true", help="keep it although vLLM would refuse it or answer wrongly")


def _delete(action: argparse.ArgumentParser) -> None:
    action.add_argument("adapter", metavar="NAME@VERSION", help="(llmtune lora list)")
    action.add_argument("--yes", action="store_true", help="without being asked")
    action.add_argument("--anyway", action="store_true", help="also where a session that is done has it in its plan")
