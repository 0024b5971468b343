"""Takes the place of llmtune_trainer.py in a test: the same job, the same lines, the same checkpoints, in a moment, and
faults that a real one does not show on demand. LLMTUNE_STAND_IN is JSON:

    {"steps": 8, "pace": 0.05, "at": {"4": "kill" | "crash" | "sick" | "silent" | "hang" | "garbage" | "nan" |
                                               "half" (killed while it writes a checkpoint) | "full" (no line more)},
     "rank": 4 (of its adapter), "deaf": true (heeds no SIGTERM),
     "once": "file that, where it is there, keeps faults away"}

The loss of step n is 1/n, whatever it was gone on from.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from lora.standalone.llmtune_telling import DISK_FULL
from tests.lora.made_adapters import tiny_factors, write_adapter

MARK = "llmtune_whole.json"


def main() -> int:
    job = json.loads(Path(sys.argv[2]).read_text())
    script = json.loads(os.environ["LLMTUNE_STAND_IN"])
    output, once = Path(job["output"]), script.get("once")
    faults = script.get("at", {}) if once is None or not Path(once).exists() else {}
    if once is not None:
        Path(once).touch()
    asked = []
    signal.signal(signal.SIGTERM, signal.SIG_IGN if script.get("deaf") else lambda *_: asked.append(1))
    file = os.fdopen(os.open(job["progress"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8")

    def tell(kind: str, **what: object) -> None:
        file.write(json.dumps({"kind": kind, **what}) + "\n")
        file.flush()

    def save(step: int, half: bool = False) -> None:
        folder = output / f"checkpoint-{step}"
        folder.mkdir(exist_ok=True)
        (folder / "optimizer.pt").write_bytes(b"moments")
        if half:
            os.kill(os.getpid(), signal.SIGKILL)
        (folder / MARK).write_text("{}")
        tell("checkpoint", step=step, path=str(folder))

    tell("start", pid=os.getpid())
    whole = [int(path.parent.name.split("-")[1]) for path in output.glob(f"checkpoint-*/{MARK}")]
    begin, steps = max(whole, default=0), script.get("steps", 8)
    tell("plan", step=begin, steps=steps, examples=3, trainable=10, total=1000, device="processor", dtype="float32")
    if not begin:
        tell("eval", step=0, eval_loss=2.0)
    for step in range(begin + 1, steps + 1):
        time.sleep(script.get("pace", 0.05))
        fault = faults.get(str(step))
        if fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "crash":
            raise RuntimeError("the GPU has fallen off the bus")
        if fault == "silent":
            return 0
        if fault == "full":
            return DISK_FULL
        if fault == "hang":
            time.sleep(600)
        if fault == "garbage":
            file.write('{"kind": "step", "step": \n\x00\n[]\n"x"\n{"kind": "step", "step": "many", "loss": []}\n')
        if fault == "sick":
            tell("failed", why=f"the loss is not a number at step {step}: lower --learning-rate", **{"class": "sick"})
            return 1
        tell(
            "step", step=step, steps=steps, loss=None if fault == "nan" else 1 / step, seconds=float(step), tokens=step
        )
        if step % 2 == 0 or asked or fault == "half":
            save(step, half=fault == "half")
        if asked:
            tell("stopped", step=step)
            return 0
    tell("eval", step=steps, eval_loss=0.5)
    rank = script.get("rank", 4)
    write_adapter(output / "adapter", tiny_factors(rank), r=rank)
    tell("done", step=steps, steps=steps, adapter=str(output / "adapter"), loss=0.125, seconds=float(steps))
    return 0


if __name__ == "__main__":
    sys.exit(main())
