"""`llmtune snapshot`: one sample of servers and the GPUs, or one every few seconds."""

import argparse
import asyncio
import os
from contextlib import aclosing, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.discovery import ELSEWHERE, on_this_machine
from engine.gpus.gpu import GpuReader
from engine.gpus.gpu_look import GpuLook
from engine.limiting.bottleneck import Limit, what_limits
from engine.limiting.limit_bars import LOOK_BACK_S
from engine.records import GpuReading
from engine.samples.beat import Past, looks
from engine.samples.foreign_record import ForeignRecords
from engine.samples.sample_record import to_record
from engine.samples.sampler import TIMEOUT_S, Sampler
from engine.samples.snapshot import snapshot_json
from engine.samples.window import Window
from engine.text import clean
from store.records import SampleRecord
from tui.commands.monitor import server_url
from tui.commands.places import data_place, recording
from tui.commands.targets import Target, named, unnamed
from tui.format import local_clock
from tui.metric_text import number
from tui.output import UsageError, complain, say, say_json

NO_SERVER = "no server of ours runs and none is found on this machine; --url gives one's address"
LOOK_AGAIN_S = 5.0  # for a server to appear


def run(args: argparse.Namespace) -> int:
    for option in ("window", "record"):
        if getattr(args, option) and not args.watch:
            raise UsageError(f"--{option} is for a series of samples: give --watch too")
    place = data_place(args)
    urls = tuple(dict.fromkeys(server_url(url) for url in args.url))
    # A key is told to those alone whom the person named: anybody may listen on this machine.
    api_key = os.environ.get("VLLM_API_KEY") if urls else None
    with recording(place) if args.record else nullcontext() as records:
        snapshots = Snapshots(args.json, args.watch, args.window, api_key, records)
        return asyncio.run(snapshots.run(urls, place))


class Snapshots:
    """What one call prints. `every_s` None: one sample of each server, else one each `every_s` seconds for ever."""

    def __init__(
        self,
        as_json: bool,
        every_s: float | None,
        window_s: float | None,
        api_key: str | None,
        records: ForeignRecords | None = None,
    ) -> None:
        self._as_json = as_json
        self._every_s = every_s
        self._window_s = window_s
        self._api_key = api_key
        self._records = records
        self._told: str | None = None
        self._reader = GpuReader()
        self._gpu = GpuLook(self._reader, shared=True)

    async def run(self, urls: tuple[str, ...], place: Path) -> int:
        """1 where one that was asked once did not answer."""
        try:
            targets = await asyncio.to_thread(named, urls) if urls else await self._find(place)
            if not targets:
                return 0
            tasks = [asyncio.create_task(self._follow(target, len(targets) > 1)) for target in targets]
            try:
                return max(await asyncio.gather(*tasks))
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            self._reader.close()

    async def _find(self, place: Path) -> tuple[Target, ...]:
        """Whom to look at where nobody is named. While there is none the GPUs are printed alone: once, or until one
        appears."""
        loop = asyncio.get_running_loop()
        due = again = loop.time()
        while True:
            if loop.time() >= again:
                if targets := await asyncio.to_thread(unnamed, place):
                    return targets
                again = loop.time() + LOOK_AGAIN_S
            self._print(snapshot_json(None, await self._gpu.read(TIMEOUT_S), NO_SERVER), several=False)
            if self._every_s is None:
                return ()
            due = max(due + self._every_s, loop.time())
            await asyncio.sleep(due - loop.time())

    async def _follow(self, target: Target, several: bool) -> int:
        url = target.url
        here = on_this_machine(url)
        past, judge = Past(self._window_s), Judge(target)
        every_s = self._every_s or 2 * TIMEOUT_S
        async with (
            Sampler(url, self._gpu if here else None, self._api_key) as sampler,
            aclosing(looks(sampler, self._gpu, every_s)) as stream,
        ):
            async for server, gpu, error in stream:
                previous = past.take(server) if server else None
                gpus = gpu if here else GpuReading(gpu.at, gpu.clock, note=ELSEWHERE)
                payload = snapshot_json(server, gpus, error, previous, url, stream=self._every_s is not None)
                if self._every_s is not None:
                    sample = to_record(server, gpus, error=error)
                    payload["limit"] = judge.limit(sample)
                    await self._record(target, sample)
                self._print(payload, several)
                if self._every_s is None:
                    return 0 if server else 1
        raise AssertionError("a stream that has no end ended")

    async def _record(self, target: Target, sample: SampleRecord) -> None:
        if self._records is None or target.ours:  # its keeper writes its samples
            return
        await asyncio.to_thread(self._records.keep, target.url, sample)
        if self._records.trouble != self._told and self._records.trouble:
            complain(f"samples are not recorded now: {self._records.trouble}")
        self._told = self._records.trouble

    def _print(self, payload: dict[str, Any], several: bool) -> None:
        once = self._every_s is None
        if self._as_json:
            say_json(payload, compact=not once or several)
        else:
            for line in snapshot_lines(payload) if once else [snapshot_line(payload, several)]:
                say(line)


class Judge:
    """What limits one server of a stream, from its last minute."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._window = Window(LOOK_BACK_S)
        self._said: Limit | None = None

    def limit(self, sample: SampleRecord) -> dict[str, Any] | None:
        """The finding with the next sample, as JSON."""
        self._window.add(sample)
        self._said = what_limits(self._window, self._target.knobs(sample), self._said)
        return asdict(self._said) if self._said else None


def snapshot_lines(payload: dict[str, Any]) -> list[str]:
    """One sample for a person, a line for each part."""
    lines = [clean(str(payload["error"]), 200)] if payload["error"] else []
    if server := payload["server"]:
        lines += [
            "  ".join(
                part
                for part in (
                    clean(str(server["url"]), 80),
                    clean(str(server["model_name"] or ""), 80),
                    f"vLLM {server['vllm_version']}" if server["vllm_version"] else "",
                )
                if part
            ),
            f"requests  {number(server['running'])} running, {number(server['waiting'])} waiting, "
            f"{number(server['preemptions'])} preempted since its start",
            f"KV cache  {number(server['kv_perc'])} % of {number(server['kv_cache_tokens'])} tokens",
            f"tokens    {number(server['prompt_tokens'])} read, {number(server['generation_tokens'])} written, "
            f"{number(server['prefix_hit_perc'])} % of prompts from the prefix cache",
        ]
    for gpu in payload["gpus"]:
        lines.append(
            f"GPU {gpu['index']}  {clean(str(gpu['name'] or ''), 40)}  "
            f"{number(gpu['mem_used_gib'])} of {number(gpu['mem_total_gib'])} GiB, {number(gpu['util_perc'])} % busy, "
            f"{number(gpu['power_w'])} of {number(gpu['power_limit_w'])} W, {number(gpu['temp_c'])} °C"
            + (f"  {clean(str(gpu['error']), 80)}" if gpu.get("error") else "")
        )
    return [*lines, clean(str(payload["note"]), 200)] if payload["note"] else lines


def snapshot_line(payload: dict[str, Any], several: bool = False) -> str:
    """One sample of a series on one line, after its address where there are `several`; rates are of the time since the
    sample before."""
    parts = [local_clock(payload["at"]), *([clean(str(payload["url"]), 40)] if several else [])]
    if server := payload["server"]:
        rates = server["rates"] or {}
        parts += [
            f"running {number(server['running']):>5}",
            f"waiting {number(server['waiting']):>5}",
            f"KV {number(server['kv_perc']):>5} %",
            f"read {number(rates.get('prompt_tok_per_s')):>7}/s",
            f"written {number(rates.get('generation_tok_per_s')):>7}/s",
        ]
    elif payload["error"]:
        parts.append(clean(str(payload["error"]), 100))
    for gpu in payload["gpus"]:
        memory, busy, power = number(gpu["mem_used_gib"]), number(gpu["util_perc"]), number(gpu["power_w"])
        parts.append(f"GPU {gpu['index']} {memory:>5} GiB {busy:>3} % {power:>4} W")
    return "  ".join(parts)
