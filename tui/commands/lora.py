"""`llmtune lora ACTION`: from a file of conversations to an adapter that is served."""

import argparse
import importlib


def run(args: argparse.Namespace) -> int:
    action: int = importlib.import_module(f"tui.commands.lora_{args.action}").run(args)
    return action
