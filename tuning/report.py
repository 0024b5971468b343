"""A session as text to keep: Markdown or HTML for reading, JSON with everything, CSV with a row for each run."""

from collections.abc import Sequence

from store.records import LaunchRecord, RunRecord, SessionRecord
from tuning.document import as_markdown
from tuning.records import SessionResult
from tuning.reporting.as_csv import to_csv
from tuning.reporting.as_json import to_json
from tuning.reporting.commands import serve_command
from tuning.reporting.material import Material
from tuning.reporting.page import as_html
from tuning.reporting.report import report_parts

__all__ = ["html", "markdown", "serve_command", "to_csv", "to_json"]


def markdown(
    result: SessionResult,
    session: SessionRecord,
    launches: Sequence[LaunchRecord] = (),
    runs: Sequence[RunRecord] = (),
) -> str:
    """The session as Markdown, the verdict first. Rejected runs are listed where `runs` has them."""
    return as_markdown(report_parts(Material(session, result, launches, runs)))


def html(
    result: SessionResult, session: SessionRecord, launches: Sequence[LaunchRecord], runs: Sequence[RunRecord]
) -> str:
    """The same as one HTML file, with pictures."""
    return as_html(report_parts(Material(session, result, launches, runs)), "Made by llmtune.")
