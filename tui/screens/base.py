"""What every screen has: the header with the number keys, a line for news and errors, the footer; how it is fed."""

from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.screen import Screen

from engine.keeper.client import is_running
from tui.app import LlmtuneApp
from tui.legend import Number
from tui.palette import Command
from tui.widgets.header import Header
from tui.widgets.key_line import KeyLine
from tui.widgets.late import Late
from tui.widgets.status_line import StatusLine

if TYPE_CHECKING:
    from store.reader import Reader


def room_classes(size: Size) -> frozenset[str]:
    """The classes that Textual gives a screen of this size."""
    across, down = LlmtuneApp.HORIZONTAL_BREAKPOINTS, LlmtuneApp.VERTICAL_BREAKPOINTS
    widths, heights = [at for at in across if at[0] <= size.width], [at for at in down if at[0] <= size.height]
    return frozenset(max(fitting)[1] for fitting in (widths, heights))


def looks(app: LlmtuneApp) -> tuple[object, ...]:
    """What of the app itself tells how all widgets look."""
    return app.theme, app.classes, app.pseudo_classes


class LlmtuneScreen(Screen[None], Late):
    """A screen of the number keys. A subclass composes its `body` and is fed by two methods.

    `refresh_from_store(reader)` runs on the poller's thread each time the database changed and once a second: it reads,
    touches no widget, and returns one frozen snapshot. `show(snapshot)` then runs on the UI thread and draws it. Only
    the screen that is shown is fed; `self.app.ask()` has it fed at once (another row was chosen).
    """

    LEGEND: ClassVar[tuple[Number, ...]] = ()
    """Every number that this screen shows, for `?`."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "back", show=False)]

    def __init__(self) -> None:
        super().__init__()
        self.app.collector.hold()
        # Textual takes a new screen for one that missed a change of theme, and reads all CSS anew and applies it to all
        # that stands, which doubles the time to open it. Its own rules are added as it is mounted.
        self._css_update_count = self.app._css_update_count
        # Set before it stands: Textual finds the classes of its size at the first resize, and then applies all rules to
        # all widgets once more.
        self.add_class(*room_classes(self.app.size), update=False)
        self._styled_for = looks(self.app)

    def compose(self) -> ComposeResult:
        yield Header()
        with Vertical(id="body"):
            yield from self.compose_body()
        yield StatusLine()
        yield KeyLine()

    def compose_body(self) -> ComposeResult:
        """The widgets between header and status line."""
        yield from ()

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        # Textual has all rules applied to all widgets again at each resume, twice in a row at the first one. What a
        # widget or the screen itself became meanwhile was applied as it became so: only the app may look otherwise.
        event.refresh_styles = self._styled_for != looks(self.app)
        self._styled_for = looks(self.app)
        self.app.showing(self)

    def refresh_from_store(self, reader: "Reader") -> Any:
        """Read what this screen shows (poller's thread)."""
        return None

    def show(self, snapshot: Any) -> None:
        """Draw what `refresh_from_store` returned (UI thread)."""

    def redraw(self) -> None:
        """Draw anew what was shown last, in another size."""

    def on_resize(self) -> None:
        self.call_after_refresh(self.later, self.redraw)

    def is_kept(self, session_id: int) -> bool:
        """Whether a living keeper holds the session. Any thread."""
        return is_running(self.app.data_dir, "session", session_id)

    def commands(self) -> tuple[Command, ...]:
        """What the palette offers on this screen now. Keep text from outside out of the titles."""
        return ()

    def say(self, line: str, error: bool = False) -> None:
        """Show one line above the footer: news for some seconds, an error until the next key that says something."""
        self.query_one(StatusLine).say(line, error)

    def show_store_error(self, line: str | None) -> None:
        """Show, or take away with None, the line that says why the database cannot be read."""
        self.query_one(StatusLine).store_error = line

    def action_back(self) -> None:
        """Close what lies on top; the bottom screen of a number key stays."""
        if len(self.app.screen_stack) > 1:
            self.app.pop_screen()
