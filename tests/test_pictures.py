"""The README's pictures can be made again, by anyone, from what lies in the repository."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = {
    "servers": ("● ready", "KV cache 34,496 tokens", "Engine 000"),
    "monitor": ("● ready", "▶ live", "of 34,496 tokens", "TTFT", "budget", "KV-bound"),
    "monitor-large": ("KV-bound", "decode", "scheduler", "GPU 0", "VLLM::EngineCore"),
    "events": ("events of qwen2.5-7b", "ready after 46 s"),
    "plan": ("finds", "noise of a launch assumed 1 %", "● 4", "max-num-seqs: 64 256", "$"),
    "lora": ("▶ running", "loss", "evaluation", "seed-tasks", "adapters", "data sets"),
    "lora-large": ("▶ running", "learning rate", "main memory GiB", "loss 2.259 at step 20", "seed-tasks-20@1"),
    "pareto": ("throughput against latency", "p99 TTFT (ms)", "A ● default"),
    "tune": ("▶ running", "measuring", "vs default"),
    "sessions": ("✓ done", "36 of 36 runs", "No candidate is shown to beat the default"),
    "charts": ("KV cache", "GPU power", "the load began"),
}


def words(picture: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", picture)).replace("\xa0", " ").split())


def test_the_script_draws_every_picture_of_the_readme(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/export_screens.py", str(tmp_path)]
    subprocess.run(command, check=True, cwd=ROOT, timeout=300)
    drawn = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert drawn.keys() == set(re.findall(r"docs/images/([\w-]+)\.svg", README)) == SHOWN.keys()
    for name, expected in SHOWN.items():
        shown = words(drawn[name])
        assert [each for each in expected if each not in shown] == [], (name, shown)
        assert str(ROOT) not in shown
