"""What a session's report screen reads, on the poller's thread: the session, and the parts of its report."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from store.records import SessionRecord
from tui.tune.tune_source import ViewSource
from tui.tune.tune_view import LIVE_STATES, TuneView
from tuning.document import Part
from tuning.reporting.losses import loss_parts
from tuning.reporting.material import Material
from tuning.reporting.meaning import meaning_parts, method_parts
from tuning.reporting.noise import noise_parts
from tuning.reporting.price import price_parts

if TYPE_CHECKING:
    from store.reader import Reader

READ_S = 5.0  # how often the parts of a session that goes on are made


@dataclass(frozen=True, slots=True)
class ReportSnapshot:
    """`parts` come with the second look: they ask for all runs once more, and the tables need not wait for them."""

    view: TuneView
    parts: tuple[Part, ...] | None = None


class ReportSource:
    """For one session, and for one thread."""

    def __init__(self, views: ViewSource, clock: Callable[[], float] = monotonic) -> None:
        self._views = views
        self._clock = clock
        self._of: TuneView | None = None  # what the parts were made of
        self._made_at = 0.0
        self._last: ReportSnapshot | None = None

    def read(self, reader: "Reader", session: SessionRecord, kept: bool, now: str) -> ReportSnapshot:
        """The same object as before where nothing changed."""
        view = self._views.read(reader, session, kept, now)
        last = self._last
        if last is None:
            self._last = ReportSnapshot(view)
        elif self._is_due(view):
            self._last, self._of, self._made_at = ReportSnapshot(view, report_parts(reader, view)), view, self._clock()
        elif view is not last.view:
            self._last = ReportSnapshot(view, last.parts)
        assert self._last is not None
        return self._last

    def _is_due(self, view: TuneView) -> bool:
        if view is self._of:
            return False
        soon = view.session.state in LIVE_STATES and self._of is not None
        return not soon or self._clock() >= self._made_at + READ_S


def report_parts(reader: "Reader", view: TuneView) -> tuple[Part, ...]:
    """What the tables above do not show; nothing of a plan that an older program wrote in another shape."""
    if view.plan is None or view.session.id is None:
        return ()
    launches, runs = reader.launches(view.session.id), reader.runs(view.session.id)
    material = Material(view.session, view.result, launches, runs)
    return (
        *price_parts(material),
        *loss_parts(material),
        *noise_parts(material),
        *method_parts(material),
        *meaning_parts(material),
    )
