"""`llmtune monitor`: the monitor alone, on any server."""

import argparse
from contextlib import nullcontext

from tui.commands.places import data_place, recording
from tui.commands.screens import have_terminal, open_screens
from tui.output import UsageError


def server_url(text: str) -> str:
    """The address of a server as the rest of the program wants it: `127.0.0.1:8000/v1` → `http://127.0.0.1:8000`, a
    bare port is one of this machine. Raises UsageError."""
    from urllib.parse import urlsplit

    text = f"127.0.0.1:{text.removeprefix(':')}" if text.removeprefix(":").isdecimal() else text
    whole = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(whole)
        _ = parts.port
    except ValueError as error:
        raise UsageError(f"{text} is not a server's address ({error}): write http://HOST:PORT") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{text} is not a server's address: write http://HOST:PORT")
    path = parts.path.rstrip("/")
    for ending in ("/metrics", "/v1"):
        path = path.removesuffix(ending)
    return f"{parts.scheme}://{parts.netloc}{path}"


def run(args: argparse.Namespace) -> int:
    urls = tuple(server_url(url) for url in args.url)
    if not have_terminal():
        raise UsageError("the monitor needs a terminal: here use `llmtune snapshot --watch 1`")
    place = data_place(args)
    with recording(place) if args.record else nullcontext() as records:
        # Without an address it shows the server of ours that runs, else one that it finds on this machine.
        return open_screens(args, place, urls=urls, monitor=True, records=records)
