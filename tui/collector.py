"""Python's search for garbage, kept away from the moments at which a person waits.

A full one looks through all that stands: 40 ms beside a long history, and making a screen brought two of them.
"""

import gc
from typing import Any

from textual.app import App
from textual.timer import Timer

OPENED_S = 0.5  # by then a screen that was opened stands


class Collector:
    """Of one app, which holds it while a screen is made and releases it as it ends."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._timer: Timer | None = None

    def hold(self) -> None:
        """A screen is being made: all that it makes stays, for now."""
        gc.disable()
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._app.set_timer(OPENED_S, self.screen_stands)

    def screen_stands(self) -> None:
        """Search once; what is found to be of use is looked through no more."""
        gc.enable()
        if len(self._app.screen_stack) == 1:  # a screen of a number key, which is never taken down
            gc.collect()
            gc.freeze()

    def release(self) -> None:
        """Search as before."""
        gc.enable()
        gc.unfreeze()
