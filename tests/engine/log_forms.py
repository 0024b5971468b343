"""One failure as the log of each version of vLLM tells it: heads, prefixes, colours, JSON, cut and joined lines."""

import json
from collections.abc import Callable, Sequence

TRACE = (
    "Traceback (most recent call last):",
    '  File "/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py", line 1231, in run_engine_core',
    "    engine_core = EngineCoreProc(*args, **kwargs)",
)
WRAPPER = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
_TIME = "09-18 10:00:00"

Form = Callable[[Sequence[str]], str]  # the message's lines → a log


def _engine(head: str, error: Sequence[str], api: str) -> str:
    lines = [f"{head}{line}" for line in ("EngineCore failed to start.", *TRACE, *error)]
    return "\n".join([*lines, *(f"{api}{line}" for line in TRACE), f"{api}{WRAPPER}"]) + "\n"


def v0_10_0(error: Sequence[str]) -> str:
    return _engine(f"ERROR {_TIME} [core.py:632] ", error, "")


def v0_10_2(error: Sequence[str]) -> str:
    """Always coloured, also into a file."""
    prefix, api = "\x1b[1;36m(EngineCore_DP0 pid=90)\x1b[0;0m ", "\x1b[1;36m(APIServer pid=80)\x1b[0;0m "
    return _engine(f"{prefix}ERROR {_TIME} [core.py:708] ", error, api)


def v0_13_0(error: Sequence[str]) -> str:
    prefix = "\x1b[0;36m(EngineCore_DP0 pid=90)\x1b[0;0m "
    return _engine(f"{prefix}ERROR {_TIME} [core.py:866] ", error, "\x1b[0;36m(APIServer pid=80)\x1b[0;0m ")


def v0_25_1(error: Sequence[str]) -> str:
    return _engine(f"(EngineCore pid=90) ERROR {_TIME} [core.py:1231] ", error, "(APIServer pid=80) ")


def v0_33_0(error: Sequence[str]) -> str:
    """The prefix comes from the formatter: what multiprocessing prints has none, and says it a second time."""
    bare = "\n".join(["Process EngineCore:", *TRACE, *error]) + "\n"
    return _engine(f"(EngineCore pid=90) ERROR {_TIME} [core.py:1310] ", error, "") + bare


def nested(error: Sequence[str]) -> str:
    """Workers of a data-parallel group, as a public log has them."""
    head = "(APIServer pid=1) (EngineCore_DP6 pid=2454) (Worker_DP6_EP6 pid=2516) "
    return _engine(f"{head}ERROR {_TIME} [multiproc_executor.py:588] ", error, "(APIServer pid=1) ")


def rank(error: Sequence[str]) -> str:
    return _engine(f"(VllmWorker rank=0 pid=34322) ERROR {_TIME} [multiproc_executor.py:511] ", error, "")


def joined(error: Sequence[str]) -> str:
    """Lines of one message are joined with CR LF and repeat the head."""
    head = f"(EngineCore pid=90) ERROR {_TIME} [core.py:1231] "
    return "\r\n".join(f"{head}{line}" for line in ("EngineCore failed to start.", *TRACE, *error)) + f"\n{WRAPPER}\n"


def progress(error: Sequence[str]) -> str:
    """A progress bar before it, and glued to it."""
    bar = "Loading safetensors checkpoint shards: "
    states = "\r".join(f"{bar}{percent:3}% Completed | {percent // 25}/4 [00:01<00:01]" for percent in (0, 25, 50))
    return f"\r{states}\n(Worker_TP0 pid=34322)\n\r{bar} 50%|█████     | 2/4" + v0_25_1(error)


def json_lines(error: Sequence[str]) -> str:
    """`--logging-config.formatter json`, the traceback in `exc_info` as python-json-logger writes it."""
    record = {
        "asctime": "2026-09-18 10:00:00", "levelname": "ERROR", "name": "vllm.v1.engine.core",
        "processName": "EngineCore", "process": 90, "message": "EngineCore failed to start.",
        "exc_info": "\n".join([*TRACE, *error]),
    }  # fmt: skip
    return json.dumps({**record, "levelname": "INFO", "message": "x", "exc_info": None}) + "\n" + json.dumps(record)


def json_message(error: Sequence[str]) -> str:
    """The whole traceback within the message."""
    record = {"asctime": "x", "levelname": "ERROR", "name": "v", "message": "\n".join(["failed", *TRACE, *error])}
    return json.dumps(record) + "\n" + json.dumps({**record, "message": WRAPPER})


def truncated(error: Sequence[str]) -> str:
    """The head of the file is gone: it begins within a line of a traceback."""
    return v0_25_1(error)[len("(EngineCore pid=90) ERROR 09-18 10:00:00 [core.py:1231] EngineCore failed") :]


def container(error: Sequence[str]) -> str:
    """As `kubectl logs --timestamps` gives it."""
    return "".join(f"2026-09-18T10:00:00.123456789Z stderr F {line}\n" for line in v0_25_1(error).splitlines())


def prefixed(error: Sequence[str]) -> str:
    """VLLM_LOGGING_PREFIX before everything."""
    return "".join(f"[pod-7] {line}\n" if " ERROR " in line else f"{line}\n" for line in v0_10_0(error).splitlines())


FORMS: tuple[Form, ...] = (
    *(v0_10_0, v0_10_2, v0_13_0, v0_25_1, v0_33_0, nested, rank),
    *(joined, progress, json_lines, json_message, truncated, container, prefixed),
)
