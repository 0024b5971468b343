"""/metrics of a server under load: the recorded pages of the H200 server that ran out of KV cache, going on for ever.

    python -m tests.benchmarks.moving_exporter [--hang]

Prints its address. Counters and buckets grow as they grew between the first recorded page and the last, gauges go round
the five pages. With --hang it accepts every connection and answers none.
"""

import argparse
import re
import socket
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGES = Path(__file__).resolve().parent.parent / "fixtures" / "h200-vllm-0.25.1" / "metrics"
MOMENTS_S = (0, 3, 6, 9, 12)
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
        first, last, gauges = self._pages[0], self._pages[-1], self._pages[int(seconds / 3) % len(self._pages)]

        def value(series: re.Match[str]) -> str:
            name = series[1]
            if not name.partition("{")[0].endswith(GROWS):
                return f"{name} {gauges.get(name, series[2])}"
            before, after = float(first.get(name, 0)), float(last[name])
            return f"{name} {before + int((after - before) * seconds / MOMENTS_S[-1])}"

        return SERIES.sub(value, self._last)


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
