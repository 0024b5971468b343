"""The page as a browser reads it: one file, without script, with nothing of others' text in its structure."""

import re
from html.parser import HTMLParser
from xml.etree.ElementTree import fromstring

import pytest

from tests.tuning.reporting.examples import Measured, measured
from tuning.document import Code, Heading, Paragraph, Part, Points, Table
from tuning.report import html
from tuning.reporting.page import as_html, verdict_kind

VOID = {"meta", "br"}
FETCHES = {"script", "link", "img", "image", "iframe", "object", "embed", "form", "base", "use", "foreignobject"}
EVIL = "<script>alert(1)</script>|`x`\x1b[2J\x00\u202e\"'&amp;--></style></svg>](javascript:1){{ 7*7 }}{% x %}"


class Reader(HTMLParser):
    """The tree of the page: what is open, and all that was seen."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.ids: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += attrs
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def session() -> Measured:
    return measured()


def page_of(of: Measured) -> str:
    return html(of.result, of.session, of.launches, of.runs)


@pytest.fixture(scope="module")
def page(session: Measured) -> str:
    return page_of(session)


def test_it_is_one_file_that_fetches_and_runs_nothing(page: str) -> None:
    reader = Reader(page)
    assert not reader.open
    assert not set(reader.seen) & FETCHES
    assert not [
        name for name, _ in reader.attributes if name.startswith("on") or name in ("src", "style", "xlink:href")
    ]
    assert all(value and value.startswith("#") for name, value in reader.attributes if name == "href")
    assert "default-src 'none'" in page
    assert not re.search(r"url\(|@import|https?://(?!127\.0\.0\.1)", page)


def test_who_does_not_see_it_is_told_all_the_same(page: str) -> None:
    reader = Reader(page)
    assert len(reader.ids) == len(set(reader.ids))
    named = {name for name, _ in reader.attributes if name.startswith("aria-")}
    assert {"aria-labelledby", "aria-describedby", "aria-label"} <= named
    for name, value in reader.attributes:
        if name in ("aria-labelledby", "aria-describedby"):
            assert value in reader.ids
        if name == "href":
            assert value is not None
            assert value[1:] in reader.ids
    assert reader.seen.count("th") == len([1 for name, _ in reader.attributes if name == "scope"])
    assert '<html lang="en">' in page
    assert reader.seen.count("svg") == 6
    for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        tree = fromstring(svg)
        assert tree[0].tag == "title"
        assert tree[0].text
        assert tree[1].tag == "desc"
        assert tree[1].text


def test_it_shows_in_light_and_dark_and_on_paper(page: str) -> None:
    style = page[page.index("<style>") : page.index("</style>")]
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style
    used, defined = set(re.findall(r"var\((--[a-z]+)\)", style)), set(re.findall(r"(--[a-z]+):", style))
    assert used <= defined
    for colours in re.findall(r":root \{[^}]*--paper[^}]*\}", style):
        assert set(re.findall(r"(--[a-z]+):", colours)) == defined, "each of the three names every colour"


def test_the_verdict_stands_first(page: str, session: Measured) -> None:
    assert session.result.judgement is not None
    lead = page[page.index('<p class="lead">') :]
    assert session.result.judgement.sentence.split(":")[0] in lead[: lead.index("</p>")]
    assert page.index("<h1>") < page.index('<p class="lead">') < page.index("What to run") < page.index("<table>")
    assert '<strong class="v-better">✓ better</strong>' in page


def test_text_of_others_stays_text() -> None:
    parts: list[Part] = [
        Heading(EVIL, 1),
        Paragraph(EVIL, strong=True),
        Heading(EVIL),
        Paragraph(EVIL),
        Points((EVIL,)),
        Code(f"a\n{EVIL}"),
        Table((EVIL, EVIL), ((EVIL, EVIL),), frozenset({1}), EVIL),
    ]
    page = as_html(parts, EVIL)
    reader = Reader(page)
    assert not reader.open
    assert "script" not in reader.seen
    assert reader.seen.count("style") == 1
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 14
    assert "{{ 7*7 }}" in page, "no template of theirs is run"
    assert not re.search("[\x00\x1b\u202e]", page)
    assert "<code>a\n&lt;" in page, "the lines of a command stay lines"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("✓ better", "better"),
        ("✗ worse, left", "worse"),
        ("? 2 more", "undecided"),
        ("?", "undecided"),
        ("≈ equivalent", "equivalent"),
        ("⊘ infeasible", "infeasible"),
        ("–", ""),
        ("better", ""),
        ("", ""),
        ("!", ""),
        ("seqs ✓ 3", ""),
    ],
)
def test_a_cell_is_coloured_by_its_glyph_alone(text: str, kind: str) -> None:
    assert verdict_kind(text) == kind


def test_a_document_without_a_title_is_a_page_too() -> None:
    assert "<p>only this</p>" in as_html([Paragraph("only this")])
    assert not Reader(as_html([])).open
