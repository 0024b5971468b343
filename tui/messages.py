"""What the poller tells the app. Workers never touch widgets: they post one of these."""

from dataclasses import dataclass
from typing import Any

from textual.message import Message

from store.evaluation_job import EvaluationJobRecord
from store.records import ServerRecord, SessionRecord, TrainingRecord


@dataclass(frozen=True, slots=True)
class GoingOn:
    """What runs on its own, whether this program is there or not."""

    sessions: tuple[SessionRecord, ...] = ()  # running, or paused with its keeper waiting
    servers: tuple[ServerRecord, ...] = ()  # started by hand, not stopped
    trainings: tuple[TrainingRecord, ...] = ()
    evaluations: tuple[EvaluationJobRecord, ...] = ()


class StoreRead(Message):
    """The database was read for one screen: `snapshot` is what its `refresh_from_store` returned."""

    def __init__(self, view: object, snapshot: Any, version: int, going_on: GoingOn) -> None:
        super().__init__()
        self.view = view
        self.snapshot = snapshot
        self.version = version
        self.going_on = going_on

    def can_replace(self, message: Message) -> bool:
        """Only the newest reading for a screen is worth showing."""
        return isinstance(message, StoreRead) and message.view is self.view


class StoreFailed(Message):
    """The database could not be read; `line` says what to do. The poller goes on trying."""

    def __init__(self, line: str) -> None:
        super().__init__()
        self.line = line

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, StoreFailed)
