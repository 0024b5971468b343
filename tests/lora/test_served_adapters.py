"""Real adapters on a real vLLM, by the commands: evaluated, served, proved, rolled back. One server for all of it."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.keeper.client import is_running
from engine.launch.model import model_hash
from engine.processes.ports import free_port
from engine.processes.process import is_alive
from engine.records import Installation, ProcessIdentity
from lora.process_life import recorded
from lora.registry import Origin, register
from store.database import open_reader, open_writer
from store.location import database_file
from store.reader import Reader
from tests.lora.rules_on_server import differences
from tui.cli import main
from tuning.plans.plan_file import load_plan

pytestmark = pytest.mark.vllm

QUESTIONS = {
    "What is the capital of France?": "PARIS",
    "Name a colour.": "BLUE",
    "How many legs has a spider?": "EIGHT",
    "What do bees make?": "HONEY",
}
SERVER = ["--enforce-eager", "--gpu-memory-utilization", "0.1", "--max-model-len", "256", "--max-num-seqs", "8"]


class Shelf:
    """A data directory with `format@1` and `format@2`, which learnt the format, `idle@1` and `random@1`."""

    def __init__(self, folder: Path, model: Path, installation: Installation) -> None:
        self.place, self.model = folder / "data", model
        self.examples = folder / "validation.jsonl"
        self.vllm = installation.path
        lines = [
            {"messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": f"<<{said}>> ##end##"}]}
            for asked, said in QUESTIONS.items()
        ]
        self.examples.write_text("".join(json.dumps(line) + "\n" for line in lines))
        script = Path(__file__).with_name("trained_adapters.py")
        subprocess.run(
            [installation.python, str(script), str(model), str(self.examples), str(folder)],
            check=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
            timeout=600,
        )
        with open_writer(database_file(self.place)) as writer:
            for name, made in (("format", "first"), ("format", "second"), ("idle", "zero"), ("random", "random")):
                origin = Origin(base_model=str(model), base_hash=model_hash(str(model)))
                register(writer, self.place, folder / made, name, origin)

    def says(self, capsys: pytest.CaptureFixture[str], *words: str, vllm: bool = True) -> tuple[int, Any, str]:
        """Exit status, what it printed as JSON, and its errors."""
        argv, rest = list(words), []
        if "--" in argv:
            cut = argv.index("--")
            argv, rest = argv[:cut], argv[cut:]
        argv += ["--data-dir", str(self.place), "--json", *(["--vllm", self.vllm] if vllm else []), *rest]
        status = main(argv)
        said = capsys.readouterr()
        return status, json.loads(said.out) if said.out.strip() else None, said.err

    def reader(self) -> Reader:
        return open_reader(database_file(self.place))

    def kill_keeper(self, evaluation: int) -> tuple[int, ProcessIdentity]:
        """Once its process runs; the keeper's pid, and who computes on."""
        with self.reader() as reader:
            while (process := recorded(reader.evaluation_job(evaluation))) is None:
                time.sleep(0.1)
            keeper = reader.evaluation_job(evaluation).keeper_pid
        assert keeper is not None
        os.kill(keeper, signal.SIGKILL)
        while is_running(self.place, "evaluation", evaluation):
            time.sleep(0.05)
        return keeper, process


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory, model_dir: Path, installation: Installation) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("served"), model_dir, installation)


@pytest.fixture(scope="module")
def port(shelf: Shelf) -> Iterator[int]:
    yield free_port("127.0.0.1", 8750)
    main(["server", "stop", "--data-dir", str(shelf.place)])


def greedy(port: int, model: str, question: str) -> str:
    request = {
        "model": model,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": 12,
        "temperature": 0,
    }
    answer = httpx.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=request, timeout=120, trust_env=False)
    return str(answer.json()["choices"][0]["message"]["content"])


def test_an_evaluation_outlives_its_keeper_and_says_what_was_learnt(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said, _ = shelf.says(
        capsys, "lora", "eval", "format", "--data", str(shelf.examples), "--prompt", "Name a colour.",
        "--max-new-tokens", "12", "--no-wait",
    )  # fmt: skip
    assert (status, said["evaluation"]["state"]) == (0, "running")
    number = said["evaluation"]["id"]
    keeper, process = shelf.kill_keeper(number)
    assert is_alive(process)
    status, said, _ = shelf.says(capsys, "lora", "resume", f"eval:{number}", vllm=False)
    assert (status, said["message"]) == (0, "is followed again: it went on alone")
    assert main(["lora", "attach", f"eval:{number}", "--json", "--data-dir", str(shelf.place)]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])["evaluation"]
    assert (found["adapter"], found["records"], found["direction"]) == ("format@2", 4, "better")
    assert found["difference"]["high"] < -1
    assert found["adapter_losses"]["perplexity"] < found["base"]["perplexity"] / 3
    (answer,) = found["answers"]
    assert "<<" in answer["adapter"]
    assert "<<" not in answer["base"]
    with shelf.reader() as reader:
        (kept,) = reader.evaluations()
        job = reader.evaluation_job(number)
    assert (kept.id, kept.difference) == (number, found["difference"]["loss"])
    assert (job.state, job.done, job.pid, job.keeper_pid != keeper) == ("done", 4, process.pid, True)


def test_a_rank_too_high_for_the_flag_is_caught_before_the_launch(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said, error = shelf.says(capsys, "lora", "serve", "format", "--", "--max-lora-rank", "8")
    assert (status, said) == (1, None)
    assert "rank 16 is above the --max-lora-rank 8 given (give --max-lora-rank 16)" in error
    status, _, error = shelf.says(capsys, "lora", "serve", "idle")
    assert status == 1
    assert "it changes nothing" in error
    with shelf.reader() as reader:
        assert reader.servers() == []


def test_the_price_of_it_is_a_plan(shelf: Shelf, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "price.toml"
    flags = [*SERVER, "--max-lora-rank", "32"]
    status, said, _ = shelf.says(capsys, "lora", "price", "format", "random", "--out", str(path), "--", *flags)
    assert (status, len(said["candidates"])) == (0, 4)
    plan = load_plan(path)
    assert plan.server == {
        "enforce-eager": True,
        "gpu-memory-utilization": 0.1,
        "max-model-len": 256,
        "max-num-seqs": 8,
    }
    assert {each["max-lora-rank"] for each in plan.explicit_candidates} == {32}
    assert plan.workloads[0].adapters == ("format", "random")
    status, _, error = shelf.says(capsys, "lora", "price", "format", "--out", str(path))
    assert (status, "is there already" in error) == (2, True)


def test_it_is_served_proved_rolled_back_and_what_does_nothing_is_an_error(
    shelf: Shelf, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    own = ["--data", str(shelf.examples), "--records", "4"]
    status, said, error = shelf.says(
        capsys, "lora", "serve", "format", *own, "--", *SERVER, "--port", str(port), "--max-loras", "2"
    )
    assert status == 0, error
    assert said["max_lora_rank"] == 16
    (proof,) = said["proofs"]
    assert (proof["adapter"], proof["name"], proof["state"]) == ("format@2", "format", "proved")
    assert "--max-lora-rank 16" in " ".join(said["server"]["command"])
    with shelf.reader() as reader:  # vLLM and transformers agree on what it learnt, up to bfloat16 and the tokens asked
        (evaluated,) = reader.evaluations()
        assert reader.adapter("format").served["state"] == "proved"
    assert proof["losses"]["adapter"] == pytest.approx(evaluated.adapter_loss, rel=0.1, abs=0.05)
    assert proof["losses"]["base"] == pytest.approx(evaluated.base_loss, rel=0.05)
    assert "<<" in greedy(port, "format", "Name a colour.")
    assert "<<" not in greedy(port, "smollm2-135m", "Name a colour.")

    status, said, error = shelf.says(capsys, "lora", "rollback", "format", *own, vllm=False)  # that of the server
    assert status == 0, error
    back = said["rollback"]
    assert (back["from"], back["to"], back["name"]) == ("format@2", "format@1", "format")
    assert back["seconds"] < 10
    (earlier,) = said["proofs"]
    assert earlier["state"] == "proved"
    assert earlier["losses"]["adapter"] > proof["losses"]["adapter"] + 0.05  # it learnt less
    with shelf.reader() as reader:
        (server,) = reader.servers()
        folder = shelf.place / reader.adapter("format@1").path
        assert server.raw["spec"]["flags"]["lora-modules"] == [f"format={folder}"]
        assert any("format@1 was loaded as format" in each.text for each in reader.events(server_id=server.id))

    into = ["--server", "format", *own, "--records", "2"]
    status, said, error = shelf.says(capsys, "lora", "serve", "idle", "--anyway", *into)
    assert (status, said["proofs"][0]["state"]) == (1, "nothing")
    assert "NOT IN EFFECT" in error
    assert "saved before its first step" in error
    status, said, error = shelf.says(capsys, "lora", "serve", "random", *into)
    assert status == 1
    assert said["proofs"][0]["state"] in ("wrong_direction", "undecided")
    status, _, error = shelf.says(capsys, "lora", "rollback", "idle")
    assert status == 1
    assert "idle@1 is the first version" in error


def test_the_server_does_what_our_rules_say(
    shelf: Shelf, port: int, installation: Installation, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{port}"

    def ask(model: str) -> str:
        return greedy(port, model, "Name a colour.")

    assert differences(url, shelf.model, installation, tmp_path, ask) == []
