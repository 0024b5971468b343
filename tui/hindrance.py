"""What keeps a session's keeper from writing, such as a full disk: the one thing that the database cannot say."""

from pathlib import Path

from engine.keeper.client import call
from engine.records import EngineError
from engine.text import clean


def hindrance(data_dir: Path, session_id: int) -> str | None:
    """One line for a person, or None where the keeper can write or does not answer. Blocking, for some milliseconds."""
    try:
        blocked = call(data_dir, "session", session_id, "status").get("blocked")
    except EngineError:  # gone, or busy: whoever looks at its lock tells
        return None
    return None if blocked is None else f"the session waits, and loses nothing: {clean(str(blocked), 500)}"
