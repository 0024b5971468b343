"""What was imported, as lines: one for each folder of results. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.text import clean
from store.records import ImportFileRecord
from tui.format import local_minute
from tuning.imported.places import folder_of

TITLES = ("files", "runs", "imported", "folder")


@dataclass(frozen=True, slots=True)
class ImportLine:
    """The files of one folder, or of all (`folder` None). `id` is its place in the list."""

    id: int
    folder: str | None
    files: tuple[int, ...]
    cells: tuple[str, ...]
    haystack: str


def import_lines(records: Sequence[ImportFileRecord]) -> tuple[ImportLine, ...]:
    """A line for each folder, what was imported last first; before them one of all where there are several."""
    folders: dict[str, list[ImportFileRecord]] = {}
    for record in records:
        folders.setdefault(folder_of(record.path), []).append(record)
    newest_first = sorted(folders.items(), key=lambda found: max(each.id or 0 for each in found[1]), reverse=True)
    groups: list[tuple[str | None, Sequence[ImportFileRecord]]] = [*newest_first]
    if len(groups) > 1:
        groups.insert(0, (None, records))
    return tuple(_line(at, folder, of) for at, (folder, of) in enumerate(groups))


def _line(at: int, folder: str | None, records: Sequence[ImportFileRecord]) -> ImportLine:
    cells = (
        f"{len(records):,}",
        f"{sum(each.runs for each in records):,}",
        local_minute(max(each.imported_at for each in records)),
        "all of them" if folder is None else clean(folder),
    )
    ids = tuple(each.id for each in records if each.id is not None)
    return ImportLine(at, folder, ids, cells, " ".join(cells).lower())


def matching(lines: Sequence[ImportLine], words: str) -> tuple[ImportLine, ...]:
    """The lines that hold every word of the filter."""
    wanted = words.lower().split()
    return tuple(line for line in lines if all(word in line.haystack for word in wanted))
