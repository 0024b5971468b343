"""Lines: what differs is drawn, and nothing else; what is drawn is cut to the widget's own cells."""

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.widget import Widget

from tests.tui.panel_samples import HOSTILE_TEXTS
from tui.panels.row import (
    ACCENT,
    ERROR,
    GOOD,
    MUTED,
    STRONG,
    WARNING,
    Row,
    beside,
    figure,
    fit,
    group,
    outside,
    per_second,
    text_of,
    title,
    width_of,
)
from tui.widgets.lines import Lines


class Noted(Lines):
    """Notes the regions that it is asked to draw anew."""

    DEFAULT_CSS = "Noted { width: 20; height: 3; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[Region] = []
        self.laid_out = 0

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> "Noted":
        self.drawn += regions
        self.laid_out += layout
        super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
        return self


class Page(App[None]):
    def compose(self) -> ComposeResult:
        yield Noted()


def shown(app: App[None]) -> list[str]:
    """The screen's lines, as far as the widget reaches."""
    return ["".join(segment.text for segment in strip)[:20] for strip in app.screen._compositor.render_strips()]


async def test_only_cells_that_differ_are_drawn() -> None:
    app = Page()
    async with app.run_test(size=(30, 5)) as pilot:
        lines = app.query_one(Noted)
        lines.show([(("running ", MUTED), ("184", "")), (("waiting ", MUTED), (" 16", ERROR))])
        await pilot.pause()
        assert shown(app)[:3] == [" running 184        ", " waiting  16        ", " " * 20]
        lines.drawn.clear()
        lines.laid_out = 0
        lines.show([(("running ", MUTED), ("184", "")), (("waiting ", MUTED), (" 17", ERROR))])
        assert lines.drawn == [Region(10, 1, 1, 1)]
        lines.drawn.clear()
        lines.show([(("running ", MUTED), ("184", "")), (("waiting ", MUTED), (" 17", ERROR))])
        assert lines.drawn == []
        lines.show([(("running ", MUTED), ("184", ERROR)), (("waiting ", MUTED), (" 17", ERROR))])
        assert lines.drawn == [Region(0, 0, 18, 1)]  # another colour: the whole line
        await pilot.pause()
        assert shown(app)[1] == " waiting  17        "
        assert lines.laid_out == 0


KINDS = (MUTED, STRONG, GOOD, WARNING, ERROR, ACCENT)


class ByRules(Widget):
    """What a kind of piece would look like were it a component class with these rules."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"by-rules--{kind}" for kind in KINDS}
    DEFAULT_CSS = """
    ByRules { height: 1; background: $panel; }
    ByRules > .by-rules--muted { color: $text-muted; }
    ByRules > .by-rules--strong { text-style: bold; }
    ByRules > .by-rules--good { color: $success; }
    ByRules > .by-rules--warning { color: $warning; text-style: bold; }
    ByRules > .by-rules--error { color: $error; text-style: bold; }
    ByRules > .by-rules--accent { color: $accent; }
    """


class OnPanel(Lines):
    DEFAULT_CSS = "OnPanel { height: 1; background: $panel; }"


class Compared(App[None]):
    def compose(self) -> ComposeResult:
        yield ByRules()
        yield OnPanel()


async def test_each_kind_looks_as_rules_would_have_it_in_every_theme() -> None:
    app = Compared()
    async with app.run_test(size=(60, 5)) as pilot:
        lines, rules = app.query_one(OnPanel), app.query_one(ByRules)
        lines.show([tuple((kind, kind) for kind in KINDS)])
        seen = set()
        for theme in app.available_themes:
            app.theme = theme
            await pilot.pause()
            looks = {segment.text: segment.style for segment in lines.render_line(0)}
            for kind in KINDS:
                wanted = rules.get_component_rich_style(f"by-rules--{kind}")
                assert looks[kind] == wanted, (theme, kind)
                seen.add(wanted)
        assert len(seen) > len(app.available_themes)


async def test_what_is_too_wide_or_too_tall_is_cut_and_wide_characters_too() -> None:
    app = Page()
    async with app.run_test(size=(30, 5)) as pilot:
        lines = app.query_one(Noted)
        rows: list[Row] = [((outside(text, 40), ""),) for text in HOSTILE_TEXTS]
        lines.show(rows[5:])
        await pilot.pause()
        assert shown(app)[0].startswith(" 模型测试")
        assert lines.drawn[0] == Region(0, 0, 18, 1)
        lines.show(rows)
        await pilot.pause()
        page = shown(app)
        assert page[0] == " [/mnt/x]            "[:20]
        assert all("\x1b" not in line and "\u202e" not in line for line in page)


def test_text_from_outside_fills_its_cells_exactly() -> None:
    for text in HOSTILE_TEXTS:
        for width in (0, 1, 2, 9, 30):
            assert width_of(((outside(text, width), ""),)) == width, (text[:20], width)
    assert outside("capacity", 12) == "capacity    "
    assert outside("[/mnt/x] long", 8) == "[/mnt/x…"


def test_figures_fill_their_cells_whatever_they_are() -> None:
    for value in (None, float("nan"), float("inf"), 0.0, -3.0, 184.0, 1e300, -1e300, 1e-300):
        for width in (5, 8, 11):
            assert len(figure(value, width, 1, " %")) == width, value
            assert len(per_second(value, width)) == width, value
    assert figure(71.4, 8, 1, " %") == "  71.4 %"
    assert figure(None, 8, 1, " %") == "     –  "
    assert figure(1e300, 9) == " 1.0e+300"
    assert per_second(35.24, 8) == "  35.2/s"
    assert per_second(4512.4, 8) == " 4,512/s"


def test_titles_grids_and_columns_keep_their_width() -> None:
    assert text_of(title("scheduler", 34, 60.0)) == "── scheduler  last 60 s ──────────"
    assert text_of(title("engines", 30, None, "uneven")) == "── engines uneven ────────────"
    for width in (3, 12, 30):
        assert width_of(title("engines", width, 300.0, "x" * 400)) == width
    cells: list[Row] = [((f"cell {at}", ""),) for at in range(5)]
    some = [("capacity", "  174", ""), ("deferred", "    0", ""), ("[/x]" * 9, "    1", ERROR)]
    assert [text_of(row) for row in group("waiting", some, 39)] == [
        "waiting   capacity   174 deferred     0",
        "          [/x][/x…     1               ",
    ]
    assert [text_of(row) for row in group("waiting", some, 25)][1] == "          deferred     0 "
    rows = beside([cells[:2], cells[2:]], (8, 8), 3)
    assert [text_of(row) for row in rows] == ["cell 0   cell 2  ", "cell 1   cell 3  ", "         cell 4  "]
    assert fit((("abc", ""),), 2) == (("ab", ""),)
