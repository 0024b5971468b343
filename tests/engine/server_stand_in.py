"""A small real process that behaves like `vllm serve` in what matters: it binds at once, listens late, has a child in
its group, and logs the lines of a start. MODE in its environment says how it goes wrong;
its child heeds SIGTERM only where that begins with "gentle"."""

import os
import sys
from pathlib import Path

from engine.processes.ports import free_port
from engine.records import Installation, ServerSpec

STAND_IN = """
import json, os, signal, socket, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer

arguments = dict(zip(sys.argv[3::2], sys.argv[4::2]))
mode = os.environ["MODE"]
ignore = "" if mode.startswith("gentle") else "signal.signal(signal.SIGTERM, signal.SIG_IGN); "
child = "import signal, time; " + ignore + "time.sleep(60)"
subprocess.Popen([sys.executable, "-c", child], start_new_session=mode == "stray")
print("INFO 11-30 11:00:00 [api_server.py:1] vLLM API server version 0.25.1", flush=True)
print(json.dumps({"argv": sys.argv, "cwd": os.getcwd(), "stdin": sys.stdin.read()}), file=sys.stderr, flush=True)
if mode.endswith("dies"):
    print("ValueError: User-specified max_model_len (999999) is greater than the derived max_model_len "
          "(max_position_embeddings=8192.0 or model_max_length=None in model's config.json)")
    sys.exit(1)

class Handler(BaseHTTPRequestHandler):
    def answer(self):
        name = arguments["--served-model-name"]
        body = {"data": [{"id": name}], "choices": [{"text": "!"}]}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())
    do_GET = answer
    def do_POST(self):
        if mode == "mute":
            time.sleep(60)
        self.answer()
    def log_message(self, *arguments):
        pass

server = HTTPServer((arguments["--host"], int(arguments["--port"])), Handler, bind_and_activate=False)
server.allow_reuse_address = True
if mode.endswith("hangs"):
    time.sleep(60)
server.server_bind()
print("INFO 11-30 11:00:01 [model.py:1] Model loading took 0.25 GiB memory and 0.5 seconds", flush=True)
print("INFO 11-30 11:00:02 [kv.py:1] GPU KV cache size: 18,176 tokens", flush=True)
time.sleep(0.4)
server.server_activate()
print("INFO:     Application startup complete.", flush=True)
server.serve_forever()
"""


def stand_in(folder: Path) -> Installation:
    """Written to `folder`, which also gets a model for it."""
    script = folder / "vllm.py"
    script.write_text(STAND_IN)
    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    return Installation(str(script), sys.executable, (sys.executable, str(script)), "/nowhere", "0.25.1")


def own_port() -> int:
    """A free port, looked for where another test process that runs beside this one does not look."""
    return free_port("127.0.0.1", 20000 + 37 * os.getpid() % 10000)


def stand_in_spec(folder: Path, mode: str = "serves", port: int | None = None, model: str | None = None) -> ServerSpec:
    return ServerSpec(
        model or str(folder / "model"),
        "127.0.0.1",
        port or own_port(),
        served_name="m",
        env={"MODE": mode},
    )
