"""The small form of one workload."""

from dataclasses import replace
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from engine.text import clean
from tuning.records import PlanError, Workload

SHAPE_KEYS = {
    "random": ("input_len", "output_len", "range_ratio", "prefix_len"),
    "sharegpt": ("output_len",),
    "prefix_repetition": ("prefix_len", "suffix_len", "num_prefixes", "output_len"),
}
FIELDS = (
    ("name", "name", "a word of your own"),
    ("dataset", "dataset", "random, sharegpt or prefix_repetition"),
    ("path", "path", "the ShareGPT file; only for sharegpt"),
    ("requests", "requests", "of one run"),
    ("concurrency", "at once", "empty: as many as arrive"),
    ("rate", "arrivals/s", "empty: all at once"),
    ("warmup", "warm-ups", "whole runs, not counted"),
    ("repeats", "repeats", "measured runs a launch"),
    ("shape", "shape", "input_len=128 output_len=64"),
)


def form_values(workload: Workload) -> dict[str, str]:
    """The form's texts for a workload."""
    return {
        "name": workload.name,
        "dataset": workload.dataset,
        "path": workload.path or "",
        "requests": str(workload.requests),
        "concurrency": "" if workload.max_concurrency is None else str(workload.max_concurrency),
        "rate": "" if workload.request_rate is None else f"{workload.request_rate:g}",
        "warmup": str(workload.warmup),
        "repeats": str(workload.repeats),
        "shape": " ".join(f"{key}={value}" for key, value in workload.shape.items()),
    }


def workload_of(values: dict[str, str], base: Workload) -> Workload:
    """The workload that the form says; what it does not show is kept from `base`. Raises PlanError."""
    mistakes: list[str] = []

    def whole(field: str, least: int) -> int:
        text = values[field].strip()
        if not text.isdecimal() or int(text) < least:
            mistakes.append(f"{field}: {text!r} is not a whole number of at least {least}")
            return least
        return int(text)

    dataset = values["dataset"].strip()
    if dataset not in SHAPE_KEYS:
        mistakes.append(f"dataset: {dataset!r} is not one of {', '.join(SHAPE_KEYS)}")
    if not values["name"].strip():
        mistakes.append("name: say how this workload is called")
    path = values["path"].strip() or None
    if dataset == "sharegpt" and path is None:
        mistakes.append("path: sharegpt needs the path of its JSON file")
    rate = None
    if values["rate"].strip() not in ("", "inf"):
        try:
            rate = float(values["rate"])
        except ValueError:
            rate = 0.0
        if not 0 < rate < 1e9:
            mistakes.append(f"rate: {values['rate'].strip()!r} is not a number of requests a second")
    made = replace(
        base,
        name=values["name"].strip(),
        dataset=dataset,
        path=path,
        requests=whole("requests", 1),
        max_concurrency=whole("concurrency", 1) if values["concurrency"].strip() else None,
        request_rate=rate,
        warmup=whole("warmup", 0),
        repeats=whole("repeats", 1),
        shape=_shape(values["shape"], dataset, mistakes),
    )
    if mistakes:
        raise PlanError("\n".join(mistakes))
    return made


def _shape(text: str, dataset: str, mistakes: list[str]) -> dict[str, Any]:
    shape: dict[str, Any] = {}
    known = SHAPE_KEYS.get(dataset, ())
    for word in text.replace(",", " ").split():
        key, _, value = word.partition("=")
        key = key.replace("-", "_")
        try:
            shape[key] = float(value) if "." in value else int(value)
        except ValueError:
            mistakes.append(f"shape: write {key}=NUMBER")
            continue
        if known and key not in known:
            mistakes.append(f"shape: {dataset} has no {key}; it has {', '.join(known)}")
    return shape


class WorkloadForm(ModalScreen[Workload | None]):
    """Edits one workload; enter keeps it, esc leaves it as it was."""

    DEFAULT_CSS = """
    WorkloadForm { align: center middle; }
    WorkloadForm > Vertical {
        width: 74; max-width: 100%; height: auto; max-height: 100%;
        border: round $accent; background: $surface; padding: 0 1;
    }
    WorkloadForm Horizontal { height: 1; }
    WorkloadForm Label { width: 12; }
    WorkloadForm Input { width: 1fr; background: $boost; }
    WorkloadForm #mistakes { height: auto; color: $text-error; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave"),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        self._base = workload

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "workload"
            box.border_subtitle = "enter keeps · esc leaves · up and down move"
            values = form_values(self._base)
            for field, label, hint in FIELDS:
                with Horizontal():
                    yield Label(label, markup=False)
                    yield Input(clean(values[field]), placeholder=hint, id=field, compact=True)
            yield Static("", id="mistakes", markup=False)

    @on(Input.Changed, "#dataset")
    def fit_shape(self, event: Input.Changed) -> None:
        """Of the shape, keep what the dataset just named has too."""
        known = SHAPE_KEYS.get(event.value.strip())
        if known is not None:
            shape = self.query_one("#shape", Input)
            shape.value = " ".join(word for word in shape.value.split() if word.partition("=")[0] in known)
            shape.placeholder = " ".join(f"{key}=…" for key in known)

    @on(Input.Submitted)
    def keep(self) -> None:
        """Hand the workload over, or say what is wrong."""
        try:
            made = workload_of({field: self.query_one(f"#{field}", Input).value for field, _, _ in FIELDS}, self._base)
        except PlanError as error:
            self.query_one("#mistakes", Static).update(Content(str(error)))
            return
        self.dismiss(made)

    def action_leave(self) -> None:
        self.dismiss(None)
