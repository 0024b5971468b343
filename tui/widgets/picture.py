"""A chart that is drawn for the room it has."""

from textual import events
from textual.message import Message
from textual.widgets import Static


class Picture(Static):
    """Says when it has another room: who draws it cannot know when what stands above it has taken its own."""

    class Resized(Message):
        """It is to be drawn for its new size."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", id=id, markup=False)

    def on_resize(self, event: events.Resize) -> None:
        self.post_message(self.Resized())
