"""Looking for servers on this machine. A module of its own so that a test can stand in for the machine."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.discovery import FoundServer


def found() -> "tuple[FoundServer, ...]":
    """The vLLM servers that listen on this machine now. Reads /proc: call it on a thread."""
    from engine.discovery import found_servers

    return found_servers()
