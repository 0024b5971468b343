"""What the Monitor sees of the machine it runs on: its GPUs, the servers that listen here, whose the GPUs' processes
are. Each is begun when it is asked for first."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.gpu_owners import Owners
from store.records import SampleRecord, ServerRecord
from tui.monitor import finding

if TYPE_CHECKING:
    from engine.discovery import FoundServer
    from engine.gpu_owners import OwnerLook
    from engine.gpus.gpu import GpuReader
    from engine.gpus.gpu_look import GpuLook


class Surroundings:
    """Of one Monitor. `close` it."""

    def __init__(self) -> None:
        self._gpu: tuple[GpuReader, GpuLook] | None = None
        self._looks: tuple[Callable[[], tuple[FoundServer, ...]], OwnerLook] | None = None

    @property
    def gpu(self) -> "GpuLook":
        """The GPUs' readings, for all servers that are looked at."""
        from engine.gpus.gpu import GpuReader
        from engine.gpus.gpu_look import GpuLook

        if self._gpu is None:
            reader = GpuReader()
            self._gpu = reader, GpuLook(reader, shared=True)
        return self._gpu[1]

    def look(
        self, newest: SampleRecord | None, servers: list[ServerRecord]
    ) -> tuple[tuple["FoundServer", ...], Owners]:
        """The servers that listen here, and whose the processes of `newest` are, among our `servers`. On a thread, and
        never on two."""
        from engine.gpu_owners import OwnerLook

        if self._looks is None:
            self._looks = finding.finder(), OwnerLook()
        found, owners = self._looks
        return found(), owners.of(newest, servers)

    def close(self) -> None:
        """Let NVML go."""
        if self._gpu is not None:
            self._gpu[0].close()
