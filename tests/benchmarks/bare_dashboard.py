"""What a dashboard costs that does nothing but draw: the yardstick of the monitor's cost.

4 Digits, 4 Sparklines, 6 Statics and a ProgressBar, each given something new once a second, as
Textual's own examples do.
"""

import math
from collections import deque

from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Digits, ProgressBar, Sparkline, Static

HISTORY = 60


class BareDashboard(App[None]):
    """No source, no store, no keys: invented numbers on plain widgets."""

    CSS = """
    Horizontal { height: auto; }
    Vertical { height: auto; }
    Sparkline { margin: 1; }
    Static { height: 1; }
    ProgressBar { margin: 1; }
    """

    def compose(self) -> ComposeResult:
        with Horizontal():
            for _ in range(4):
                yield Digits("0")
        with Vertical():
            for _ in range(4):
                yield Sparkline([])
            for _ in range(6):
                yield Static("")
            yield ProgressBar(total=100, show_eta=False)

    def on_mount(self) -> None:
        self.animation_level = "none"
        self.seconds = 0
        self.histories = [deque([0.0], maxlen=HISTORY) for _ in range(4)]
        self.set_interval(1.0, self.tick)

    def tick(self) -> None:
        """Give each widget its next number."""
        self.seconds += 1
        for at, digits in enumerate(self.query(Digits)):
            digits.update(f"{1000 * (at + 1) + self.seconds * 37 % 1000:,}")
        for at, line in enumerate(self.query(Sparkline)):
            self.histories[at].append(50 + 50 * math.sin(self.seconds / (3 + at)))
            line.data = list(self.histories[at])
        for at, words in enumerate(self.query("Vertical > Static")):
            words.update(f"quantity {at}   {self.seconds * (at + 1) * 13 % 997:>7,} of 1,000   {self.seconds:>6} s")
        self.query_one(ProgressBar).update(progress=self.seconds % 100)


if __name__ == "__main__":
    BareDashboard().run()
