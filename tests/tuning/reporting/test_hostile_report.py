"""A session whose every text was written by somebody else: neither form of the report takes any of it for its own."""

import json
import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.tuning.reporting.examples import Measured, measured
from tests.tuning.reporting.test_page import EVIL, Reader
from tuning.report import html, markdown, to_csv, to_json
from tuning.results import session_result

SIGNS = "<img src=x onerror=alert(1)> | `a` *b* _c_ [d](x:1) # e ~~f~~ &lt; \x1b[31m\x00 \r\n- g\n\n| --- |\n1. h \\"


@pytest.fixture(scope="module", params=[EVIL, SIGNS, "x" * 250, " ", "-", "1. x", "```"], ids=list("abcdefg"))
def hostile(request: pytest.FixtureRequest) -> Measured:
    evil = request.param
    usual = measured()
    points = [{**each, "label": f"{evil} {each['index']}"} for each in usual.session.candidates]
    record = replace(
        usual.session,
        name=evil,
        message=evil,
        plan={**usual.session.plan, "model": evil},
        candidates=points,
        plan_toml=f'name = "x"\n{evil}\n',
        environment={"vllm": evil, evil: [evil, {"x": float("nan")}], "gpus": [{"name": evil}], "processor": evil},
        raw={**usual.session.raw, "out": {**usual.session.raw["out"], "5": f"did not start: {evil}"}},
    )
    launches = [replace(each, failure=evil) if each.state == "failed" else each for each in usual.launches]
    runs = [replace(each, limited_by=f"KV-bound: {evil}") for each in usual.runs]
    runs = [
        replace(each, reason=evil, raw={"evidence": [{"check": evil, "reason": evil, "numbers": {evil: evil}}]})
        if each.state == "rejected"
        else each
        for each in runs
    ]
    return Measured(record, launches, runs, session_result(record, launches, runs, "2026-11-30T11:00:00.000Z"))


def tokens(text: str) -> list[Token]:
    """As GitHub reads it: HTML, tables and struck text are on."""
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)


def test_markdown_has_no_structure_of_theirs(hostile: Measured) -> None:
    text = markdown(hostile.result, hostile.session, hostile.launches, hostile.runs)
    allowed = {"text", "strong_open", "strong_close", "softbreak", "text_special"}
    for token in tokens(text):
        assert token.type not in ("html_block", "fence", "hr", "ordered_list_open", "blockquote_open")
        assert {child.type for child in token.children or ()} <= allowed, token.content
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in table.splitlines()}) == 1, table
    assert not re.search("[\x00\x1b\u202e]", text)


def test_html_has_no_element_of_theirs(hostile: Measured) -> None:
    page = html(hostile.result, hostile.session, hostile.launches, hostile.runs)
    reader = Reader(page)
    assert not reader.open
    assert not {"script", "img", "em"} & set(reader.seen)
    assert reader.seen.count("style") == 1
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert not re.search("[\x00\x1b\u202e]", page)


def test_json_and_csv_hold_no_sign_that_moves_a_terminal(hostile: Measured) -> None:
    text = to_json(hostile.result, hostile.session, hostile.launches, hostile.runs)
    assert json.loads(text)["schema"] == 1
    assert "NaN" not in text
    for form in (text, to_csv(hostile.session, hostile.runs)):
        assert not re.search("[\x00\x1b\u202e]", form)
