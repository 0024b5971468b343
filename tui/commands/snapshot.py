"""`llmtune snapshot`: one sample of a server and the GPUs, or one every few seconds."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import Any

from engine.gpu import GpuReader
from engine.records import ServerSample
from engine.sampler import Sampler
from engine.snapshot import snapshot_json
from engine.text import clean
from store.errors import NotFound
from tui.commands.monitor import server_url
from tui.commands.places import data_place, reading
from tui.format import local_clock
from tui.metric_text import number
from tui.output import say, say_json

NO_SERVER = "no server of ours runs; --url gives another's address"
# Nothing listens there, so a sample of it holds the GPUs alone.
NOWHERE = "http://127.0.0.1:9"


def own_url(place: Path) -> str | None:
    """The address of the server of ours that became ready last and still runs, of a sweep or by hand."""
    try:
        with reading(place) as reader:
            ready = [server for server in reader.servers(active=True) if server.state == "ready"]
    except NotFound:
        return None
    return f"http://{ready[-1].host}:{ready[-1].port}" if ready else None


def run(args: argparse.Namespace) -> int:
    url = server_url(args.url) if args.url else own_url(data_place(args))
    return asyncio.run(watch(url, args.watch, args.json))


async def watch(url: str | None, every_s: float | None, as_json: bool) -> int:
    """Print one sample, or one every `every_s` seconds until interrupted. 1 where `url` did not answer."""
    gpu = GpuReader()
    previous: ServerSample | None = None
    error: str | None
    try:
        async with Sampler(url or NOWHERE, gpu, api_key=os.environ.get("VLLM_API_KEY")) as sampler:
            while True:
                began = asyncio.get_running_loop().time()
                if url is None:
                    sample, reading_, error = None, await asyncio.to_thread(gpu.read), NO_SERVER
                else:
                    sample, reading_, error = await sampler.once()
                payload = snapshot_json(sample, reading_, error, previous, url)
                if as_json:
                    say_json(payload, compact=every_s is not None)
                else:
                    for line in snapshot_lines(payload) if every_s is None else [snapshot_line(payload)]:
                        say(line)
                if every_s is None:
                    return 1 if url is not None and sample is None else 0
                previous = sample
                await asyncio.sleep(max(0.0, began + every_s - asyncio.get_running_loop().time()))
    finally:
        gpu.close()


def snapshot_lines(payload: dict[str, Any]) -> list[str]:
    """One sample for a person, a line for each part."""
    lines = [clean(str(payload["error"]), 200)] if payload["error"] else []
    if server := payload["server"]:
        lines += [
            f"{server['url']}  {clean(str(server['model_name'] or ''), 80)}",
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
        )
    return [*lines, clean(str(payload["note"]), 200)] if payload["note"] else lines


def snapshot_line(payload: dict[str, Any]) -> str:
    """One sample of a series on one line; rates are of the time since the sample before."""
    parts = [local_clock(payload["at"])]
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
