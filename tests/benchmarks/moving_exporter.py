"""/metrics of a server under load: the recorded pages of the H200 server that ran out of KV cache, going on for ever.

    python -m tests.benchmarks.moving_exporter [--hang]

Prints its address. Counters and buckets grow as they did from one recorded page to the next, again and again; gauges
are those of the later page. With --hang it accepts every connection and answers none.
"""

import argparse
import re
import socket
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

PAGES = Path(__file__).resolve().parent.parent / "fixtures" / "h200-vllm-0.25.1" / "metrics"
MOMENTS_S = (0, 3, 6, 9, 12)
STEP_S = 3.0
SERIES = re.compile(r"^(vllm:[^ {]+(?:\{.*\})?) (\S+)$", re.MULTILINE)
GROWS = ("_total", "_bucket", "_sum", "_count")


class MovingPage:
    """The page at any second since its start."""

    def __init__(self) -> None:
        texts = [(PAGES / f"kv-starved-load-{moment:02}.txt").read_text() for moment in MOMENTS_S]
        self._last = texts[-1]
        self._pages = [dict(SERIES.findall(text)) for text in texts]

    def at(self, seconds: float) -> str:
        """The page after `seconds`."""
        turn, rest = divmod(seconds, STEP_S)
        times = [0.0] * (len(MOMENTS_S) - 1)  # how often each recorded step was made
        for at in range(int(turn)):
            times[_step(at)] += 1
        times[_step(int(turn))] += rest / STEP_S
        gauges = self._pages[_step(int(turn)) + 1]

        def value(series: re.Match[str]) -> str:
            name = series[1]
            if not name.partition("{")[0].endswith(GROWS):
                return f"{name} {gauges.get(name, series[2])}"
            stood = [float(page.get(name, 0)) for page in self._pages]
            grown = sum(often * (after - before) for often, (before, after) in zip(times, pairwise(stood), strict=True))
            return f"{name} {stood[0] + (grown if '_sum' in name else int(grown))}"

        return SERIES.sub(value, self._last)


def _step(turn: int) -> int:
    """Which recorded step a turn repeats: the first is the load's beginning."""
    return 0 if turn == 0 else 1 + (turn - 1) % (len(MOMENTS_S) - 2)


class Answer(BaseHTTPRequestHandler):
    """GET /metrics; everything else is not there."""

    protocol_version = "HTTP/1.1"
    page = MovingPage()
    began = time.monotonic()

    def do_GET(self) -> None:
        body = self.page.at(time.monotonic() - self.began).encode() if self.path == "/metrics" else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: its terminal belongs to who started it."""


def hang(listening: socket.socket) -> None:
    """Take every connection and say nothing."""
    held = []
    while True:
        held.append(listening.accept())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hang", action="store_true")
    if parser.parse_args().hang:
        listening = socket.create_server(("127.0.0.1", 0))
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        hang(listening)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
