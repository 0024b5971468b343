"""What stands on a terminal after the bytes that were written to it: as much of xterm as Textual and tmux's ls use."""

import re
from codecs import getincrementaldecoder

from rich.cells import get_character_cell_size

PIECE = re.compile(
    r"\x1b\[(?P<numbers>[0-?]*)[ -/]*(?P<end>[@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()].|\x1b[^\[\]()]"
    r"|(?P<char>[^\x1b])",
    re.DOTALL,
)
UNFINISHED = re.compile(r"\x1b(?:[\[\]()][^\x07@-~]*)?\Z")


class ScreenImage:
    """Lines of characters without their colours. A wide character takes its cell and an empty one."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._columns, self._lines = size
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""
        self._clear()

    def feed(self, written: bytes) -> None:
        """Take what was written next, cut anywhere."""
        text = self._rest + self._decode(written)
        cut = UNFINISHED.search(text)
        self._rest = text[cut.start() :] if cut else ""
        for piece in PIECE.finditer(text[: cut.start()] if cut else text):
            if piece["char"] is not None:
                self._put(piece["char"])
            elif piece["end"] is not None:
                self._control(piece["numbers"], piece["end"])

    @property
    def text(self) -> str:
        """The screen, line by line."""
        return "\n".join("".join(line) for line in self._cells)

    def _clear(self) -> None:
        self._cells = [[" "] * self._columns for _ in range(self._lines)]
        self._row = self._column = 0

    def _control(self, numbers: str, end: str) -> None:
        if numbers.startswith("?"):
            if numbers == "?1049":
                self._clear()
            return
        given = [int(one) if one.isdigit() else 0 for one in numbers.split(";")]
        if end in "Hf":
            self._row = max(1, given[0]) - 1
            self._column = max(1, given[1] if len(given) > 1 else 1) - 1
        elif end == "J" and given[0] >= 2:
            self._clear()
        elif end == "K" and self._row < self._lines:
            self._cells[self._row][self._column :] = [" "] * (self._columns - self._column)
        elif end in "ABCD":
            step = max(1, given[0]) * (1 if end in "BC" else -1)
            self._row, self._column = (
                (max(0, self._row + step), self._column) if end in "AB" else (self._row, max(0, self._column + step))
            )

    def _put(self, char: str) -> None:
        if char == "\n":
            self._row += 1
        elif char == "\r":
            self._column = 0
        if ord(char) < 0x20 or char == "\x7f":
            return
        width = get_character_cell_size(char)
        if self._row < self._lines and width and self._column + width <= self._columns:
            self._cells[self._row][self._column : self._column + width] = [char, ""][:width]
        self._column += width
