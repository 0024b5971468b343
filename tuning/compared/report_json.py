"""What is said of two sessions, for programs."""

from typing import Any

from tuning.compared.records import SessionComparison
from tuning.reporting.values import json_ready


def to_json(compared: SessionComparison) -> dict[str, Any]:
    """The comparison as JSON types throughout, under the names of its records; only finite numbers."""
    document: dict[str, Any] = json_ready(compared)
    return document
