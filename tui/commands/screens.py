"""`llmtune` alone: the screens."""

import argparse
import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tui.commands.places import data_place
from tui.output import UsageError

if TYPE_CHECKING:
    from engine.samples.foreign_record import ForeignRecords


def have_terminal() -> bool:
    """Whether the screens can be shown: keys come from a terminal that can place its cursor, and Textual draws on what
    is then standard error."""
    return (
        all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
        and os.environ.get("TERM", "dumb") != "dumb"
    )


def open_screens(
    args: argparse.Namespace,
    place: Path,
    *,
    session: int | None = None,
    training: int | None = None,
    urls: tuple[str, ...] = (),
    monitor: bool = False,
    records: "ForeignRecords | None" = None,
) -> int:
    """Show the screens until the person leaves; what goes on running is said by the app as it ends."""
    from tui.app import LlmtuneApp
    from tui.terminal import draws_unicode, in_ascii, outliving_its_terminal

    # What was imported stays. A screen that is left open would else look through it at each full collection: a tenth of
    # its CPU time.
    gc.freeze()
    # The rest is small, and each second leaves cycles behind: looked through five times as often, they take 2 MiB less.
    gc.set_threshold(700, 5, 2)
    app = LlmtuneApp(
        place,
        args.vllm or os.environ.get("LLMTUNE_VLLM"),
        open_session=session,
        open_training=training,
        urls=urls,
        monitor=monitor,
        records=records,
    )
    app.driver_class = outliving_its_terminal(app.driver_class)
    if not draws_unicode(os.environ):
        app.driver_class = in_ascii(app.driver_class)
    app.run(mouse=not args.no_mouse)
    return app.return_code or 0


def run(args: argparse.Namespace) -> int:
    if not have_terminal():
        raise UsageError(
            "the screens need a terminal: here use `llmtune sessions`, `llmtune sweep PLAN.toml --headless`"
        )
    return open_screens(args, data_place(args))
