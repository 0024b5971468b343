"""The table of candidates, filled cell by cell as runs finish."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from tui.tune.tune_table import Column, Row, Table


class ResultsTable(DataTable[Text]):
    """One row a candidate, keyed by its index; one column a setting or metric, keyed by its name.

    Cells are updated in place. Only a change of the columns themselves rebuilds the table; the cursor stays on its
    candidate. Cells have no padding of their own: each begins with one blank.
    """

    DEFAULT_CSS = """
    ResultsTable { height: auto; scrollbar-size: 0 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, cursor_type="row", cell_padding=0, zebra_stripes=False)
        self._columns: tuple[tuple[Column, int], ...] = ()

    @property
    def candidate(self) -> int | None:
        """The index of the candidate under the cursor."""
        if not self.row_count:
            return None
        key = self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value
        return int(key) if key is not None else None

    def choose(self, candidate: int) -> None:
        """Put the cursor on a candidate, where it has a row."""
        if str(candidate) in self.rows:
            self.move_cursor(row=self.get_row_index(str(candidate)))

    def show(self, table: Table) -> None:
        """Bring the table to these columns and rows with as few changes as possible."""
        rows = table.rows
        widths = tuple(zip(table.columns, table.widths, strict=True))
        if widths != self._columns:
            self._rebuild(widths, rows)
            return
        wanted = {str(row.candidate) for row in rows}
        for key in [key for key in self.rows if key.value not in wanted]:
            self.remove_row(key)
        for row in rows:
            self._show_row(row)

    def _show_row(self, row: Row) -> None:
        key = str(row.candidate)
        if key not in self.rows:
            self.add_row(*self._spaced(row), key=key)
            return
        for (column, _), cell in zip(self._columns, self._spaced(row), strict=True):
            if self.get_cell(key, column.key) != cell:
                self.update_cell(key, column.key, cell)

    def _rebuild(self, widths: tuple[tuple[Column, int], ...], rows: Sequence[Row]) -> None:
        candidate = self.candidate
        self.clear(columns=True)
        self._columns = widths
        for column, width in widths:
            self.add_column(_placed(Text(column.title), column, width), key=column.key, width=width)
        self.fixed_columns = 1
        for row in rows:
            self.add_row(*self._spaced(row), key=str(row.candidate))
        places = [at for at, row in enumerate(rows) if row.candidate == candidate]
        if places:
            self.move_cursor(row=places[0])

    def _spaced(self, row: Row) -> list[Text]:
        return [_placed(cell, column, width) for (column, width), cell in zip(self._columns, row.cells, strict=True)]


def _placed(cell: Text, column: Column, width: int) -> Text:
    """The cell with its blanks before it: a DataTable does not look at a Text's own justification."""
    return Text(" " * (width - cell.cell_len if column.right else 1)) + cell
