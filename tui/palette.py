"""The command palette: what is possible now, not a fixed list."""

from collections.abc import Callable, Iterable
from typing import NamedTuple


class Command(NamedTuple):
    """One line of the palette. `title` and `help` are our own words: the palette reads them as markup."""

    title: str
    help: str
    run: Callable[[], object]


def app_commands(
    modes: Iterable[tuple[str, str]],
    current: str,
    switch: Callable[[str], object],
    help_screen: Callable[[], object],
    leave: Callable[[], object],
) -> tuple[Command, ...]:
    """What is possible everywhere: the other screens (`modes` is (name, label)), help, leaving."""
    return (
        *(
            Command(f"Go to {label}", "Another screen", lambda name=name: switch(name))  # type: ignore[misc]
            for name, label in modes
            if name != current
        ),
        Command("Help", "Keys of this screen and what its numbers mean", help_screen),
        Command("Leave llmtune", "What runs goes on running", leave),
    )
