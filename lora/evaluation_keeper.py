"""The keeper of one evaluation: `python -m lora.evaluation_keeper DATA_DIR NUMBER`.

It starts the script that measures, or takes up one that an earlier keeper left, writes how far it is, and keeps what it
found. What was measured is in the script's file, so neither a killed keeper nor a killed script loses it.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.keeper.term import run_keeper
from engine.text import clean
from lora.evaluations.evaluating import LOG, SCRIPT, STOP_WITHIN_S, evaluation_folder, job_of, python_of
from lora.evaluations.evaluation import Measured, evaluation_record, sentence
from lora.process.outcome import Outcome, death
from lora.process.process_keeper import End, Line, ProcessKeeper, Said, keep_work
from lora.process.process_life import start_script
from store.evaluation_job import EvaluationJobRecord
from store.reader import Reader
from store.writer import Writer


class EvaluationKeeper(ProcessKeeper):
    """Carries one evaluation out."""

    kind = "evaluation"
    process = "evaluation"
    stop_within_s = STOP_WITHIN_S

    def __init__(self, data_dir: Path, job: EvaluationJobRecord, writer: Writer, reader: Reader) -> None:
        super().__init__(job, evaluation_folder(data_dir, job), LOG, writer)
        self._data_dir = data_dir
        self._job = job
        self._reader = reader
        self._measured = Measured()

    def start(self) -> "subprocess.Popen[bytes]":
        job = job_of(self._data_dir, self._job, self._reader.adapter(self._job.name), self._measured)
        return start_script(SCRIPT, self._folder, LOG, job, python_of(self._job), self._job.marker, os.environ)

    def take(self, lines: Sequence[Line]) -> Sequence[Said]:
        said: list[Said] = []
        for line in lines:
            self._measured.take(line)
            if line.get("kind") == "plan":
                said += self._of_plan()
        return said

    def fields(self) -> dict[str, Any]:
        now = self._measured
        return {
            "done": len(now.losses),
            "records": now.records,
            "seconds": now.seconds,
            "raw": {"plan": now.plan, "live": {"stage": now.stage, "seconds_left": now.seconds_left}},
        }

    def at(self) -> str:
        if self._measured.records is None:
            return "before its first record"
        return f"after {len(self._measured.losses)} of {self._measured.records} records"

    def begun(self) -> str:
        return f"resumed {self.at()}" if self._measured.losses else "started"

    def stopping(self) -> str:
        return "stopping; what is measured stays"

    def is_complete(self) -> bool:
        return self._measured.is_done

    def outcome(self, end: End) -> Outcome:
        if self._measured.is_done:
            return Outcome("done", "")
        if self._measured.why_failed is not None:
            return Outcome("failed", self._measured.why_failed)
        if end.stop_reason is not None:
            return Outcome("stopped", f"{end.stop_reason}, {self.at()}")
        why = death("the evaluation", self.at(), end.exit_code, end.short_of_memory, end.last_words)
        return Outcome("failed", f"{why}; `llmtune lora resume eval:{self._id}` goes on with it")

    async def result(self) -> Outcome:
        """Keep what was found, once: whoever had kept it may have died before the row said so."""
        kept = self._reader.evaluations(self._job.adapter_id)
        found = next((each for each in kept if each.id == self._id), None)
        if found is None:
            found = evaluation_record(self._job, self._measured)
            await self._journal.insert(found)
        return Outcome("done", sentence(found))

    def _of_plan(self) -> list[Said]:
        plan = self._measured.plan
        device, dtype = clean(str(plan.get("device")), 60), clean(str(plan.get("dtype")), 20)
        what = f"measures {plan.get('records')} records of {self._job.data}, {dtype} on the {device}"
        said: list[Said] = [(what, "info")]
        if self._measured.anew:
            said.append(("measures anew: the device or its libraries are not those of before", "warning"))
        if left_out := plan.get("left_out"):
            limit = self._job.settings.get("max_length")
            why = f"longer than {limit} tokens, or not shown by the chat template"
            said.append((f"{left_out} records are left out: {why}", "warning"))
        return said


async def keep(data_dir: Path, number: int) -> None:
    await keep_work(
        data_dir,
        "evaluation",
        number,
        lambda ours: EvaluationKeeper(data_dir, ours.reader.evaluation_job(number), ours.writer, ours.reader),
    )


if __name__ == "__main__":
    sys.exit(run_keeper(keep))
