"""A launch that fails leaves in its row why, the numbers of its log, and what would start instead."""

from pathlib import Path

import pytest

from engine.gpus.gpu import GpuReader
from engine.keeper.journal import Journal
from engine.records import LaunchFailed
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.records import SessionRecord
from tests.engine.fake_nvml import FakeNvml
from tests.engine.server_stand_in import stand_in
from tuning.records import Candidate, Cell, Plan
from tuning.sweeping.controls import Controls
from tuning.sweeping.launching import Launching


async def test_the_row_of_a_failed_launch_holds_an_offer(tmp_path: Path) -> None:
    installation = stand_in(tmp_path)
    plan = Plan("p", str(tmp_path / "model"), (), server_env={"MODE": "gentle-dies"})

    async def gate() -> None: ...

    async def bench() -> None: ...

    with open_writer(tmp_path / "db") as writer, open_reader(tmp_path / "db") as reader:
        session = writer.insert(SessionRecord("s", "running", "", {}, [], 1, utc_now()))
        launching = Launching(
            session, plan, installation, Journal(writer, session_id=session), Controls(), bench,  # type: ignore[arg-type]
            GpuReader(FakeNvml()), tmp_path, gate,
        )  # fmt: skip
        candidate = Candidate(1, "long", {"max-model-len": 999999})
        with pytest.raises(LaunchFailed):
            await launching.launch(Cell(0, 0, 1, 0), candidate, 1, [])
        (launch,) = reader.launches(session)
    assert (launch.state, launch.failure_class) == ("failed", "model_len_invalid")
    assert launch.raw == {
        "numbers": {"max_model_len": 999999, "longest_model_len": 8192},
        "offer": {"max-model-len": 8192},
    }
    assert "--max-model-len to 8192" in (launch.failure or "")
