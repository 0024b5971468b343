"""A command of ours that a screen has done: detached, so that it goes on when the program is left; followed by its log.

What takes minutes and belongs to no keeper (an evaluation, a proof on a server) is done by the command line, once.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.text import clean, redact
from store.private_files import open_private

LOG_BYTES = 64 * 1024  # of which the end is read


@dataclass(frozen=True, slots=True)
class Errand:
    """`what` is our own word for it, with the name of what it is about; `began` is of the monotonic clock."""

    what: str
    process: "subprocess.Popen[bytes]"
    log: Path
    began: float = field(default_factory=time.monotonic)

    @property
    def status(self) -> int | None:
        """Its exit status; None while it goes on."""
        return self.process.poll()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def said(self) -> tuple[str, ...]:
        """The lines of its log, at most the last of them, fit to be shown."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, self.log.stat().st_size - LOG_BYTES))
                text = log.read().decode(errors="replace")
        except OSError as error:
            return (f"{self.log} cannot be read: {error.strerror}",)
        return tuple(clean(redact(line)).rstrip() for line in text.split("\n") if line.strip())

    def outcome(self) -> str:
        """What came of it, in a line: of a failure the last one, else the last that belongs to none above it, and
        what belongs to it."""
        lines = self.said()
        if not lines:
            return f"{self.what}: it said nothing"
        if self.status != 0:
            # Where the data lie is warned of last, and is not why.
            said = next((line for line in reversed(lines) if not line.endswith("with --data-dir")), lines[-1])
            return f"{self.what}: {said.removeprefix('llmtune: ').strip()}"
        heads = [at for at, line in enumerate(lines) if not line.startswith((" ", "took "))]
        at = heads[-1] if heads else len(lines) - 1
        return " ".join(line.strip() for line in lines[at : at + 2])


def begin(
    data_dir: Path, what: str, words: Sequence[str], vllm: str | None, environ: Mapping[str, str] = os.environ
) -> Errand:
    """Run `llmtune WORDS --data-dir …`. Raises OSError where it does not start."""
    log = data_dir / "logs" / f"errand-{words[0]}-{words[1] if len(words) > 1 else ''}-{time.time_ns()}.log"
    own = ["--data-dir", str(data_dir.absolute()), *(["--vllm", vllm] if vllm else [])]
    rest = words.index("--") if "--" in words else len(words)  # what follows belongs to vLLM
    with os.fdopen(open_private(log), "ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tui.cli", *words[:rest], *own, *words[rest:]],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd="/",
            env={**environ, "PYTHONUNBUFFERED": "1"},
        )
    return Errand(what, process, log)
