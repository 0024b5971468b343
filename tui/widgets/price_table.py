"""The price of certainty in the plan's editor: a line for each number of blocks; enter takes one."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option


class PriceTable(OptionList):
    """Shows lines and posts `Wanted` for the one that is taken. The cursor stays on its number of blocks."""

    DEFAULT_CSS = """
    PriceTable { height: auto; border: none; padding: 0; background: $surface; }
    PriceTable { text-wrap: nowrap; text-overflow: ellipsis; scrollbar-size: 0 0; }
    PriceTable:focus { border: none; background: $panel; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "select", "take these blocks"),
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
    ]

    class Wanted(Message):
        """So many blocks are wanted."""

        def __init__(self, blocks: int) -> None:
            super().__init__()
            self.blocks = blocks

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False, compact=True)
        self._offered: tuple[int, ...] = ()
        self._words: tuple[str, ...] = ()

    def show(self, lines: Sequence[tuple[int, str]], chosen: int | None) -> None:
        """Bring the lines to these, (blocks, words) each; a first cursor lies on `chosen`."""
        blocks, words = tuple(at for at, _ in lines), tuple(line for _, line in lines)
        if blocks != self._offered:
            self._offered = blocks
            self.clear_options()
            self.add_options(Option(Content(line)) for line in words)
            self.highlighted = blocks.index(chosen) if chosen in blocks else None
        else:
            for at, line in enumerate(words):
                if line != self._words[at]:
                    self.replace_option_prompt_at_index(at, Content(line))
        self._words = words

    @on(OptionList.OptionSelected)
    def _take(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(self.Wanted(self._offered[event.option_index]))
