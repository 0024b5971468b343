"""What a log that no rule knows says went wrong: the exception that began it, not those that pass it on."""

import re
from collections.abc import Sequence

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


def root_exception(texts: Sequence[str]) -> tuple[str, int] | None:
    """The exception that began it, and its line: the first that does not merely pass on another's failure.

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
    return (redact(found[0]), found[1]) if found else None
