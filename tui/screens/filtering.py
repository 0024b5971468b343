"""A screen of a list, of which only the lines with some words are shown."""

from textual import on
from textual.widget import Widget
from textual.widgets import Input

from tui.screens.base import LlmtuneScreen


class FilteringScreen(LlmtuneScreen):
    """A subclass yields `filter_line` among its widgets, binds a key to `filter`, says which widget its list is and
    fills it with what has `filter_words`."""

    DEFAULT_CSS = "FilteringScreen #filter { display: none; }"

    def filter_line(self, words_of: str) -> Input:
        """The line for the words, hidden until it is asked for; `words_of` says of what they are."""
        return Input(placeholder=f"filter: words of {words_of}; esc shows all", id="filter", compact=True)

    @property
    def filter_words(self) -> str:
        """What was typed; "" where all is shown."""
        return self.query_one("#filter", Input).value

    @property
    def filtered_list(self) -> Widget:
        """The list, which has the keyboard unless words are typed."""
        raise NotImplementedError

    def fill(self) -> None:
        """Show in the list what has the words."""
        raise NotImplementedError

    def action_filter(self) -> None:
        """Type words; enter goes back to the list."""
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    @on(Input.Changed, "#filter")
    def _words_changed(self) -> None:
        self.fill()

    @on(Input.Submitted, "#filter")
    def _to_list(self) -> None:
        self.filtered_list.focus()

    def action_back(self) -> None:
        """The whole list again, then back."""
        if not self.show_all():
            super().action_back()

    def show_all(self) -> bool:
        """Take the words away; False where there was no line for them."""
        field = self.query_one("#filter", Input)
        if not field.display:
            return False
        field.value = ""
        field.display = False
        self.filtered_list.focus()
        return True
