"""A screen from which a candidate of a session is started as a server by hand."""

from textual import work

from engine.records import EngineError
from store.errors import StoreError
from tui.screens.base import LlmtuneScreen
from tui.servers.server_form import Wish, start_wish
from tui.tune.serving import serve_question, to_serve, vllm_of, wish_of
from tui.tune.tune_view import LIVE_STATES, TuneView
from tui.widgets.confirm import Confirm
from tuning.records import Candidate


class ServingScreen(LlmtuneScreen):
    """Asks once, starts it, and shows it on the Servers screen."""

    def may_serve(self, view: TuneView | None) -> bool:
        """Not while the session goes on: its own server holds the GPU."""
        return (
            view is not None and view.plan is not None and not (view.keeper_alive and view.session.state in LIVE_STATES)
        )

    def ask_serve(self, view: TuneView | None, chosen: Candidate | None) -> None:
        """One question, then the server; with the cursor on the default it is of the winner."""
        candidate = to_serve(view, chosen) if view is not None else None
        if view is None or view.plan is None or candidate is None:
            return
        wish, vllm = wish_of(view.plan, candidate), vllm_of(view)

        def answered(yes: bool | None) -> None:
            if yes:
                self._serve(wish, vllm)

        self.app.push_screen(Confirm(serve_question(view, candidate), "serve it"), answered)

    @work(thread=True, group="serve", description="starts a server")
    def _serve(self, wish: Wish, vllm: str | None) -> None:
        try:
            server_id = start_wish(self.app.data_dir, vllm or self.app.vllm, wish)
        except (EngineError, StoreError, OSError) as error:
            self.later(self.say, f"it is not served: {error}", True)
        else:
            self.later(self.app.show_server, server_id)
