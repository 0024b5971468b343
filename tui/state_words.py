"""A server's state as a glyph and a word, so that it reads without colour."""

from textual.content import Content

from store.records import ServerState

GLYPHS: dict[ServerState, tuple[str, str]] = {
    "starting": ("◐", "$warning"),
    "ready": ("●", "$success"),
    "stopping": ("◌", "$warning"),
    "stopped": ("○", "$text-muted"),
    "failed": ("✗", "$error"),
}


def state_words(state: ServerState) -> Content:
    """`● ready`."""
    glyph, colour = GLYPHS[state]
    return Content.styled(f"{glyph} {state}", f"bold {colour}")
