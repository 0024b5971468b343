"""What a number on a screen means: one line of its help."""

from typing import NamedTuple


class Number(NamedTuple):
    """A number as the screen names it, and what it means."""

    name: str
    meaning: str
