"""What every number of the Monitor's panels means, for `?`."""

from typing import Final

from tui.legend import Number

LATENCIES: Final = (
    Number("p50 p90 p99", "half, 90 % and 99 % of what ended in the window took at most this long"),
    Number("<10 ms", "below the first bound of the server's histogram, which says no more; > above its last"),
    Number("TTFT", "time to first token: from a request's arrival until its first token"),
    Number("ITL", "inter-token latency: between two outputs of a request"),
    Number("TPOT", "time per output token after the first, of whole requests"),
    Number("queue", "a request's time until it was first scheduled"),
    Number("prefill", "from then until its first token"),
    Number("decode", "from its first token until its last"),
    Number("end to end", "from a request's arrival until its last token"),
    Number("mean, count", "exact mean of the window, and how many it is of"),
)

GPUS: Final = (
    Number("GPU n", "memory in use by all processes, in GiB (2^30 bytes), of what the GPU has"),
    Number("█ ▒ ░ │", "memory in use, kept by the driver, free; where the server's budget ends"),
    Number("budget", "gpu-memory-utilization of what the driver leaves: what vLLM plans with"),
    Number("its model", "share of the last sampling period in which a kernel ran: 100 % is not full speed"),
    Number("W, MHz, °C", "power of its limit; clock of the streaming multiprocessors; ! near where heat slows it"),
    Number("power", "with its history up to its limit; energy by the GPU's own counter over the window"),
    Number("! power cap", "what holds the clock down now; +1: one more reason"),
    Number("J/token", "energy of the server's GPUs for each token generated in the window"),
    Number("PCIe", "the link now, of what it can be; an idle one may fall back; in and out as of some seconds ago"),
    Number("ECC", "memory errors since the driver was loaded; corrected ones do no harm"),
    Number("on it", "processes by memory; ours by what was recorded, never by name"),
    Number("not visible from here", "a pid of the host's, or of another container"),
)

LIMIT: Final = (
    Number("▶ ● ○ ?", "what limits the server over the last minute: a setting, the GPU, its clients; or unknown"),
)

EVENTS: Final = (
    Number("x12 since …", "the same happened so often, one after the other; the clock before it is the last time"),
)

DETAILS: Final = (
    Number("KV tokens", "tokens in the KV cache, of those that it can hold; of several engines KV fullest"),
    Number(
        "prefix hits",
        "share of the tokens looked up in the prefix cache that were there; how many a second",
    ),
    Number("external", "the same of the cache of a KV connector, shared between servers"),
    Number("multi-modal", "the same of the cache of images and the like, in items"),
    Number("preempted", "requests thrown out of the KV cache, to be computed anew: in all, and lately"),
    Number("waiting", "by reason: no room (capacity), put off by the scheduler (deferred)"),
    Number("ended /s", "requests that ended, by reason: a stop word, their length, the client left, an error"),
    Number("refused/s", "requests that were not let in, by the limit that they met"),
    Number("prompt %", "where prompt tokens came from: computed, cached here, fetched from elsewhere (external)"),
    Number("sleep", "whether its memory is given up for now: the weights offloaded, or discarded"),
    Number("at once", "requests being computed, mean and most of the window, of max-num-seqs"),
    Number(
        "prompt, answer",
        "tokens of the requests that ended, ≤ a bound of the server's histogram; mean exact",
    ),
    Number(
        "a step",
        "tokens that one step of the engine computes, prompt and answer together; steps: how many a second",
    ),
    Number("a request", "the mean one that ended: seconds end to end, tokens in and out, share of the energy"),
    Number(
        "engines",
        "data-parallel ranks; ▲ is the fullest; uneven: one has 1.25 times the mean's requests, one-sided: 2",
    ),
    Number("adapters", "LoRA adapters of running and of waiting requests, of max-loras"),
    Number("accepted", "draft tokens that the model agreed to, of those drafted; by position in the draft"),
    Number("a step makes", "tokens of one speculative step: one, and the accepted ones"),
    Number("0 to …", "what a full column of a history stands for; a gap is a time without a value"),
)
