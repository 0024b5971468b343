"""The command line and the screens. The only room that knows Textual; `tui.chart` alone knows plotext."""
