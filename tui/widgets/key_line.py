"""The last line: the keys that work now. One widget where Textual's Footer builds one a key at each change of focus."""

from typing import NamedTuple

from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget


class Key(NamedTuple):
    """One key as it is shown, and the one that a click on it presses."""

    shown: str
    words: str
    name: str


class KeyLine(Widget):
    """`a add  x skip  ? help  q quit`, with one blank between where two do not fit."""

    DEFAULT_CSS = """
    KeyLine { dock: bottom; height: 1; background: $panel; color: $foreground; }
    """

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, _: Screen[object]) -> None:
        self.refresh()

    def render(self) -> Content:
        keys, gap = self._keys(), self._gap()
        line = Content(gap).join(
            Content.assemble((key.shown, "bold $footer-key-foreground"), f" {key.words}") for key in keys
        )
        return line.truncate(self.size.width, ellipsis=True)

    def on_click(self, event: events.Click) -> None:
        """Press the key under the mouse."""
        at = 0
        for key in self._keys():
            end = at + len(key.shown) + 1 + len(key.words)
            if at <= event.x < end:
                self.app.simulate_key(key.name)
            at = end + len(self._gap())

    def _keys(self) -> list[Key]:
        """The first key of each action that may be done now."""
        bindings: dict[str, Binding] = {}
        for active in self.screen.active_bindings.values():
            if active.binding.show and active.enabled:
                bindings.setdefault(active.binding.action, active.binding)
        return [Key(self.app.get_key_display(one), one.description, one.key) for one in bindings.values()]

    def _gap(self) -> str:
        keys = self._keys()
        width = sum(len(key.shown) + 1 + len(key.words) for key in keys)
        return "  " if width + 2 * (len(keys) - 1) <= self.size.width else " "
