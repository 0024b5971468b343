"""What every number on the Monitor means, for `?`: its own and those of its panels."""

from tui.legend import Number
from tui.panels.legend import DETAILS, EVENTS, GPUS, LATENCIES, LIMIT

LEGEND = (
    Number("● ◌ ◍ ✗", "ready or answers; asked, asleep; no token for some seconds; silent or stalled, for so long"),
    Number("KV cache", "share of the KV cache's blocks in use, of the fullest engine; its size in tokens"),
    Number("running", "requests being computed now; the most that max-num-seqs lets in"),
    Number("waiting", "requests in the queue: for room (capacity), or put off by the scheduler (deferred)"),
    Number("preempted", "requests thrown out of the KV cache in all, and how many a minute over the window"),
    Number("prefix hits", "share of prompt tokens found in the prefix cache, over the window"),
    Number("output", "tokens generated a second, mean of 5 s"),
    Number("prompt", "prompt tokens processed a second, cached ones too, mean of 5 s"),
    Number("requests", "requests finished a second, mean of 5 s; finished: in all since the server began"),
    *LATENCIES,
    *GPUS,
    *LIMIT,
    *EVENTS,
    *DETAILS,
    Number("clocks", "of the multiprocessors (SM) and of the memory now, of the most they can run at"),
    Number("tok/s", "of one engine: tokens generated a second"),
    Number("limited by", "in the list of all servers, beside state, name, address and load: what, in a word"),
    Number("every, last", "how often is looked, and over how long histories and windowed figures reach back"),
    Number("–", "cannot be read now; never the same as 0"),
)
