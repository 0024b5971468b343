"""The arguments of `llmtune lora …`: light, since `llmtune --help` builds them too. What an action does is the module
`tui.commands.lora_ACTION`."""

import argparse

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

    add("list", "adapters, trainings and datasets")
    _show(add("show", "one version of an adapter: its files, and what vLLM makes of it", vllm))
    _import(add("import", "keep an adapter that was made elsewhere", vllm))


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
