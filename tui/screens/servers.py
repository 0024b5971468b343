"""Servers: which there are, how the chosen one started, what its log says; start, stop, restart."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import DataTable, Static

from engine.records import EngineError
from engine.text import clean
from store.errors import StoreError
from store.records import ACTIVE_SERVER_STATES, ServerRecord
from tui.legend import Number
from tui.palette import Command
from tui.screens.base import LlmtuneScreen
from tui.screens.new_server import NewServer
from tui.screens.run_charts import open_history
from tui.screens.server_details import ServerDetails
from tui.servers.server_text import checklist, command_line, detail_lines, details, flow
from tui.servers.servers_source import ServersSnapshot, ServersSource
from tui.state_words import state_words
from tui.widgets.confirm import Confirm
from tui.widgets.copy import CopyPanel
from tui.widgets.log_view import LogView
from tui.widgets.server_table import ServerTable

if TYPE_CHECKING:
    from store.reader import Reader


class ServersScreen(LlmtuneScreen):
    """The list above; below it the start of the chosen server as a checklist, why it failed, and its log."""

    DEFAULT_CSS = """
    #chosen { height: 1; padding: 0 1; background: $panel; }
    #start { height: auto; max-height: 4; padding: 0 1; }
    #failure { height: auto; max-height: 4; padding: 0 1; display: none; color: $error; }
    #failure.-said { display: block; }
    #below { height: 1fr; }
    #side { display: none; width: 52; padding: 0 1; border-left: solid $panel; height: 1fr; overflow-y: auto; }
    #no-servers { height: 1fr; padding: 1 2; display: none; color: $text-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "new", "new", tooltip="start a server"),
        Binding("x", "stop", "stop", tooltip="stop the chosen server (asks once)"),
        Binding("r", "restart", "restart", tooltip="restart it (asks once), or start an ended one again"),
        Binding("enter", "details", "details", tooltip="all that is known of the chosen server"),
        Binding("m", "monitor", "monitor", tooltip="show it in the Monitor"),
        Binding("h", "history", "charts", tooltip="its whole life as charts"),
        Binding("l", "log", "log", tooltip="into the log (arrows, page up and down) and back to the list"),
        Binding("y", "copy", "copy", tooltip="copy its command line, which is shown too"),
    ]

    LEGEND = (
        Number("KV tokens", "tokens that fit into the KV cache, as the log told at the start"),
        Number("GPU", "CUDA_VISIBLE_DEVICES that the server was given; all; or cpu"),
        Number("since", "how long it has been ready or starting; of an ended one, when it ended"),
        Number("weights", "memory that the model takes, in GiB (2^30 bytes), and seconds to load it"),
        Number("compile", "seconds of torch.compile; – where it was left out (enforce-eager)"),
        Number("KV cache", "as KV tokens; vLLM fits it into what gpu-memory-utilization leaves"),
        Number("graphs", "seconds to capture CUDA graphs; – where there are none"),
        Number("ready", "time from the start until one real completion was answered"),
        Number("log", "the end of the server's log, without the lines of our own looks at /metrics"),
    )

    def __init__(self) -> None:
        super().__init__()
        self._snapshot = ServersSnapshot()
        self._chosen: int | None = None  # read by the poller's thread
        self._awaited: int | None = None  # was just started, and is not listed yet
        self._source = ServersSource()  # of the poller's thread alone

    def compose_body(self) -> ComposeResult:
        yield Static(
            "No server yet.\n\nn  starts one: a model, or a vllm serve line that you paste\n"
            "3  tunes: it starts the servers that it needs by itself",
            id="no-servers",
            markup=False,
        )
        yield ServerTable(id="servers")
        yield Static(id="chosen", markup=False)
        yield Static(id="start", markup=False)
        yield Static(id="failure", markup=False)
        with Horizontal(id="below"):
            yield LogView(id="log")
            with Vertical(id="side"):
                yield Static(id="details", markup=False)

    def on_mount(self) -> None:
        self.query_one(ServerTable).focus()

    # feeding

    def refresh_from_store(self, reader: "Reader") -> ServersSnapshot:
        return self._source.read(reader, self._chosen)

    def show(self, snapshot: ServersSnapshot) -> None:
        before = self._server()
        self._snapshot = snapshot
        now = self._server()
        if now is None or before is None or (now.id, now.state) != (before.id, before.state):
            self.refresh_bindings()
        self.set_class(not snapshot.servers, "-empty")
        table = self.query_one(ServerTable)
        table.update_servers(snapshot.servers, self._now(), snapshot.chosen)
        if self._awaited is not None and table.choose(self._awaited):
            self._awaited = None
        self.redraw()
        if snapshot.log is not None:
            self.query_one(LogView).follow(snapshot.log)

    def redraw(self) -> None:
        """All that is said of the chosen server."""
        server = self._server()
        if server is None:
            return
        now, width = self._now(), self.size.width - 2
        title = Content.assemble(
            state_words(server.state), "  ", (clean(server.name, 40), "bold"), f"  {clean(server.model, 200)}"
        )
        self.query_one("#chosen", Static).update(title.truncate(width, ellipsis=True))
        self.query_one("#start", Static).update(flow(checklist(server, now), width))
        failure = self.query_one("#failure", Static)
        failure.set_class(bool(server.failure), "-said")
        if server.failure:
            failure.update(f"✗ {clean(server.failure, 300)}")
        self.query_one("#details", Static).update(detail_lines(details(server, now), 48))

    def _server(self) -> ServerRecord | None:
        """The chosen server as it was read last."""
        return next((server for server in self._snapshot.servers if server.id == self._snapshot.chosen), None)

    def _now(self) -> datetime:
        return self.app.now().astimezone(UTC)

    # keys

    @on(DataTable.RowHighlighted)
    def choose(self) -> None:
        """Another server lies under the cursor: read its log."""
        server = self.query_one(ServerTable).chosen  # not the event's: rows may have been filled anew since
        if server is not None and server.id != self._chosen and self._awaited is None:
            self._chosen = server.id
            self.app.ask()

    @on(DataTable.RowSelected)
    def open(self) -> None:
        """Enter, or a click on the chosen row."""
        self.action_details()

    def action_new(self, line: str = "", name: str = "") -> None:
        """The form that starts a server."""
        self.app.push_screen(NewServer(line, name), self.choose_started)

    def choose_started(self, server_id: int | None) -> None:
        """Put the cursor on a server that was just started; None where none was."""
        if server_id is not None:
            self._chosen = server_id
            # The list may hold it already, or come anew with the cursor elsewhere before it does.
            self._awaited = None if self.query_one(ServerTable).choose(server_id) else server_id
            self.say(f"server {server_id} is starting; its keeper goes on without this screen")
            self.app.ask()

    def action_stop(self) -> None:
        """Stop the chosen server after one question."""
        server = self._commandable("stop")
        if server is None:
            return
        question = f"Stop {server.name} on port {server.port}? Requests that it is answering are lost."
        self._ask_then(question, "stop", server)

    def action_restart(self) -> None:
        """Restart the chosen server after one question; of one that ended, fill the form."""
        server = self._commandable("restart")
        if server is None:
            return
        if server.state not in ACTIVE_SERVER_STATES:
            self.action_new(command_line(server), server.name)
            return
        question = f"Restart {server.name} on port {server.port}? Requests that it is answering are lost."
        self._ask_then(question, "restart", server)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that would do something to the chosen server."""
        if action not in ("stop", "restart", "details", "monitor", "history", "log", "copy"):
            return True
        server = self._server()
        return server is not None and (action != "stop" or server.state in ACTIVE_SERVER_STATES)

    def _commandable(self, deed: str) -> ServerRecord | None:
        """The chosen server if it is one that takes commands, else a line that says why not."""
        server = self._server()
        if server is None:
            self.say("no server is chosen; n starts one")
        elif server.session_id is not None:
            self.say(
                f"server {server.id} belongs to session {server.session_id}: {deed} the session on 3 Tune", error=True
            )
            return None
        return server

    def _ask_then(self, question: str, command: str, server: ServerRecord) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self._command(server, command)

        self.app.push_screen(Confirm(question, f"{command} it"), answered)

    @work(thread=True, group="command", description="asks a server's keeper")
    def _command(self, server: ServerRecord, command: str) -> None:
        from engine.hand_servers import stop_server
        from engine.keeper.client import call

        assert server.id is not None
        try:
            if command == "stop":
                message = stop_server(self.app.data_dir, server.id)
            else:
                message = str(call(self.app.data_dir, "server", server.id, command).get("message", command))
        except (EngineError, StoreError, OSError) as error:
            self.later(self.say, str(error), True)
        else:
            self.later(self.say, f"{server.name}: {message}")

    def action_details(self) -> None:
        """All that is known of the chosen server."""
        server = self._server()
        if server is not None:
            self.app.push_screen(ServerDetails(server, self._snapshot.events, self._now()))

    def action_monitor(self) -> None:
        """Show the chosen server in the Monitor."""
        server = self._server()
        if server is not None and server.id is not None:
            self.app.monitor_server(server.id)

    def action_history(self) -> None:
        """The chosen server's whole life as charts."""
        server = self._server()
        if server is not None and server.id is not None:
            open_history(self.app, server.id)

    def action_log(self) -> None:
        """From the list into the log and back."""
        log = self.query_one(LogView)
        (self.query_one(ServerTable) if log.has_focus else log).focus()

    def action_copy(self) -> None:
        """The command line of the chosen server."""
        server = self._server()
        line = command_line(server) if server is not None else ""
        if line:
            self.app.push_screen(CopyPanel(line, "Command line"))
        else:
            self.say("there is no command line to copy yet")

    def commands(self) -> tuple[Command, ...]:
        server = self._server()
        commands = [Command("Start a server", "From a model or a vllm serve line", self.action_new)]
        if server is None:
            return tuple(commands)
        commands += [
            Command("Details of the server", "All that is known of it", self.action_details),
            Command("Copy the command line", "It is shown too", self.action_copy),
            Command("Monitor the server", "Its memory, scheduler and GPU", self.action_monitor),
        ]
        if server.session_id is None and server.state in ACTIVE_SERVER_STATES:
            commands += [
                Command("Stop the server", "Asks once", self.action_stop),
                Command("Restart the server", "Asks once", self.action_restart),
            ]
        elif server.session_id is None:
            commands.append(Command("Start the server again", "With the same command line", self.action_restart))
        return tuple(commands)
