"""What happened to a server, told from its samples: the events of servers that nobody writes events for. Pure."""

from engine.limiting.load_states import KV_FULL_PERC, KV_STILL_FULL_PERC
from engine.samples.sample_record import requests_finished
from engine.samples.window import started_anew
from store.clock import unix_seconds
from store.records import EventLevel, EventRecord, SampleRecord
from tui.format import span
from tui.monitor.gpu_happenings import GpuHappenings
from tui.monitor.liveness import STALLED_S, answered

SILENT_LOOKS = 2
QUIET_S = 60.0  # preemptions begin anew after so long without one


class Happenings:
    """Fed with one server's samples in their order. The first sample tells what is, not what happened."""

    def __init__(self, server_id: int | None = None) -> None:
        self._server_id = server_id
        self._answered: SampleRecord | None = None  # the newest sample that the server gave
        self._missed = 0  # looks in a row
        self._silent_since: float | None = None
        self._still_since: float | None = None
        self._preempted_at: float | None = None
        self._is_full = False
        self._gpus = GpuHappenings()

    def add(self, sample: SampleRecord, still_s: float = 0.0) -> list[EventRecord]:
        """The events of the next sample. `still_s` is for how long requests have run without any work done."""
        found: list[tuple[EventLevel, str]] = []
        at = unix_seconds(sample.at)
        if answered(sample):
            found += self._server(at, sample)
            found += self._stall(at, still_s)
            self._answered, self._silent_since, self._missed = sample, None, 0
        else:
            found += self._silence(sample)
        found += self._gpus.add(at, sample)
        return [EventRecord(sample.at, level, text, server_id=self._server_id) for level, text in found]

    def _server(self, at: float, sample: SampleRecord) -> list[tuple[EventLevel, str]]:
        before = self._answered
        found: list[tuple[EventLevel, str]] = []
        anew = before is not None and started_anew(before, sample)
        if self._silent_since is not None and not anew:
            found.append(("info", f"answers again after {span(at - self._silent_since)}"))
        if before is not None and anew:
            found.append(("warning", "restarted: its counters began anew"))
            before = None
            self._preempted_at, self._is_full = None, False
        if before is not None:
            if _requests(before) == 0 and (_requests(sample) or 0) > 0:
                found.append(("info", "first request"))
            found += self._preemptions(at, before, sample)
        found += self._kv(sample, is_first=self._answered is None)
        return found

    def _silence(self, sample: SampleRecord) -> list[tuple[EventLevel, str]]:
        """Of one that answered before. A single look that fails is no event: the next may find it well."""
        self._missed += 1
        if self._answered is None or self._missed != SILENT_LOOKS:
            return []
        self._silent_since = unix_seconds(self._answered.at)
        said = sample.raw.get("error")
        return [("error", f"stopped answering{f': {said}' if said else ''}")]

    def _stall(self, at: float, still_s: float) -> list[tuple[EventLevel, str]]:
        if still_s >= STALLED_S and self._still_since is None:
            self._still_since = at - still_s
            return [("error", f"its engine has computed nothing for {span(still_s)} while requests run")]
        if still_s < STALLED_S and self._still_since is not None:
            since, self._still_since = self._still_since, None
            return [("info", f"its engine computes again, after {span(at - since)}")]
        return []

    def _preemptions(self, at: float, before: SampleRecord, sample: SampleRecord) -> list[tuple[EventLevel, str]]:
        more = (sample.preemptions or 0) - (before.preemptions or 0)
        if before.preemptions is None or more <= 0:
            return []
        quiet = self._preempted_at is None or at - self._preempted_at > QUIET_S
        self._preempted_at = at
        return [("warning", "preemptions began")] if quiet else []

    def _kv(self, sample: SampleRecord, is_first: bool) -> list[tuple[EventLevel, str]]:
        kv = sample.kv_perc
        if kv is None:
            return []
        if kv > KV_FULL_PERC and not self._is_full:
            self._is_full = True
            return [] if is_first else [("warning", f"KV cache above {KV_FULL_PERC:g} %")]
        if kv < KV_STILL_FULL_PERC and self._is_full:
            self._is_full = False
            return [("info", f"KV cache below {KV_STILL_FULL_PERC:g} % again")]
        return []


def _requests(sample: SampleRecord) -> float | None:
    """Requests that it has seen so far, of any state; 0 on a server that nobody has used."""
    known = [sample.running, sample.waiting, requests_finished(sample), sample.prompt_tokens]
    if all(value is None for value in known):
        return None
    return sum(value for value in known if value is not None)
