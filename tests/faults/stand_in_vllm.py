"""An installation with vLLM's process tree and none of its weight, for faults by the hundred.

`vllm serve` is an API server that starts an EngineCore, which starts a Worker; both survive their parent, as vLLM's do
after a SIGKILL. It prints the lines that a start prints, binds its port at once, listens when it is "loaded", and
answers /health, /v1/models, /v1/completions and /metrics. The benchmark sends real requests to it, and has no clock of
its own that a busy machine could make late: a run rejected for that would be weather. What a real server shows on
demand is tested on a real one.

The environment steers it: STAND_IN_LOAD_S (seconds until it serves), STAND_IN_MUTE (a path: while that file exists,
/health answers and completions never do).
"""

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

SERVE = r'''
import argparse, http.server, json, os, socket, subprocess, sys, threading, time

TREE = """
import subprocess, sys, time
level = int(sys.argv[1])
if level:
    subprocess.Popen([sys.executable, "-c", sys.argv[2], str(level - 1), sys.argv[2]])
time.sleep(3600)
"""


def log(text):
    print(f"(APIServer pid={os.getpid()}) INFO 11-30 10:00:00 [stand_in.py:1] {text}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--served-model-name")
    parser.add_argument("--max-num-seqs", type=int, default=8)
    args, _ = parser.parse_known_args(sys.argv[2:])
    name = args.served_model_name or args.model
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((args.host, args.port))
    core = subprocess.Popen([sys.executable, "-c", TREE, "1", TREE])
    log("version 0.32.0")
    half_s = float(os.environ.get("STAND_IN_LOAD_S", "0.2")) / 2

    def load():
        try:
            code = core.wait(half_s)
        except subprocess.TimeoutExpired:
            return
        failed = f"Failed core proc(s): {{'EngineCore': {code}}}"
        sys.exit(f"RuntimeError: Engine core initialization failed. See root cause above. {failed}")

    load()
    log("Model loading took 0.25 GiB memory and 0.100000 seconds")
    load()
    log("CPU KV cache size: 1,024 tokens, Maximum concurrency for 512 tokens per request: 2.00x")
    served = {"requests": 0}

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def answer(self, body, kind="application/json"):
            body = body.encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            if core.poll() is not None:
                self.send_error(503)
            elif self.path == "/v1/models":
                self.answer(json.dumps({"object": "list", "data": [{"id": name, "object": "model"}]}))
            elif self.path == "/metrics":
                label = '{engine="0",model_name="m"}'
                self.answer(
                    f"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{label} 1.0\n"
                    f"# TYPE vllm:generation_tokens counter\n"
                    f"vllm:generation_tokens_total{label} {served['requests']}\n",
                    "text/plain; version=0.0.4",
                )
            else:
                self.answer("{}")

        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            mute = os.environ.get("STAND_IN_MUTE")
            while mute and os.path.exists(mute):
                time.sleep(0.05)
            if core.poll() is not None:
                self.send_error(500)
                return
            served["requests"] += 1
            self.answer(json.dumps({"choices": [{"text": "x"}], "usage": {"completion_tokens": 1}}))

    server = http.server.ThreadingHTTPServer((args.host, args.port), Handler, bind_and_activate=False)
    server.socket.close()
    listener.listen(64)
    server.socket = listener
    server.server_address = listener.getsockname()
    server.daemon_threads = True
    log(f"Starting vLLM server on http://{args.host}:{args.port}")
    print("INFO:     Application startup complete.", flush=True)

    def end_with_the_engine():
        core.wait()
        print("ERROR 11-30 10:00:00 [core_client.py:1] Engine core process EngineCore died unexpectedly.", flush=True)
        os._exit(1)

    threading.Thread(target=end_with_the_engine, daemon=True).start()
    server.serve_forever()
'''

BENCH = r"""
import asyncio, time, urllib.request, json


def add_cli_args(parser):
    for flag in (
        "--backend --base-url --endpoint --model --served-model-name --tokenizer --dataset-name --dataset-path "
        "--request-rate --percentile-metrics --metric-percentiles --random-range-ratio --temperature --goodput"
    ).split():
        parser.add_argument(flag)
    numbers = "--random-input-len --random-output-len --random-prefix-len --num-prompts --seed --max-concurrency"
    for flag in numbers.split():
        parser.add_argument(flag, type=int)
    parser.add_argument("--burstiness", type=float)
    for flag in "--ignore-eos --disable-tqdm --no-oversample --save-result".split():
        parser.add_argument(flag, action="store_true")


def get_tokenizer(name, **_):
    return object()


def one(base_url):
    body = json.dumps({"model": "m", "prompt": "x", "max_tokens": 1}).encode()
    request = urllib.request.Request(base_url + "/v1/completions", body, {"Content-Type": "application/json"})
    began = time.perf_counter()
    urllib.request.urlopen(request, timeout=30).read()
    return time.perf_counter() - began


async def main_async(args):
    args.ignore_eos = True
    began, times, errors = time.perf_counter(), [], 0
    for _ in range(args.num_prompts):
        try:
            times.append(await asyncio.to_thread(one, args.base_url))
        except OSError:
            errors += 1
        await asyncio.sleep(0.01)
    duration = time.perf_counter() - began
    done, out = len(times), len(times) * args.random_output_len
    result = {
        "num_prompts": args.num_prompts, "request_rate": "inf", "duration": duration, "completed": done,
        "failed": errors, "total_input_tokens": done * args.random_input_len, "total_output_tokens": out,
        "request_throughput": done / duration, "output_throughput": out / duration,
        "total_token_throughput": done * (args.random_input_len + args.random_output_len) / duration,
    }
    middle = 1000 * sum(times) / max(1, done)
    for what in ("ttft", "tpot", "itl", "e2el"):
        for figure in ("mean", "median", "p50", "p90", "p99"):
            result[f"{figure}_{what}_ms"] = middle
    return result
"""

COMMAND = "import sys\nfrom vllm.serving import main\nsys.exit(main())\n"
METADATA = "Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+standin\n"


def make_installation(folder: Path) -> tuple[Path, Mapping[str, str]]:
    """Write the installation; its `vllm` command, and the variables that every program using it needs."""
    site = folder / "site"
    for name, text in (
        ("vllm/__init__.py", ""),
        ("vllm/serving.py", SERVE),
        ("vllm/benchmarks/__init__.py", ""),
        ("vllm/benchmarks/serve.py", BENCH),
        ("vllm-0.32.0+standin.dist-info/METADATA", METADATA),
    ):
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = folder / "bin" / "vllm"
    command.parent.mkdir()
    command.write_text(f"#!{sys.executable}\n{COMMAND}")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    python_path = os.pathsep.join(part for part in (str(site), os.environ.get("PYTHONPATH")) if part)
    return command, {"PYTHONPATH": python_path}


def make_model(folder: Path) -> Path:
    """A folder that passes for a model."""
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"], "model_type": "llama"}')
    return folder
