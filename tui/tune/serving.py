"""Which candidate of a session is to be served, and the server by hand that it makes. No widgets here."""

from engine.text import clean
from tui.servers.server_form import HOST, Wish
from tui.tune.tune_view import TuneView, launch_name
from tui.tune.verdict_cells import verdict_words
from tuning.records import Candidate, Plan


def to_serve(view: TuneView, chosen: Candidate | None) -> Candidate | None:
    """The candidate under the cursor; with the cursor on the default the winner, where there is one."""
    judgement = view.result.judgement
    winner = judgement.winner if judgement is not None else None
    if chosen is not None and chosen.index != 0:
        return chosen
    found = next((one for one in view.candidates if one.index == winner), None)
    return found or chosen or next((one for one in view.candidates if one.index == 0), None)


def serve_question(view: TuneView, candidate: Candidate) -> str:
    """One question, with what was found of it."""
    name, judgement = launch_name(view, candidate.index), view.result.judgement
    if judgement is not None and judgement.winner == candidate.index:
        name = f"the winner {name}"
    elif candidate.index != 0:
        words = verdict_words(view, view.workloads[0], candidate.index) if view.workloads else ""
        name = f"{name} ({words})" if words else name
    return f"Serve {name} as a server by hand, on the first free port from 8000? It goes on until it is stopped."


def wish_of(plan: Plan, candidate: Candidate) -> Wish:
    """The server as the session started it, on a port of its own."""
    flags = {**plan.server, **candidate.settings}
    host = str(flags.pop("host", HOST))
    flags.pop("port", None)
    label = "default" if candidate.index == 0 else candidate.label
    name = clean(f"{plan.name}: {label}", 60)
    return Wish(name, plan.model, host, None, plan.served_name, flags, dict(plan.server_env))


def vllm_of(view: TuneView) -> str | None:
    """The vLLM that the session was measured with, as far as it is known."""
    kept = view.session.raw.get("installation")
    path = kept.get("path") if isinstance(kept, dict) else None
    if isinstance(path, str) and path:
        return path
    return view.plan.vllm if view.plan is not None else None
