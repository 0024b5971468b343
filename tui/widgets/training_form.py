"""The fields of a new training, in two columns."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, Label

from engine.text import clean
from tui.lora.form import FIELDS, TrainingForm, other_targets

SETTLE_S = 0.15


class TrainingFields(Horizontal):
    """Posts `Edited` once a person has stopped typing."""

    DEFAULT_CSS = """
    TrainingFields { height: auto; }
    TrainingFields > Vertical { width: 1fr; height: auto; }
    TrainingFields Horizontal { height: 1; }
    TrainingFields Label { width: 15; padding: 0 0 0 1; color: $text-muted; }
    TrainingFields Input { width: 1fr; background: $boost; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    class Edited(Message):
        """The fields have other texts."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._settle: Timer | None = None

    def compose(self) -> ComposeResult:
        half = -(-len(FIELDS) // 2)
        for part in (FIELDS[:half], FIELDS[half:]):
            with Vertical():
                for name, label, hint in part:
                    with Horizontal():
                        yield Label(label, markup=False)
                        yield Input(placeholder=hint, id=f"f-{name}", compact=True, select_on_focus=False)

    @property
    def form(self) -> TrainingForm:
        """The fields as they stand."""
        return TrainingForm(**{name: self.query_one(f"#f-{name}", Input).value for name, _, _ in FIELDS})

    def fill(self, form: TrainingForm) -> None:
        """Put these texts into the fields."""
        for name, _, _ in FIELDS:
            self.query_one(f"#f-{name}", Input).value = clean(getattr(form, name))

    def put(self, name: str, text: str) -> None:
        """Another text into one field."""
        self.query_one(f"#f-{name}", Input).value = clean(text)

    def turn_targets(self) -> None:
        """All linear layers, or q_proj and v_proj."""
        self.put("targets", other_targets(self.form.targets))

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._settle is not None:
            self._settle.stop()
        self._settle = self.set_timer(SETTLE_S, lambda: self.post_message(self.Edited()))

    @on(Input.Submitted)
    def _next_field(self, event: Input.Submitted) -> None:
        event.stop()
        self.screen.focus_next()
