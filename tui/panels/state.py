"""The first lines of the Monitor: which server, in what state, how it is looked at, what is wrong with it."""

from textwrap import wrap

from rich.cells import cell_len

from engine.text import clean
from tui.monitor.subject import NO_SERVER, Subject
from tui.panels.row import ERROR, MUTED, PLAIN, STRONG, Piece, Row, fit, last, outside, width_of

GAP: Piece = ("  ", PLAIN)
TROUBLE_LINES = 2
NAME_LEAST = 8  # cells of a server's name


def state_rows(subject: Subject, width: int) -> list[Row]:
    """One line where all has room on it, else two; below them what is wrong, or how far a start has come."""
    if subject.watched is None and subject.state is not NO_SERVER:
        return [fit((subject.state,), width)]
    if subject.watched is None:
        said = "1 Servers starts one; llmtune monitor --url URL watches one that is not ours."
        return [
            fit((subject.state, (".", MUTED)), width),
            *(fit(((line, PLAIN),), width) for line in _wrapped(said, width)),
        ]
    look = subject.look
    left = _spread([subject.state, *((word, PLAIN) for word in subject.words)])
    mode: Piece = ("‖ frozen", STRONG) if look.frozen else subject.mode
    right = ((f"every {look.interval_s:g} s  {last(look.window_s)}  ", MUTED), mode)
    others: Row = ((f"server {look.place + 1} of {look.places}: s next, o all", MUTED),) if look.places > 1 else ()
    whole = width_of(left) + width_of(others) + width_of(right) + 4
    if whole <= width:
        gap = width - width_of(left) - width_of(others) - width_of(right) - 2
        rows = [(*left, GAP, *others, (" " * gap, PLAIN), *right)]
    else:
        gap = width - width_of(others) - width_of(right)
        if gap < 1:
            others, gap = (), max(0, width - width_of(right))
        rows = [fit(_spread(_fitting(subject, width)), width), fit((*others, (" " * gap, PLAIN), *right), width)]
    if subject.trouble:
        lines = _wrapped(f"✗ {clean(subject.trouble, 300)}", width)[:TROUBLE_LINES]
        rows += [fit(((line, ERROR),), width) for line in lines]
    rows += [fit(((line, PLAIN),), width) for line in _flow(subject.stages, width)]
    return rows


def _fitting(subject: Subject, width: int) -> list[Piece]:
    """State and words without what has no room: the name gives way to the figures behind it, as far as it can still be
    told; then the words go, the last first. A figure that is cut would be another."""
    words = list(subject.words)
    over = width_of(_spread([subject.state, *((word, PLAIN) for word in words)])) - width
    if over > 0 and words:
        words[0] = outside(words[0], max(NAME_LEAST, cell_len(words[0]) - over)).rstrip()
    pieces = [subject.state, *((word, PLAIN) for word in words)]
    while len(pieces) > 1 and width_of(_spread(pieces)) > width:
        pieces.pop()
    return pieces


def _spread(pieces: list[Piece]) -> Row:
    out: list[Piece] = []
    for at, piece in enumerate(pieces):
        out += [GAP, piece] if at else [piece]
    return tuple(out)


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, max(8, width), break_on_hyphens=False)


def _flow(items: tuple[str, ...], width: int) -> list[str]:
    """Items side by side, none broken in two."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + 3 + len(item) <= width:
            lines[-1] += f"   {item}"
        else:
            lines.append(item)
    return lines
