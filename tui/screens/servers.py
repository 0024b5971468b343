"""Servers."""

from tui.screens.base import LlmtuneScreen


class ServersScreen(LlmtuneScreen):
    """Servers."""
