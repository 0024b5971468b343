"""What a log that no rule knows says went wrong: the exception that began it, not those that pass it on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.text import redact

# These only pass on that something else went wrong; the root stands above them, or nowhere.
_WRAPPERS = re.compile(
    r"Engine core initialization failed|EngineCore failed to start|WorkerProc initialization failed|EngineDeadError|"
    r"EngineCore encountered an issue|EngineGenerateError|[Ee]ngine core proc(?:ess)? .* died|CancelledError|"
    r"SystemExit|Engine process failed to start|KeyboardInterrupt|[Ww]orker proc .* died"
)
_PYDANTIC = re.compile(r"^\s*Value error, (.*?)(?: \[type=|$)")
_EXCEPTION = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Exit|Interrupt))(?:: (.*))?$")
_USAGE = re.compile(r"^[\w. -]+: error: (.+)")

# What a process says that lost its partner: true, and no cause.
_LOST = re.compile(
    r"^(?:\w+\.)*(?:EOFError|BrokenPipeError|Connection\w*Error|DistBackendError)\b"
    r"|[Cc]onnection (?:closed|reset) by peer"
)
_FRAME = re.compile(r'^\s*File "')
_FRAME_LINES = 4  # of a frame before its exception: file, code, marks below the code


@dataclass(frozen=True, slots=True)
class Root:
    """`line` and `frame` are indices of lines: of the exception, and of the frame and code that raised it."""

    cause: str
    line: int
    frame: tuple[int, ...] = ()

    @property
    def lost_partner(self) -> bool:
        return _LOST.search(self.cause[:500]) is not None


def root_exception(texts: Sequence[str]) -> Root | None:
    """The exception that began it: the first that does not merely pass on another's failure.

    Of a chain joined by "During handling of the above exception" the last is meant for the reader (a KeyError turned
    into words), of one joined by "direct cause" the first.
    """
    found: tuple[str, int] | None = None
    for index, text in enumerate(texts):
        if _WRAPPERS.search(text):
            continue
        if text.startswith("During handling of the above exception"):
            found = None
        elif found is None:
            if usage := _USAGE.match(text):
                found = usage[1], index
            elif pydantic := _PYDANTIC.match(text):
                found = pydantic[1], index
            elif (exception := _EXCEPTION.match(text)) and exception[1] != "ValidationError":
                found = text.strip(), index
    return Root(redact(found[0]), found[1], _frame_above(texts, found[1])) if found else None


def _frame_above(texts: Sequence[str], line: int) -> tuple[int, ...]:
    """The innermost frame of the traceback that ends at `line`: its file and its code."""
    for index in range(line - 1, max(line - 1 - _FRAME_LINES, -1), -1):
        if _FRAME.match(texts[index]):
            code = index + 1
            return (index, code) if code < line and texts[code].strip(" ^~") else (index,)
    return ()
