"""What the program says as it leaves the terminal to what runs on."""

from collections.abc import Callable

from engine.text import clean
from tui.messages import GoingOn


def parting_words(going_on: GoingOn, is_kept: Callable[[str, int], bool]) -> str:
    """What keeps running after the screen is gone, and how to come back to it; one line for each.

    `is_kept(kind, id)` tells whether a keeper is alive: a session without one stands still until it is resumed.
    """
    lines = []
    for session in going_on.sessions:
        assert session.id is not None
        if session.state == "paused":
            lines.append(f"session {session.id} is paused: llmtune resume {session.id}")
        elif is_kept("session", session.id):
            lines.append(f"session {session.id} goes on: llmtune attach {session.id}")
        else:
            lines.append(f"session {session.id} stands still, its keeper is gone: llmtune resume {session.id}")
    for server in going_on.servers:
        name = clean(server.name, 60)
        lines.append(f"server {name} goes on at {server.url}: llmtune server stop {name}")
    for training in going_on.trainings:
        assert training.id is not None
        if is_kept("training", training.id):
            lines.append(f"training {training.id} goes on: llmtune lora attach {training.id}")
        else:
            lines.append(f"training {training.id} has lost its keeper: llmtune lora resume {training.id}")
    for evaluation in going_on.evaluations:
        assert evaluation.id is not None
        what = f"evaluation {evaluation.id} of {clean(evaluation.name, 80)}"
        if is_kept("evaluation", evaluation.id):
            lines.append(f"{what} goes on: llmtune lora attach eval:{evaluation.id}")
        else:
            lines.append(f"{what} has lost its keeper: llmtune lora resume eval:{evaluation.id}")
    return "\n".join(lines)
