"""The keeper of one server started by hand: `python -m engine.server_keeper DATA_DIR SERVER_ID`.

It starts the server, samples it once a second, answers `status`, `restart` and `stop`, and ends with the server.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.gpu import GpuReader
from engine.hand_servers import spec_from_json
from engine.keeper.hold import hold
from engine.keeper.journal import Journal
from engine.keeper.secrets import restore_secrets, take_secrets
from engine.process import identify
from engine.readiness import api_key
from engine.recorder import Recorder, gpu_used
from engine.records import EngineError, Installation, LaunchFailed, ServerSpec
from engine.supervise import Supervised
from store.database import open_reader, open_writer
from store.errors import StoreError
from store.location import database_file
from store.records import ServerRecord
from store.writer import Writer

READY_WITHIN_S = 3600.0
LOOK_EVERY_S = 0.5


class ServerKeeper:
    """Holds one server up until it is told to stop or the server ends."""

    def __init__(self, record: ServerRecord, writer: Writer, installation: Installation, spec: ServerSpec) -> None:
        assert record.id is not None
        self._server_id: int = record.id
        self._record = record
        self._installation = installation
        self._spec = spec
        self._journal = Journal(writer, server_id=record.id)
        self._gpu = GpuReader()
        self._wish: asyncio.Event = asyncio.Event()
        self._again = False
        self._stage = "starting"

    def commands(self) -> dict[str, Any]:
        return {"status": self._status, "stop": self._stop, "restart": self._restart}

    def terminate(self, reason: str) -> None:
        self._again = False
        self._wish.set()

    async def work(self) -> None:
        while True:
            self._wish.clear()
            self._again = False
            await self._one_life()
            if not self._again:
                return
            await self._journal.event("restarting, as asked")
            await self._journal.update(
                ServerRecord, self._server_id, state="starting", ready_at=None, stopped_at=None, exit_code=None,
                failure=None, failure_class=None, facts={}, descendants=[],
            )  # fmt: skip

    async def _one_life(self) -> None:
        log_path = Path(self._record.log_path)
        try:
            supervised = await Supervised.start(
                self._journal, self._server_id, self._installation, self._spec, log_path, self._record.marker
            )
        except EngineError as error:
            await self._journal.event(str(error), "error")
            return
        recorder = Recorder(
            supervised.server.base_url, self._gpu, self._server_id, self._journal.writer.insert_samples,
            api_key=api_key(self._spec, os.environ),
        )  # fmt: skip
        sampling = asyncio.create_task(recorder.run())
        serving = asyncio.create_task(self._serve(supervised))
        wish = asyncio.create_task(self._wish.wait())
        try:
            await asyncio.wait({serving, wish}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (serving, wish, sampling):
                task.cancel()
            await asyncio.gather(serving, wish, sampling, return_exceptions=True)
            await supervised.stop(read_gpu_used=gpu_used(self._gpu))
            await recorder.close()
            await self._journal.event("stopped")
        if serving.done() and not serving.cancelled() and (failure := serving.exception()) is not None:
            if not isinstance(failure, LaunchFailed):
                raise failure
            await self._journal.event(str(failure), "error")

    async def _serve(self, supervised: Supervised) -> None:
        """Until the server ends by itself. Raises LaunchFailed when it does."""

        def stage(name: str) -> None:
            self._stage = name

        await supervised.wait_ready(READY_WITHIN_S, stage)
        await self._journal.event("ready")
        await supervised.watch(LOOK_EVERY_S)

    async def _status(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"stage": self._stage, "blocked": self._journal.blocked}

    async def _stop(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.terminate("stop")
        return {"message": "stopping"}

    async def _restart(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._again = True
        self._wish.set()
        return {"message": "restarting"}


async def keep(data_dir: Path, server_id: int, secrets: Mapping[str, str]) -> None:
    database = database_file(data_dir)
    with open_reader(database) as reader:
        record = reader.server(server_id)
    installation = Installation(
        **{**record.raw["installation"], "command": tuple(record.raw["installation"]["command"])}
    )
    spec = spec_from_json(record.raw["spec"], restore_secrets(record.raw["spec"]["env"], secrets, os.environ))
    myself = identify(os.getpid())
    with open_writer(database) as writer:
        if myself is not None:
            writer.update(ServerRecord, server_id, keeper_pid=myself.pid, keeper_start_ticks=myself.start_ticks)
        keeper = ServerKeeper(record, writer, installation, spec)
        await hold(data_dir, "server", server_id, keeper.commands(), keeper.work, keeper.terminate)


def main() -> int:
    data_dir, server_id = Path(sys.argv[1]), int(sys.argv[2])
    try:
        asyncio.run(keep(data_dir, server_id, take_secrets(os.environ)))
    except (EngineError, StoreError) as error:
        print(error, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
