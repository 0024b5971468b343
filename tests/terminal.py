"""A command on a pseudo-terminal that answers as a real one does, and what the command costs there."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from tests.screen_image import ScreenImage

ANSWERS = {
    b"\x1b[?2026$p": b"\x1b[?2026;2$y",  # synchronised output: known, off
    b"\x1b[?2048$p": b"\x1b[?2048;0$y",  # size reports in band: unknown
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b[6n": b"\x1b[1;1R",
}
"""What a terminal is asked by Textual and by curses programs, and what tmux answers."""

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Use:
    """What a command has used so far: CPU seconds and bytes written since its start, memory now in MiB (2^20 bytes).

    `pss_mib` shares a page among those that map it; `rss_mib` counts it whole.
    """

    at: float
    cpu_s: float
    written: int
    rss_mib: float
    pss_mib: float


class Terminal:
    """`command` on a terminal of `size` (columns, lines). A thread reads what it writes, as a terminal would.

    `env` is joined to the environment; None takes a variable away.
    """

    def __init__(
        self,
        command: Sequence[str],
        size: tuple[int, int],
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
    ) -> None:
        environ: dict[str, str | None] = {**os.environ, "TERM": "xterm-256color", "COLUMNS": None, "LINES": None}
        environ = {**environ, **(env or {})}
        self._end, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.process = subprocess.Popen(
            command,
            stdin=other,
            stdout=other,
            stderr=other,
            env={name: value for name, value in environ.items() if value is not None},
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(other)
        self._changed = threading.Condition()
        self._seen = bytearray()
        self._image = ScreenImage(size)
        self._hung_up = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.hang_up()

    def press(self, keys: bytes) -> None:
        """Type `keys`."""
        os.write(self._end, keys)

    def hang_up(self) -> None:
        """Close the terminal, as a connection that is lost does: the command gets SIGHUP."""
        if not self._hung_up.is_set():
            self._hung_up.set()
            self._reader.join()
            os.close(self._end)

    @property
    def seen(self) -> bytes:
        """All that was written."""
        with self._changed:
            return bytes(self._seen)

    @property
    def screen(self) -> str:
        """What stands on it now, line by line, without colours."""
        with self._changed:
            return self._image.text

    def wait_for(self, pattern: str, timeout_s: float = 30.0) -> float:
        """Monotonic seconds at which `pattern` stood on the screen. Raises AssertionError where it does not come."""
        wanted = re.compile(pattern)
        give_up = time.monotonic() + timeout_s
        with self._changed:
            while not wanted.search(self._image.text):
                left = give_up - time.monotonic()
                ended = f", ended with {self.process.returncode}" if self.process.poll() is not None else ""
                assert left > 0, f"no {pattern!r} within {timeout_s:g} s{ended}:\n{self._image.text}"
                self._changed.wait(min(left, 1.0))
            return time.monotonic()

    def ended(self, timeout_s: float = 10.0) -> int:
        """The exit status, once it has ended."""
        return self.process.wait(timeout_s)

    def use(self) -> Use:
        """What the command and its children have used."""
        whole = psutil.Process(self.process.pid)
        family = [whole, *whole.children(recursive=True)]
        memory = [_memory(one.pid) for one in family]
        with self._changed:
            written = len(self._seen)
        return Use(
            time.monotonic(),
            sum(_cpu_s(one.pid) for one in family),
            written,
            sum(rss for rss, _ in memory),
            sum(pss for _, pss in memory),
        )

    def _read(self) -> None:
        while not self._hung_up.is_set():
            ready, _, _ = select.select([self._end], [], [], 0.1)
            if not ready:
                continue
            try:
                more = os.read(self._end, 65536)
            except OSError:  # how Linux says that nobody holds the other end any more
                return
            for question, answer in ANSWERS.items():
                if question in more:
                    os.write(self._end, answer)
            with self._changed:
                self._seen += more
                self._image.feed(more)
                self._changed.notify_all()


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _cpu_s(pid: int) -> float:
    """utime + stime of /proc/PID/stat (proc(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def _memory(pid: int) -> tuple[float, float]:
    """Resident and proportional set in MiB (proc(5), smaps_rollup in KiB)."""
    rows = dict(re.findall(r"^(\w+): +(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE))
    return int(rows["Rss"]) / 1024, int(rows["Pss"]) / 1024
