"""What a thread, a sample or a resize brings to widgets that may be gone by then."""

from collections.abc import Callable

from textual import getters
from textual.widget import Widget

from tui.app import LlmtuneApp


class Late(Widget):
    """What comes late: an answer of a thread, a last sample, a resize. It may find the screen being taken down, with
    some of its widgets gone already; then it is dropped, here and nowhere else."""

    app = getters.app(LlmtuneApp)

    @property
    def is_up(self) -> bool:
        """Whether its widgets stand: composed, and not being taken down."""
        return self.is_mounted and self.is_attached and self.app.is_running

    def later(self, callback: Callable[..., object], *arguments: object) -> None:
        """Have this called on the UI thread, from whichever thread, if the screen still stands by then."""
        self.call_later(self._if_up, callback, *arguments)

    def _if_up(self, callback: Callable[..., object], *arguments: object) -> None:
        if self.is_up:
            callback(*arguments)
