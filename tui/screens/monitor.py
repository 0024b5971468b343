"""Monitor."""

from tui.screens.base import LlmtuneScreen


class MonitorScreen(LlmtuneScreen):
    """Monitor."""
