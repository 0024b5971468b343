"""Samples of servers that are not ours, kept where a person asks for it: `--record`.

From its first answer on such a server has a row like one of ours that has ended, without a command, a process or a
marker; `raw["foreign"]` is its address. So it has a history on the screens, and nothing that ends, restarts or cleans
up after servers of ours ever takes it for one. Whoever looks at it is the only writer of its row.
"""

import threading
from collections import deque
from dataclasses import replace
from urllib.parse import urlsplit

from engine.keeper.journal import PASSING
from engine.samples.thinner import Thinner
from engine.text import clean, redact
from store.errors import StoreError
from store.records import SampleRecord, ServerRecord
from store.writer import Writer

KEPT_UNWRITTEN = 3600  # samples that wait in memory for a store that is full or locked
WRITE_WITHIN_S = 2.0  # what open_writer should be given: a look must not wait longer for another writer


class ForeignRecords:
    """Takes the samples of any number of servers, from any thread but that of an event loop: it may wait for the store.
    `trouble` is one line that says why nothing is kept now, or None."""

    def __init__(self, writer: Writer) -> None:
        self.trouble: str | None = None
        self._writer = writer
        self._thinner = Thinner(writer)
        self._lock = threading.Lock()
        self._ids: dict[str, int] = {}
        self._newest: dict[str, str] = {}
        self._unwritten: dict[str, deque[SampleRecord]] = {}
        self._lost = False

    def keep(self, url: str, sample: SampleRecord) -> None:
        """Write a sample of the server at `url`. What the store cannot take now is written with a later one; where it
        is damaged or another version's, nothing more is tried."""
        with self._lock:
            if self._lost:
                return
            if sample.at <= self._newest.get(url, ""):  # it was given before
                return
            self._newest[url] = sample.at
            waiting = self._unwritten.setdefault(url, deque(maxlen=KEPT_UNWRITTEN))
            waiting.append(sample)
            try:
                self._write(url, waiting)
                self._thinner.some()
                self.trouble = None
            except PASSING as error:
                self.trouble = str(error)
            except StoreError as error:
                self.trouble, self._lost = str(error), True

    def _write(self, url: str, waiting: deque[SampleRecord]) -> None:
        if url not in self._ids:
            answered = next((sample for sample in waiting if sample.raw.get("error") is None), None)
            if answered is None:  # a mistyped address leaves no row
                return
            self._ids[url] = self._writer.insert(_row(url, answered, waiting[0].at))
        with self._writer.transaction():
            self._writer.insert_samples([replace(sample, server_id=self._ids[url]) for sample in waiting])
            self._writer.update(ServerRecord, self._ids[url], stopped_at=waiting[-1].at)
        waiting.clear()


def _row(url: str, sample: SampleRecord, began: str) -> ServerRecord:
    address = urlsplit(url)
    host = address.hostname or ""
    model = clean(str(sample.raw.get("model_name") or ""), 200)
    version = sample.raw.get("version")
    return ServerRecord(
        name=clean(model.rstrip("/").rpartition("/")[2] or host, 60),
        state="stopped",
        model=model,
        host=host,
        port=address.port or (443 if address.scheme == "https" else 80),
        command=[],
        env={},
        log_path="",
        marker="",
        served_name=model or None,
        vllm_version=version if isinstance(version, str) else None,
        started_at=began,
        ready_at=sample.at,
        stopped_at=sample.at,
        facts={"kv_cache_tokens": sample.raw["kv_cache_tokens"]} if "kv_cache_tokens" in sample.raw else {},
        raw={"foreign": redact(url)},
    )
