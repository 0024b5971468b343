"""A comparison of two sessions in the formats to keep."""

import json
from pathlib import Path

from store.private_files import make_private_folder, write_private
from tui.output import SCHEMA
from tuning.compared.records import SessionComparison
from tuning.compared.report import parts
from tuning.compared.report_json import to_json
from tuning.document import as_markdown, as_text

FORMATS = ("text", "md", "html", "json")


def comparison_text(compared: SessionComparison, form: str) -> str:
    """In one of FORMATS; a file holds every metric and interval, text for a terminal what decides."""
    if form == "json":
        document = {"schema": SCHEMA, **to_json(compared)}
        return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    if form == "text":
        return as_text(parts(compared))
    whole = parts(compared, all_metrics=True, wide=True)
    if form == "md":
        return as_markdown(whole)
    from tuning.reporting.page import as_html

    return as_html(whole)


def export(data_dir: Path, compared: SessionComparison, form: str) -> Path:
    """Write it to the exports folder, in place of an earlier one; the file's path. Raises OSError."""
    target = data_dir / "exports" / f"compare-{compared.a.id}-{compared.b.id}.{form}"
    make_private_folder(target.parent)
    write_private(target, comparison_text(compared, form))
    return target
