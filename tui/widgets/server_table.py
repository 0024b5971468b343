"""The list of servers, updated cell by cell so that the cursor and the eye stay where they are."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import PurePath
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from engine.text import clean
from store.records import ServerRecord
from tui.format import number
from tui.servers.server_text import age, gpu_words
from tui.state_words import GLYPHS

FIXED = {"state": 10, "port": 5, "GPU": 5, "KV tokens": 9, "since": 10}
COLUMNS = ("state", "name", "model", "port", "GPU", "KV tokens", "since")
RIGHT = ("port", "KV tokens", "since")
_RICH = {"$warning": "yellow", "$success": "green", "$text-muted": "dim", "$error": "red"}


class ServerTable(DataTable[Text]):
    """State, name, model, port, GPU, KV tokens, since. Name and model share what the others leave."""

    DEFAULT_CSS = """
    ServerTable { height: auto; min-height: 3; max-height: 9; scrollbar-size: 1 1; overflow-x: hidden; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "details"),
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
    ]

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id, cursor_type="row", zebra_stripes=False, cell_padding=0)
        self._servers: tuple[ServerRecord, ...] = ()
        self._widths: dict[str, int] = {}
        self._now: datetime | None = None

    def on_resize(self, event: events.Resize) -> None:
        if self._now is not None and self._wanted_widths() != self._widths:
            self._fill(self.chosen.id if self.chosen is not None else None)

    def update_servers(self, servers: Sequence[ServerRecord], now: datetime, chosen: int | None) -> None:
        """Show these servers, in this order, with the cursor on the `chosen` one."""
        before = self._servers
        self._servers, self._now = tuple(servers), now
        if [server.id for server in before] != [server.id for server in servers] or not self._widths:
            self._fill(chosen)
            return
        for was, server in zip(before, servers, strict=True):
            if server is was and server.stopped_at:
                continue
            for column, cell in zip(COLUMNS, self._cells(server), strict=True):
                if self.get_cell(str(server.id), column) != cell:
                    self.update_cell(str(server.id), column, cell)

    @property
    def chosen(self) -> ServerRecord | None:
        """The server under the cursor."""
        return self._servers[self.cursor_row] if 0 <= self.cursor_row < len(self._servers) else None

    def _fill(self, chosen: int | None) -> None:
        """Columns and rows anew."""
        self._widths = self._wanted_widths()
        self.clear(columns=True)
        for column in COLUMNS:
            heading = Text(column.rjust(self._widths[column] - 1) if column in RIGHT else column, style="dim")
            self.add_column(heading, key=column, width=self._widths[column])
        for server in self._servers:
            self.add_row(*self._cells(server), key=str(server.id))
        if chosen is not None:
            self.choose(chosen)

    def choose(self, server_id: int) -> bool:
        """Put the cursor on this one; False where it is not in the list."""
        ids = [server.id for server in self._servers]
        if server_id not in ids:
            return False
        self.move_cursor(row=ids.index(server_id), scroll=True)
        return True

    def _wanted_widths(self) -> dict[str, int]:
        """Each column with one cell of air after it; what is left is shared by name and model."""
        left = max(20, self.size.width - 1 - sum(width + 1 for width in FIXED.values()))
        name = min(left * 2 // 5, 28)
        return {column: FIXED.get(column, name - 1 if column == "name" else left - name - 1) + 1 for column in COLUMNS}

    def _cells(self, server: ServerRecord) -> tuple[Text, ...]:
        assert self._now is not None
        glyph, colour = GLYPHS[server.state]
        tokens = server.facts.get("kv_cache_tokens")
        texts = (
            f"{glyph} {server.state}",
            server.name,
            PurePath(server.model).name or server.model,
            str(server.port),
            gpu_words(server),
            number(tokens if isinstance(tokens, int | float) else None),
            age(server, self._now),
        )
        return tuple(
            self._cell(column, text, _RICH[colour] if column == "state" else "")
            for column, text in zip(COLUMNS, texts, strict=True)
        )

    def _cell(self, column: str, text: str, style: str) -> Text:
        width = self._widths[column] - 1
        cell = Text(clean(text, 200), style=style, no_wrap=True)
        cell.truncate(width, overflow="ellipsis")
        if column in RIGHT:
            cell.align("right", width)
        return cell
