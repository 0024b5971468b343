"""What limits a server, in one sentence with its evidence: from the samples of a window or of a run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from engine.knobs import Knobs
from engine.window import Window
from store.records import SampleRecord

Kind = Literal["kv", "sequences", "token_budget", "compute", "power", "client", "idle", "unknown"]


@dataclass(frozen=True, slots=True)
class Limit:
    """`sentence` is the finding with its evidence, `advice` says which knob can or cannot help ("" where none is
    asked for). `evidence` holds the numbers of the sentence, units in their names."""

    kind: Kind
    sentence: str
    evidence: dict[str, float] = field(default_factory=dict)
    advice: str = ""

    @property
    def text(self) -> str:
        """Both, as they are shown."""
        return f"{self.sentence} {self.advice}".rstrip()


def what_limits(window: Window | Sequence[SampleRecord], knobs: Knobs, before: Limit | None = None) -> Limit | None:
    """None without any sample. `before` is what was said last, so that the sentence does not flicker."""
    if not len(window):
        return None
    return Limit("unknown", "Cannot tell: too few samples.")
