"""A document as one HTML file: styles and pictures in it, no script, nothing fetched."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.text import clean
from tuning.document import Code, Heading, Paragraph, Part, Picture, Points, Table
from tuning.judgement.verdict_words import GLYPHS
from tuning.reporting.svg import as_text

if TYPE_CHECKING:
    from jinja2 import Environment

_KINDS = {glyph: word for word, glyph in GLYPHS.items()}


@dataclass(frozen=True, slots=True)
class _Section:
    """What stands under one heading; `anchor` is its own within the page."""

    heading: Heading
    anchor: str
    parts: tuple[Part, ...]


def as_html(parts: Sequence[Part], footer: str = "") -> str:
    """A whole page. The first heading is its title; what follows up to the next is its summary."""
    sections = list(_sections(parts))
    lead = sections[0] if sections and sections[0].heading.level == 1 else None
    environment = _environment()
    title = clean(lead.heading.text) if lead else "Report"
    page = environment.get_template("page.html")
    return page.render(title=title, lead=lead, sections=sections[1:] if lead else sections, footer=clean(footer)) + "\n"


def _sections(parts: Sequence[Part]) -> Iterator[_Section]:
    heading: Heading | None = None
    inside: list[Part] = []
    count = 0
    for part in [*parts, None]:
        if part is not None and not isinstance(part, Heading):
            inside.append(part)
            continue
        if heading is not None or inside:
            count += 1
            yield _Section(heading or Heading("Report", 1), _anchor(heading, count), tuple(inside))
        heading, inside = part, []


def _anchor(heading: Heading | None, count: int) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", heading.text.lower())[:40].strip("-") if heading else ""
    return f"{words or 'part'}-{count}"


def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["clean"] = clean
    made.filters["lines"] = lambda text: "\n".join(clean(line) for line in text.split("\n"))
    made.filters["split"] = lambda text: [clean(line) for line in text.split("\n")]
    made.filters["kind"] = verdict_kind
    # Safe: the tree escapes whatever text it was given.
    made.filters["svg"] = lambda picture: Markup(as_text(picture.svg))
    made.tests["table"] = lambda part: isinstance(part, Table)
    made.tests["points"] = lambda part: isinstance(part, Points)
    made.tests["paragraph"] = lambda part: isinstance(part, Paragraph)
    made.tests["code"] = lambda part: isinstance(part, Code)
    made.tests["picture"] = lambda part: isinstance(part, Picture)
    return made


def verdict_kind(text: str) -> str:
    """`✓ better` → `better`, by its glyph; "" where the text has none."""
    glyph, _, rest = text.partition(" ")
    return _KINDS.get(glyph, "") if rest or glyph == GLYPHS["undecided"] else ""
