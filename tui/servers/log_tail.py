"""The tail of a log, read on the poller's thread in bounded pieces."""

import re
from dataclasses import dataclass
from pathlib import Path

from engine.logs.log_lines import parse_line
from engine.text import clean, redact

TAIL_BYTES = 64 * 1024  # of a log that is opened
READ_BYTES = 256 * 1024  # at most in one reading; what is older is left out
KEPT_LINES = 1000
LINE_CELLS = 2000
# We ask for the gauges once a second, and the access log would say little else than that we did.
_OUR_LOOKS = re.compile(rb'"GET /metrics HTTP/[\d.]+" 200')


@dataclass(frozen=True, slots=True)
class LogLines:
    """The last lines of one log. `end` counts all lines read so far, so that a view knows which are new to it."""

    path: str
    lines: tuple[str, ...] = ()
    end: int = 0
    note: str | None = None  # why it cannot be read


class LogTail:
    """Follows one file. Not for several threads."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._at: int | None = None
        self._rest = b""
        self._lines: list[str] = []
        self._end = 0

    def read(self) -> LogLines:
        """What the file holds now, in at most READ_BYTES of reading. A file that shrank is read anew."""
        try:
            self._take()
        except FileNotFoundError:
            return LogLines(self.path, note=f"no log at {self.path}")
        except OSError as error:
            return LogLines(self.path, tuple(self._lines), self._end, note=f"cannot read the log: {error.strerror}")
        return LogLines(self.path, tuple(self._lines), self._end)

    def _take(self) -> None:
        with Path(self.path).open("rb") as log:
            size = log.seek(0, 2)
            if self._at is None or size < self._at:
                self._lines, self._rest = [], b""
                self._at = max(0, size - TAIL_BYTES)
                cut = self._at > 0
            else:
                cut = size - self._at > READ_BYTES
                if cut:
                    self._at, self._rest = size - READ_BYTES, b""
            log.seek(self._at)
            data = log.read(size - self._at)
        self._at += len(data)
        pieces = (self._rest + data).split(b"\n")
        self._rest = pieces.pop()[-READ_BYTES:]
        if cut and pieces:
            del pieces[0]
        fresh = [_line(piece) for piece in pieces if not _OUR_LOOKS.search(piece)]
        self._end += len(fresh)
        self._lines = [*self._lines, *fresh][-KEPT_LINES:]


def _line(raw: bytes) -> str:
    """One line for a terminal, without secrets: vLLM's head of some sixty characters as time and, if loud, level."""
    line = parse_line(raw.decode(errors="replace"))
    level = "" if line.level in (None, "INFO") else f"{line.level} "
    time = f"{line.time.partition(' ')[2]} " if line.time else ""
    return f"{time}{level}{redact(clean(line.text, LINE_CELLS))}"
