"""The plan as a form: model, baseline flags, a line a dimension, workloads, budget; at once what it costs and sees."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.timer import Timer
from textual.widgets import Input, Label, OptionList, Static, TextArea
from textual.widgets.option_list import Option

from engine.text import clean
from tui.tune.plan_form import PlanForm, workload_line
from tui.tune.plan_preview import Preview, budget_line, cost_text, left_out, noise_line
from tui.tune.price_text import HEADS, price_lines
from tui.widgets.price_table import PriceTable
from tui.widgets.workload_form import WorkloadForm
from tuning.records import RUN_METRICS, Workload
from tuning.verdict.outlook import Price

SETTLE_S = 0.25
"""How long the keys must rest before the plan is counted again."""

ROOMY_LINES = 30

FIELDS = ("name", "served_name", "model", "vllm", "baseline", "metric", "effect", "blocks", "limits", "hours", "price")
"""The inputs, by their ids and the form's fields."""

NEW_WORKLOAD = Workload(
    name="chat", dataset="random", requests=32, max_concurrency=8, shape={"input_len": 128, "output_len": 64}
)


class WorkloadList(OptionList):
    """The workloads, one a line. `a` adds, `enter` edits, `delete` removes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add", "add workload"),
        Binding("delete,backspace", "remove", "remove"),
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
    ]

    class Asked(Message):
        """`place` is the workload to edit or remove, None for a new one."""

        def __init__(self, what: str, place: int | None) -> None:
            super().__init__()
            self.what = what
            self.place = place

    def action_add(self) -> None:
        self.post_message(self.Asked("add", None))

    def action_remove(self) -> None:
        if self.highlighted is not None:
            self.post_message(self.Asked("remove", self.highlighted))


class GridEditor(Vertical):
    """The fields and, below them, cost or mistakes. Posts `Edited` when the keys have rested after a change."""

    DEFAULT_CSS = """
    GridEditor { height: 1fr; padding: 0 1; }
    GridEditor Horizontal { height: 1; }
    GridEditor Label { width: 10; color: $text-muted; }
    GridEditor .second { width: 11; padding-left: 2; }
    GridEditor Input { width: 1fr; }
    GridEditor .amount { width: auto; padding: 0 1 0 2; }
    GridEditor Input.short { width: 7; }
    GridEditor .head { width: 1fr; color: $text-muted; }
    GridEditor TextArea { height: 3; border: none; padding: 0; background: $surface; }
    GridEditor TextArea:focus { border: none; background: $panel; }
    GridEditor WorkloadList {
        height: auto; min-height: 1; max-height: 3; border: none; padding: 0; background: $surface;
    }
    GridEditor WorkloadList { text-wrap: nowrap; text-overflow: ellipsis; scrollbar-size-vertical: 1; }
    GridEditor WorkloadList:focus { border: none; background: $panel; }
    GridEditor #cost { height: 1fr; min-height: 3; scrollbar-size-vertical: 1; }
    GridEditor #cost Static { height: auto; }
    GridEditor #heads { color: $text-muted; }
    GridEditor.-no-price #heads, GridEditor.-no-price PriceTable { display: none; }
    GridEditor.-roomy TextArea { height: 8; }
    GridEditor.-roomy WorkloadList { max-height: 6; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave_field", "leave field")]

    class Edited(Message):
        """The form after a change."""

        def __init__(self, form: PlanForm) -> None:
            super().__init__()
            self.form = form

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._workloads: tuple[Workload, ...] = ()
        self._settle: Timer | None = None
        self._preview = Preview()

    def compose(self) -> ComposeResult:
        yield from _line(("name", "name", "", ""), ("served_name", "serve as", "second", ""))
        yield from _line(("model", "model", "", "a folder or a hub name"))
        yield from _line(("vllm", "vLLM", "", "empty: --vllm, LLMTUNE_VLLM, or the one on PATH"))
        yield from _line(("baseline", "baseline", "", "flags, or paste a whole `vllm serve …` line"))
        yield Label(
            "grid: a flag a line (max-num-seqs: default 64 256); + a=1 b=2 is one candidate",
            classes="head",
            markup=False,
        )
        yield TextArea("", id="grid", compact=True, soft_wrap=False, show_line_numbers=False, tab_behavior="focus")
        yield Label("workloads: a adds, enter edits, delete removes", classes="head", markup=False)
        yield WorkloadList(id="workloads", markup=False, compact=True)
        with Horizontal():
            yield Label("decide by", markup=False)
            yield Input(
                id="metric", compact=True, suggester=SuggestFromList(RUN_METRICS), placeholder="total_tok_per_s"
            )
            yield from _amounts(("effect", "worth having, %"), ("blocks", "blocks"))
        with Horizontal():
            yield Label("limits", markup=False)
            yield Input(id="limits", compact=True, placeholder="chat.p99_ttft_ms <= 500, error_rate == 0")
            yield from _amounts(("hours", "hours"), ("price", "$/h"))
        with VerticalScroll(id="cost"):
            yield Static("", id="preview", markup=False)
            yield Static(HEADS, id="heads", markup=False)
            yield PriceTable(id="prices")
            yield Static("", id="rest", markup=False)

    def on_resize(self) -> None:
        self.set_class(self.size.height >= ROOMY_LINES, "-roomy")

    @property
    def form(self) -> PlanForm:
        """The fields as they stand."""
        values = {field: self.query_one(f"#{field}", Input).value for field in FIELDS}
        return PlanForm(grid=self.query_one("#grid", TextArea).text, workloads=self._workloads, **values)

    def fill(self, form: PlanForm) -> None:
        """Put a whole plan into the fields and have it counted."""
        for field in FIELDS:
            self.query_one(f"#{field}", Input).value = clean(getattr(form, field))
        self.query_one("#grid", TextArea).text = "\n".join(clean(line) for line in form.grid.split("\n"))
        self._show_workloads(form.workloads, 0)
        self._edited()

    def action_leave_field(self) -> None:
        """Out of the field, so that single keys are keys again."""
        self.screen.set_focus(None)

    def show_preview(self, found: Preview) -> None:
        """Cost and what is left out, or the mistakes; the prices come later."""
        self._preview = found
        self.query_one("#preview", Static).update(preview_content(found))
        self.query_one("#rest", Static).update(rest_content(found))
        if found.plan is None:
            self.add_class("-no-price")

    def show_prices(self, prices: Mapping[int, Price | None]) -> None:
        """What each number of blocks sees and costs; None is still being worked out."""
        plan = self._preview.plan
        self.set_class(plan is None or not prices, "-no-price")
        if plan is not None:
            chosen = plan.decide.blocks
            lines = price_lines(prices, plan.decide.smallest_effect, chosen)
            self.query_one(PriceTable).show(lines, chosen)

    @on(PriceTable.Wanted)
    def _wanted(self, message: PriceTable.Wanted) -> None:
        message.stop()
        self.query_one("#blocks", Input).value = str(message.blocks)

    @on(Input.Changed)
    @on(TextArea.Changed)
    def _edited(self) -> None:
        if self._settle is not None:
            self._settle.stop()
        self._settle = self.set_timer(SETTLE_S, lambda: self.post_message(self.Edited(self.form)))

    @on(Input.Submitted)
    def _next_field(self) -> None:
        self.screen.focus_next()

    # workloads

    @on(OptionList.OptionSelected, "#workloads")
    def _edit_workload(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._open(event.option_index)

    @on(WorkloadList.Asked)
    def _asked(self, message: WorkloadList.Asked) -> None:
        if message.what == "add":
            self._open(None)
        elif message.place is not None:
            kept = [one for at, one in enumerate(self._workloads) if at != message.place]
            self._show_workloads(tuple(kept), max(0, message.place - 1))
            self._edited()

    def _open(self, place: int | None) -> None:
        """The form of one workload; a new one starts from the last, under a name that is free."""

        def keep(made: Workload | None) -> None:
            if made is None:
                return
            changed = list(self._workloads)
            if place is None:
                changed.append(made)
            else:
                changed[place] = made
            self._show_workloads(tuple(changed), len(changed) - 1 if place is None else place)
            self._edited()

        base = self._new_workload() if place is None else self._workloads[place]
        self.app.push_screen(WorkloadForm(base), keep)

    def _new_workload(self) -> Workload:
        taken = {one.name for one in self._workloads}
        base = self._workloads[-1] if self._workloads else NEW_WORKLOAD
        names = (base.name if at == 1 else f"{base.name}-{at}" for at in range(1, 1000))
        return replace(base, name=next(name for name in names if name not in taken))

    def _show_workloads(self, workloads: tuple[Workload, ...], highlighted: int) -> None:
        self._workloads = workloads
        shown = self.query_one(WorkloadList)
        shown.clear_options()
        shown.add_options(Option(Content(workload_line(one))) for one in workloads)
        if workloads:
            shown.highlighted = highlighted


def preview_content(found: Preview) -> Content:
    """The lines under the form: what it comes to, and from where that is known; or the mistakes."""
    if found.mistakes:
        lines = [Content.assemble(("✗ ", "bold $error"), line) for line in found.mistakes]
        return Content("\n").join([*lines, Content.styled("it cannot start like this", "dim")])
    if found.estimate is None or found.plan is None:
        return Content("")
    lines = [Content.styled(cost_text(found), "bold"), Content.styled(noise_line(found), "dim")]
    if (over := budget_line(found)) is not None:
        lines.append(Content.assemble(("! ", "bold $warning"), over))
    return Content("\n").join(lines)


def rest_content(found: Preview) -> Content:
    """Below the prices: what they are, what is left out, every candidate."""
    if found.plan is None:
        return Content("")
    lines = ["finds: so large a gain in 80 % of sessions (✓ as small as is worth having); enter takes a line's blocks"]
    lines += ["expected where nothing differs from the default, ≤ where no candidate leaves early"]
    lines += [left_out(one) for one in found.skipped]
    lines += ["esc leaves a field, F1 to F5 change screens from within one"]
    lines += [f"{one.index:3d}  {clean(one.label, 100)}" for one in found.candidates]
    return Content("\n").join(Content.styled(line, "dim") for line in lines)


def _amounts(*fields: tuple[str, str]) -> Sequence[Label | Input]:
    """Short inputs behind another, each with its label: (id, label)."""
    return [
        widget
        for field, label in fields
        for widget in (
            Label(label, classes="amount", markup=False),
            Input(id=field, compact=True, classes="short"),
        )
    ]


def _line(*fields: tuple[str, str, str, str]) -> Sequence[Horizontal]:
    """One line of labelled inputs: (id, label, the label's class, placeholder)."""
    widgets = []
    for field, label, classes, placeholder in fields:
        widgets += [Label(label, classes=classes, markup=False), Input(id=field, compact=True, placeholder=placeholder)]
    return [Horizontal(*widgets)]
