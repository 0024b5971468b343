"""A file's results as the store keeps them, and back."""

import os.path

from store.records import ImportFileRecord
from tuning.imported.records import FileResults


def record_of(file: FileResults, now: str) -> ImportFileRecord:
    """The record of a file read just now."""
    raw = {"results": list(file.results), "failures": list(file.failures), "notes": list(file.notes)}
    return ImportFileRecord(os.path.abspath(file.path), file.content_hash, file.size, len(file.results), now, raw)


def file_of(record: ImportFileRecord) -> FileResults:
    """The results of a record that was read with its `raw`; what another program may have put there is left out."""
    results = record.raw.get("results")
    return FileResults(
        record.path,
        record.size,
        record.content_hash,
        tuple(each for each in results if isinstance(each, dict)) if isinstance(results, list) else (),
        _lines(record.raw.get("failures")),
        _lines(record.raw.get("notes")),
    )


def _lines(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
