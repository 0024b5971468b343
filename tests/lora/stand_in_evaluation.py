"""Takes the place of llmtune_evaluate.py in a test: the same job, the same lines, in a moment, and faults that a real
one does not show on demand. LLMTUNE_STAND_IN is JSON:

    {"pace": 0.05, "records": 6, "at": {"4": "kill" | "crash" | "nan" | "hang" | "garbage"}, "device": "processor",
     "once": "file that, where it is there, keeps faults away", "count": "file with the number of each record measured"}

The base's loss on a record is 8 nats, the adapter's 4 and a tenth of its number.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from lora.standalone.llmtune_telling import teller


def main() -> int:
    job = json.loads(Path(sys.argv[2]).read_text())
    script = json.loads(os.environ["LLMTUNE_STAND_IN"])
    once = script.get("once")
    faults = script.get("at", {}) if once is None or not Path(once).exists() else {}
    if once is not None:
        Path(once).touch()
    tell = teller(job["progress"])
    tell("start", pid=os.getpid())
    time.sleep(script.get("loading", 0.0))
    like = {"device": script.get("device", "processor"), "dtype": "float32", "template": "model", "versions": {}}
    kept = job["measured"]["like"] == like
    known = {what: job["measured"][what] if kept else [] for what in ("records", "answers")}
    records = script.get("records", 6)
    begun = time.monotonic() - job["seconds_before"]
    tell("plan", records=records, left_out=1, length=10 * records, kept=kept, **like, seconds=job["seconds_before"])
    for index in range(records):
        if index in known["records"]:
            continue
        time.sleep(script.get("pace", 0.05))
        fault = faults.get(str(index))
        if fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "crash":
            raise RuntimeError("the GPU has fallen off the bus")
        if fault == "hang":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
        if fault == "nan":
            tell("failed", why=f"the loss of the adapter on record {index + 1} is no number")
            return 1
        if fault == "garbage":
            with Path(job["progress"]).open("a") as file:
                file.write(
                    '{"kind": "record", "index": \n\x00\n[]\n{"kind": "record", "index": -1}\n{"kind": "plan2"}\n'
                )
        with Path(script.get("count", os.devnull)).open("a") as file:
            file.write(f"{index}\n")
        seconds = time.monotonic() - begun
        tell("record", index=index, length=10, tokens=4, base=8.0, adapter=4 + index / 10, seconds=seconds)
    for index, _ in enumerate(job["prompts"]):
        if index not in known["answers"]:
            tell("answer", index=index, base="a\x1b[2Jb", adapter="<<A>>", seconds=time.monotonic() - begun)
    tell("done", seconds=time.monotonic() - begun)
    return 0


if __name__ == "__main__":
    sys.exit(main())
