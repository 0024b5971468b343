"""The Monitor's keys."""

from textual.binding import Binding, BindingType

KEYS: list[BindingType] = [
    Binding(
        "plus,equals_sign",
        "interval(1)",
        "interval",
        key_display="+ -",
        tooltip="look less often, to 10 s; -: more often, to 0.25 s",
    ),
    Binding("minus", "interval(-1)", "", show=False),
    Binding("space", "freeze", "freeze", tooltip="hold the screen still; sampling goes on"),
    Binding("w", "window", "window", tooltip="over how long: 30 s, 1, 5 or 15 min"),
    Binding("s,down", "server(1)", "server", show=False, key_display="s", tooltip="the next server; arrows too"),
    Binding("up", "server(-1)", "previous", show=False, tooltip="the server before"),
    Binding("escape,enter", "back", "back", show=False),
    Binding("o", "overview", "all", show=False, tooltip="all servers, a line each"),
    Binding("g,right", "gpu(1)", "GPU", key_display="g", tooltip="the next GPU; arrows too"),
    Binding("left", "gpu(-1)", "", show=False),
    Binding("e", "events", "events", tooltip="all that happened to the server"),
    Binding("h", "history", "charts", tooltip="the whole life of a server of ours, as charts"),
    Binding("y", "copy", "copy", tooltip="copy the address, or what is shown as JSON"),
]
