"""The form that starts a server."""

from typing import ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from engine.records import EngineError
from engine.text import clean, redact
from store.errors import StoreError
from tui.servers.server_form import Wish, read_wish, start_wish, wish_warnings
from tui.widgets.late import Late


class LineInput(Input):
    """An input into which a command of several lines may be pasted: it becomes one line."""

    def _on_paste(self, event: events.Paste) -> None:
        lines = [line.strip().removesuffix("\\").strip() for line in event.text.splitlines()]
        self.insert_text_at_cursor(clean(" ".join(line for line in lines if line)))
        event.prevent_default()
        event.stop()


class NewServer(ModalScreen[int | None], Late):
    """Asks for a model or a pasted `vllm serve` line and starts it; the result is the server's id, None if left."""

    DEFAULT_CSS = """
    NewServer { align: center middle; }
    NewServer Vertical {
        width: 78; max-width: 100%; height: auto; border: round $accent; background: $surface; padding: 0 1;
    }
    NewServer .label { height: 1; color: $text-muted; margin-top: 1; }
    NewServer Input { background: $boost; }
    NewServer #said { height: auto; min-height: 1; max-height: 4; margin-top: 1; }
    NewServer .keys { color: $text-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave")]

    def __init__(self, line: str = "", name: str = "") -> None:
        """`line` and `name` stand in the form at first: what an ended server was started with."""
        super().__init__()
        self._line = line
        self._name = name
        self._starting = False
        self._warned: Wish | None = None  # what was asked about once

    def compose(self) -> ComposeResult:
        with Vertical() as form:
            form.border_title = "start a server"
            yield Static("model folder or hub name, or a whole vllm serve line", classes="label", markup=False)
            yield LineInput(self._line, id="line", placeholder="/models/qwen3-14b-awq", select_on_focus=False)
            yield Static("flags of vllm serve", classes="label", markup=False)
            yield LineInput(id="flags", placeholder="--max-model-len 4096 --gpu-memory-utilization 0.9")
            yield Static("port (empty: the first free one from 8000)", classes="label", markup=False)
            yield Input(id="port", max_length=5)
            yield Static("name (empty: the model's)", classes="label", markup=False)
            yield Input(self._name, id="name", max_length=60)
            yield Static(id="said", markup=False)
            yield Static("enter starts it   tab next field   esc leaves", classes="keys", markup=False)

    @on(Input.Submitted)
    def submit(self) -> None:
        """Read the form and start what it says; with a second enter where others could reach or see too much."""
        if self._starting:
            return
        try:
            wish = read_wish(*(self.query_one(f"#{field}", Input).value for field in ("line", "flags", "port", "name")))
            warnings = wish_warnings(wish)
        except EngineError as error:
            self._say(str(error))
            return
        if warnings and wish != self._warned:
            self._warned = wish
            self._say(f"{warnings[0]}. Enter again starts it all the same.")
            return
        self._starting = True
        self.query_one("#said", Static).update("◐ starting…")
        self._start(wish)

    @work(thread=True, group="start", description="starts a server")
    def _start(self, wish: Wish) -> None:
        try:
            server_id = start_wish(self.app.data_dir, self.app.vllm, wish)
        except (EngineError, StoreError, OSError) as error:
            self.later(self._failed, str(error))
        else:
            self.later(self.dismiss, server_id)

    def _failed(self, line: str) -> None:
        self._starting = False
        self._say(line)

    def _say(self, line: str) -> None:
        self.query_one("#said", Static).update(Content.assemble(("✗ ", "bold $error"), clean(redact(line), 300)))

    def action_leave(self) -> None:
        """Close the form, unless a server is just being started."""
        if not self._starting:
            self.dismiss(None)
