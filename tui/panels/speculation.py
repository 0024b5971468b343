"""Speculative decoding over a window: how much of what is drafted is accepted, and up to which position."""

from engine.samples.window import Window
from tui.panels.reading import a_second, growths, last_answer, numbers, share_perc
from tui.panels.row import ACCENT, MUTED, PLAIN, Row, brief, decimals_of, figure, fit, named, title
from tui.panels.spark import bar

MOST_POSITIONS = 8


def speculation_rows(window: Window, answers: bool, width: int) -> list[Row]:
    """The panel, `width` cells wide; no rows where the server does not speculate.

    As vLLM's own log has it: acceptance is accepted tokens of drafted ones; the mean length of a step is one token and
    those accepted of its draft.
    """
    if "spec_drafts" not in numbers(last_answer(window), "counters"):
        return []
    drafts, drafted, accepted = (
        window.total("counters", name) if answers else None
        for name in ("spec_drafts", "spec_draft_tokens", "spec_accepted_tokens")
    )
    length = 1 + accepted / drafts if accepted is not None and drafts else None
    a_s = a_second(drafted, window)
    rows = [
        title("speculation", width, window.seconds),
        named("accepted", figure(share_perc(accepted, drafted), 11, 1, " %"), f"of {brief(a_s, decimals_of(a_s))}/s"),
        named("a step makes", figure(length, 11, 2), "tokens"),
    ]
    positions = growths(window, "spec_accepted_by_position") if answers else {}
    known = sorted(numbers(last_answer(window), "spec_accepted_by_position"), key=_position)[:MOST_POSITIONS]
    for name in known:
        share = share_perc(positions.get(name), drafts)
        rows.append(
            (
                (f"position {_position(name) + 1:<4}", MUTED),
                (figure(share, 11, 1, " %"), PLAIN),
                (f"  {bar(share, 100.0, max(4, width - 28))}", ACCENT),
            )
        )
    return [fit(row, width) for row in rows]


def _position(name: str) -> int:
    """vLLM counts positions from 0."""
    return int(name) if name.isascii() and name.isdigit() and len(name) < 4 else 998
