"""A store that takes nothing for a while."""

from typing import Any

from store.errors import StoreFull
from store.writer import Writer


class Full:
    """A writer whose disk fills up."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.full = False

    def __getattr__(self, name: str) -> Any:
        if self.full and name in ("insert", "update"):
            raise StoreFull("the disk is full")
        return getattr(self._writer, name)
