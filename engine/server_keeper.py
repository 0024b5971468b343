"""The keeper of one server started by hand: `python -m engine.server_keeper DATA_DIR SERVER_ID`.

It starts the server, samples it once a second, answers `status`, `restart`, `stop` and `flags` (what the next start is
to be given, as of adapters that were loaded meanwhile), and ends with the server.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from engine.gpu_holders import visible_gpus
from engine.gpus.gpu import GpuReader
from engine.gpus.visible_gpus import gpus_used
from engine.hand_servers import spec_from_json
from engine.keeper.hold import hold
from engine.keeper.journal import Journal
from engine.keeper.port_lease import holding_port
from engine.keeper.secrets import redacted_spec, take_spec
from engine.keeper.term import run_keeper, term, whose_term
from engine.launch.readiness import api_key
from engine.launch.signed_adapters import SignedAdapters, signed_adapters
from engine.leftovers import end_abandoned
from engine.records import EngineError, Installation, LaunchFailed, ServerSpec
from engine.samples.recorder import Recorder, gpu_used
from engine.stop import ReadGpuUsed
from engine.supervise import Supervised
from store.records import ServerRecord

READY_WITHIN_S = 3600.0
LOOK_EVERY_S = 0.5
ClearUp = Callable[[ReadGpuUsed], Awaitable[None]]


async def _nothing(read_gpu_used: ReadGpuUsed) -> None: ...


class ServerKeeper:
    """Holds one server up until it is told to end or the server ends by itself. A restart is another life of it.

    `clear_up` is awaited before the first start: it ends what other keepers left, with what reads the GPU memory.
    `adapters` tells which versions are registered at a restart."""

    def __init__(
        self,
        record: ServerRecord,
        journal: Journal,
        installation: Installation,
        spec: ServerSpec,
        clear_up: ClearUp = _nothing,
        adapters: Callable[[], SignedAdapters] = SignedAdapters,
    ) -> None:
        assert record.id is not None
        self._server_id: int = record.id
        self._record = record
        self._journal = journal
        self._installation = installation
        self._spec = spec
        self._clear_up = clear_up
        self._adapters = adapters
        self._environ = {**os.environ, **spec.env}
        self._gpu = GpuReader()
        self._cut = asyncio.Event()  # the life in hand is to end
        self._ending = False
        self._again = False
        self._stage = "starting"

    def commands(self) -> dict[str, Any]:
        return {"status": self._status, "stop": self._stop, "restart": self._restart, "flags": self._flags}

    def terminate(self, reason: str) -> None:
        self._ending = True
        self._cut.set()
        self._journal.end_within()

    async def work(self) -> None:
        try:
            with holding_port(self._spec.port):
                await self._clear_up(gpu_used(self._gpu, self._environ))
                while True:
                    await self._one_life()
                    if self._ending or not self._again:
                        return
                    await self._renew()
        finally:
            self._gpu.close()

    async def _renew(self) -> None:
        self._again = False
        self._cut.clear()
        self._stage = "starting"
        await self._journal.event("restarting, as asked")
        await self._journal.update(
            ServerRecord, self._server_id, state="starting", ready_at=None, stopped_at=None, exit_code=None,
            failure=None, failure_class=None, facts={}, descendants=[],
        )  # fmt: skip

    async def _one_life(self) -> None:
        try:
            supervised = await Supervised.start(
                self._journal, self._server_id, self._installation, self._spec, Path(self._record.log_path),
                self._record.marker, visible_gpus(self._gpu, self._environ),
            )  # fmt: skip
        except LaunchFailed as error:
            await self._journal.event(str(error), "error")
            return
        try:
            async with Recorder(
                self._journal, self._server_id, supervised.server.base_url, self._gpu, self._environ,
                api_key(self._spec, os.environ), uses=gpus_used(self._spec.flags, self._spec.extra_args),
            ):  # fmt: skip
                await self._serve(supervised)
            await self._journal.event("stopping")
        except LaunchFailed as error:
            await self._journal.event(str(error), "error")
        finally:
            await supervised.stop(read_gpu_used=gpu_used(self._gpu, self._environ))

    async def _serve(self, supervised: Supervised) -> None:
        """Until this life is cut short. Raises LaunchFailed where the server ends by itself."""
        serving = asyncio.create_task(self._up(supervised))
        cut = asyncio.create_task(self._cut.wait())
        try:
            await asyncio.wait({serving, cut}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            serving.cancel()
            cut.cancel()
            await asyncio.wait({serving, cut})
        if not serving.cancelled():
            serving.result()

    async def _up(self, supervised: Supervised) -> None:
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
        if self._ending:
            raise EngineError("the server is being stopped: start it anew when it has ended")
        # before it ends: what runs has the right files in memory
        await asyncio.to_thread(self._adapters().require_unchanged, self._spec.flags)
        self._again = True
        self._cut.set()
        return {"message": "restarting"}

    async def _flags(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Take over `flags` of `vllm serve` into what a restart starts, because of `event`, a line of history."""
        changed = request.get("flags")
        if not isinstance(changed, dict) or not isinstance(request.get("event"), str):
            raise EngineError("flags wants an object and the line that says why")
        self._spec = replace(self._spec, flags={**self._spec.flags, **changed})
        self._record = replace(self._record, raw={**self._record.raw, "spec": redacted_spec(self._spec)})
        await self._journal.update(ServerRecord, self._server_id, raw=self._record.raw)
        await self._journal.event(request["event"])
        return {}


async def keep(data_dir: Path, server_id: int, secret_spec: Mapping[str, Any] | None) -> None:
    """`secret_spec` is what is to be started where the row holds it redacted."""
    with term(data_dir, "server", server_id) as ours:
        record = ours.reader.server(server_id)
        kept = record.raw["installation"]
        installation = Installation(**{**kept, "command": tuple(kept["command"])})
        wanted = record.raw["spec"] if secret_spec is None else secret_spec
        spec = spec_from_json(wanted, wanted["env"])
        ours.writer.update(ServerRecord, server_id, **whose_term())
        journal = Journal(ours.writer, server_id=server_id)
        clear_up = partial(end_abandoned, data_dir, journal, ours.reader)
        adapters = partial(signed_adapters, ours.reader, data_dir)
        await hold(ServerKeeper(record, journal, installation, spec, clear_up, adapters), ours.socket)


if __name__ == "__main__":
    handed_over = take_spec(os.environ)  # before anything is started
    sys.exit(run_keeper(lambda data_dir, server_id: keep(data_dir, server_id, handed_over)))
