"""What is said of the chosen training, adapter or data set, drawn anew where its room changes."""

from tui.lora.details import Details, detail_rows
from tui.widgets.lines import Lines


class DetailLines(Lines):
    """Fills its own room, whatever that is."""

    DEFAULT_CSS = "DetailLines { height: 1fr; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._details: Details | None = None

    def show_details(self, details: Details | None) -> None:
        """Show these; None shows nothing."""
        self._details = details
        self.redraw()

    def on_resize(self) -> None:
        self.redraw()

    def redraw(self) -> None:
        """In the room that there is now."""
        size = self.content_size
        if self._details is None or not size.width:
            self.show(())
        else:
            self.show(detail_rows(self._details, size.width, size.height))
