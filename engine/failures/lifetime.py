"""Servers that were killed, hang, or take too long."""

from collections.abc import Mapping
from typing import Any

from engine.failures.rule import INT, Around, Numbers, rule

MORE_MEMORY = "Give the container more memory, or set MAX_JOBS=2 in its environment if kernels were being compiled."


def _twice(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    return {"twice": str(2 * int(numbers.get("waited_s", 600)))}  # 600 s is the default of vllm/envs.py


def _killed(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    return {"rss_gib": round(int(words["rss_kb"]) / 2**20, 2)} if "rss_kb" in words else {}


def _collective(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    return {"waited_s": round(numbers["ran_ms"] / 1000)}


RULES = (
    # The kernel's log, where somebody has joined it to the server's.
    rule(
        "host_oom",
        r"(?:Memory cgroup out of memory|Out of memory): Killed process \d{1,10} \((?P<process>[^)]{1,64})\)"
        r"(?:[^\n]{0,200}anon-rss:(?P<rss_kb>\d{1,12})kB)?|oom-kill:constraint=",
        "The kernel killed a process because the memory ran out[[ ({process}, which held {rss_gib} GiB)]].",
        MORE_MEMORY,
        derive=_killed,
    ),
    # With an exit code from 0.26.0 on; the dict of the wrapper is often empty.
    rule(
        "host_oom",
        r"[Ww]orker proc .{0,80} died unexpectedly \(exit code: -9\)|Failed core proc\(s\): \{[^}]{0,200}: -9\b"
        r"|died with exit code -9|exit ?code:? -9\b",
        "A process of the server was killed (signal 9), most likely because the machine's memory ran out.",
        MORE_MEMORY,
        ending=True,
    ),
    rule(
        "host_oom",
        r"(?m)^(?:\S{1,80}: line \d+: +\d+ )?Killed\b(?!:)|DefaultCPUAllocator: (?:can't allocate|not enough) memory"
        r"|\[Errno 12\] Cannot allocate memory|^MemoryError\b",
        "The machine's memory ran out.",
        MORE_MEMORY,
    ),
    rule(
        "ready_timeout",
        rf"Timed out waiting for engine core processes to start\.(?:[^\n]{{0,300}}?Waited (?P<waited_s>{INT})\s?s)?",
        "The engine was not ready in time[[ ({waited_s} s)]].",
        "Raise VLLM_ENGINE_READY_TIMEOUT_S to {twice}, or find what is slow in the log.",
        derive=_twice,
    ),
    rule(
        "stalled",
        rf"Watchdog caught collective operation timeout(?:[^\n]{{0,300}}?OpType=(?P<operation>\w{{1,40}}))?"
        rf"[^\n]{{0,300}}?ran for (?P<ran_ms>{INT}) milliseconds",
        "The GPUs waited {waited_s} s for each other[[ in {operation}]] and gave up.",
        "Set NCCL_P2P_DISABLE=1 in the server's environment if it happens again; look at the other workers' lines "
        "first.",
        derive=_collective,
    ),
    # VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS is 300 by default (vllm/envs.py).
    rule(
        "stalled",
        r"RPC call to (?P<call>\w{1,60}) timed out\.",
        "A worker did not answer {call} in time: it hangs, or is far slower than expected.",
        "Start it again; if the step is really slow, set VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS=600.",
    ),
)
