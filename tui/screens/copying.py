"""Copying what the Monitor shows: the server's address, or its figures."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tui.monitor.shown_json import shown_json
from tui.monitor.subject import Subject
from tui.widgets.choose import Choose
from tui.widgets.copy import CopyPanel

if TYPE_CHECKING:
    from tui.app import LlmtuneApp


def copy_subject(app: "LlmtuneApp", now: Callable[[], Subject]) -> None:
    """Ask which of the two, and copy it as it is when that is said."""

    def copy(what: str | None) -> None:
        if what == "y":
            app.push_screen(CopyPanel(now().url, "Address"))
        elif what == "j":
            app.push_screen(CopyPanel(shown_json(now()), "What is shown"))

    app.push_screen(Choose("Copy what?", {"y": "the address", "j": "what is shown, as JSON"}), copy)
