"""Time and life, and what nobody knows."""

from tests.engine.failure_texts.text import CACHE, LOADED, READY, Text
from tests.engine.log_forms import WRAPPER

TEXTS: dict[str, Text] = {
    "ready-time": Text(
        "ready_timeout",
        ("TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow weight "
         "loading for large models. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S)",),
        "VLLM_ENGINE_READY_TIMEOUT_S to 1200", {"waited_s": 600},
    ),
    "stalled-worker": Text("stalled", ("TimeoutError: RPC call to execute_model timed out.",),
                           "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS=600"),
    "stalled-nccl": Text(
        "stalled",
        ("[rank0]:[E918 10:00:00.0 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: "
         "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.",),
        "NCCL_P2P_DISABLE=1", {"waited_s": 600}, "ALLREDUCE",
    ),
    "health-500": Text(
        "health_broken", (), "start it again", {"status": 500, "answers": 3}, "500",
        before=LOADED + CACHE + READY,
        after='INFO:     127.0.0.1:4 - "GET /health HTTP/1.1" 500 Internal Server Error\n' * 3,
    ),
    "interrupted": Text("interrupted", (), "again", after="KeyboardInterrupt\n"),
    "unknown": Text(
        "unknown", ("vllm.exceptions.OddError: the moon is full", ), "log", cause="OddError: the moon is full",
    ),
    "only-a-wrapper": Text("unknown", (WRAPPER,), "log", cause="does not say why"),
    "worker-wrapper": Text(
        "unknown", ("Exception: WorkerProc initialization failed due to an exception in a background process. See "
                    "stack trace for root cause.",), "log", cause="does not say why"
    ),
    "read-only": Text("unknown", ("OSError: [Errno 30] Read-only file system: '/root/.cache/vllm'",), "VLLM_CACHE_ROOT",
                      cause="/root/.cache/vllm"),
}  # fmt: skip
