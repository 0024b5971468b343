"""What the Monitor shows in how much room: blocks join in the order of their importance while there are lines for them.

So a small terminal loses first the rules, then the events, then details, and last the four gauges and the state.
"""

from dataclasses import dataclass, replace

WIDE, TALL = 120, 34  # cells and lines of the Monitor's own room (a terminal of 120x36)
SIDE_W, NARROW_LEFT_W = 60, 80
LATENCIES_W = 40  # below it a latency and its percentiles have no room side by side
LISTED = 4  # of the height, the part that a list of all servers takes at most
BELOW_LINES = 9  # fewer are not worth a panel


@dataclass(frozen=True, slots=True)
class Places:
    """Lines of each block, 0 where it is left out. `side` is the width of the right column, 0 without one."""

    state: int = 0
    gauges: int = 0  # how many of them
    gauge_height: int = 1
    latencies: int = 0
    gpu: int = 0
    limit: int = 0
    events: int = 0
    rules: int = 0  # of three: above the latencies' end, above the limit, above the events
    overview: int = 0
    details: int = 0
    side: int = 0

    @property
    def lines(self) -> int:
        """Lines of the left column in all."""
        blocks = self.latencies + self.gpu + self.limit + self.events + self.rules + self.overview + self.details
        return self.state + self.gauges * self.gauge_height + blocks


# (block, lines it has then), in the order in which they join.
_ORDER: tuple[tuple[str, int], ...] = (
    ("state", 1),
    ("gauges", 4),
    ("state", 0),  # all of it
    ("latencies", 3),
    ("gpu", 2),
    ("gauges", 5),
    ("limit", 2),
    ("latencies", 5),
    ("gauges", 6),
    ("gpu", 3),
    ("events", 2),
    ("rules", 2),
    ("overview", 0),
    ("rules", 3),
    ("latencies", 8),
    ("details", BELOW_LINES),
    ("gpu", 0),
    ("limit", 0),
    ("events", 4),
    ("gauge_height", 2),
    ("events", 8),
    ("gauge_height", 3),
)


def places(width: int, height: int, state: int = 2, gpu: int = 3, overview: int = 0, limit: int = 2) -> Places:
    """The blocks for a room of `width` cells and `height` lines. `state` is how many lines that block has to say,
    `gpu` how many the GPUs would take, `overview` how many servers there are to list (0: no overview), `limit` how many
    what limits the server would take."""
    found = Places(side=side_width(width))
    said = {
        "state": state,
        "gpu": gpu,
        "limit": limit,
        "overview": min(overview + 1, height // LISTED) if overview else 0,
    }
    for block, lines in _ORDER:
        wanted = lines or said.get(block, 0)
        if block == "latencies" and width - found.side < LATENCIES_W:
            continue
        if block == "gpu":
            wanted = min(wanted, gpu)
        if (block == "overview" and height < TALL) or (block == "details" and found.side):
            continue
        tried = replace(found, **{block: max(wanted, getattr(found, block))})
        if tried.lines <= height:
            found = tried
        elif block == "gauges":  # of the four, as many as there is room for
            found = replace(found, gauges=max(found.gauges, min(wanted, height - found.lines + found.gauges)))
        elif block == "gpu" and not lines:  # of eight GPUs and their details, what there is room for
            found = replace(found, gpu=max(found.gpu, min(wanted, height - found.lines + found.gpu)))
    left = height - found.lines
    if found.details:
        return replace(found, details=found.details + left)
    return replace(found, events=found.events + left) if found.events else found


def side_width(width: int) -> int:
    """Cells of the right column, 0 where there is none."""
    return min(SIDE_W, width - NARROW_LEFT_W) if width >= WIDE else 0
