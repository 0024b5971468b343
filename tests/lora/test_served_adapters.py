"""From a file to a served adapter by the commands alone: prepared and trained (conftest.py), evaluated, served by a
real vLLM, its answers changed, rolled back. One server for all of it."""

import json
import os
import random
import shutil
import signal
import time
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.keeper.client import is_running
from engine.launch.model import model_hash
from engine.processes.ports import free_port
from engine.processes.process import is_alive
from engine.records import Installation, ProcessIdentity
from lora.adapters.adapter_files import CONFIG
from lora.adapters.registry import Origin, register
from lora.process.process_life import recorded
from lora.sizes.base_model import Linear, read_base
from store.database import open_reader, open_writer
from store.location import database_file
from store.reader import Reader
from store.records import TrainingRecord
from tests.lora.keys_on_server import by_keys
from tests.lora.made_adapters import Tensors, write_adapter
from tests.lora.real_place import HELD_OUT, UNSEEN, UNUSUAL, RealPlace
from tests.lora.rules_on_server import differences
from tui.cli import main
from tuning.plans.plan_file import load_plan

pytestmark = pytest.mark.vllm

SERVER = ["--enforce-eager", "--gpu-memory-utilization", "0.1", "--max-model-len", "256", "--max-num-seqs", "8"]
WEAKER = 8
"""A version with so much less of what was learnt: as if its training had been cut short."""
LAYERS = 20  # of those that adapters made by hand change


class Shelf:
    """The data directory of the real training, with its `whole@1`, a `whole@2` that came out worse, `idle@1`, which was
    saved before its first step, and `random@1`, which never was trained."""

    def __init__(self, real: RealPlace, folder: Path, installation: Installation) -> None:
        self.place, self.model, self.vllm = real.folder, real.model, installation.path
        worse = folder / "worse"
        shutil.copytree(real.folder / "adapters" / "whole" / "1", worse)
        config = json.loads((worse / CONFIG).read_text())
        (worse / CONFIG).write_text(json.dumps({**config, "lora_alpha": config["lora_alpha"] / WEAKER}))
        kept = real.llmtune("import", str(worse), "--name", "whole", "--vllm", self.vllm)
        assert kept.returncode == 0, kept.stderr
        layers = [layer for layer in read_base(self.model).linears if layer.leaf in ("q_proj", "v_proj")][-LAYERS:]
        said = {"r": 16, "lora_alpha": 32, "base_model_name_or_path": str(self.model)}
        with open_writer(database_file(self.place)) as writer:
            for name, spread in (("idle", 0.0), ("random", 0.05)):
                made = write_adapter(folder / name, drawn(layers, spread), **said)
                register(writer, self.place, made, name, Origin(str(self.model), model_hash(str(self.model))))

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


def drawn(layers: Sequence[Linear], spread: float, r: int = 16) -> Tensors:
    """Factors of those layers: A as peft begins it, B normal with that standard deviation."""
    chance = random.Random(1)
    found: dict[str, Any] = {}
    for layer in layers:
        bound = (3 / layer.inputs) ** 0.5
        a = array("f", (chance.uniform(-bound, bound) for _ in range(r * layer.inputs)))
        b = array("f", (chance.gauss(0.0, 1.0) * spread for _ in range(layer.outputs * r)))
        name = f"base_model.model.{layer.name}"
        found[f"{name}.lora_A.weight"] = ("F32", (r, layer.inputs), a.tobytes())
        found[f"{name}.lora_B.weight"] = ("F32", (layer.outputs, r), b.tobytes())
    return found


@pytest.fixture(scope="module")
def shelf(
    tmp_path_factory: pytest.TempPathFactory, real_place: RealPlace, whole: TrainingRecord, installation: Installation
) -> Shelf:
    return Shelf(real_place, tmp_path_factory.mktemp("served"), installation)


@pytest.fixture(scope="module")
def port(shelf: Shelf) -> Iterator[int]:
    yield free_port("127.0.0.1", 8750)
    main(["server", "stop", "--data-dir", str(shelf.place)])


def greedy(port: int, model: str, question: str) -> str:
    request = {
        "model": model,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": 32,
        "temperature": 0,
    }
    answer = httpx.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=request, timeout=120, trust_env=False)
    return str(answer.json()["choices"][0]["message"]["content"])


def test_an_evaluation_outlives_its_keeper_and_says_what_was_learnt(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said, _ = shelf.says(
        capsys, "lora", "eval", "whole@1", "--prompt", UNSEEN[0], "--prompt", UNSEEN[1], "--max-new-tokens", "32",
        "--no-wait",
    )  # fmt: skip
    assert (status, said["evaluation"]["state"]) == (0, "running")
    number = said["evaluation"]["id"]
    keeper, process = shelf.kill_keeper(number)
    assert is_alive(process)
    status, said, _ = shelf.says(capsys, "lora", "resume", f"eval:{number}", vllm=False)
    assert (status, said["message"]) == (0, "is followed again: it went on alone")
    assert main(["lora", "attach", f"eval:{number}", "--json", "--data-dir", str(shelf.place)]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])["evaluation"]
    assert (found["adapter"], found["records"], found["direction"]) == ("whole@1", HELD_OUT, "better")
    assert found["difference"]["high"] < -1
    assert found["adapter_losses"]["perplexity"] < found["base"]["perplexity"] / 3
    assert [answer["prompt"] for answer in found["answers"]] == list(UNSEEN)
    for answer in found["answers"]:
        assert UNUSUAL.fullmatch(answer["adapter"]), "also where it ends"
        assert not UNUSUAL.search(answer["base"])
    with shelf.reader() as reader:
        (kept,) = reader.evaluations()
        job = reader.evaluation_job(number)
    assert (kept.id, kept.difference) == (number, found["difference"]["loss"])
    assert (job.state, job.done, job.pid, job.keeper_pid != keeper) == ("done", HELD_OUT, process.pid, True)


def test_a_rank_too_high_for_the_flag_is_caught_before_the_launch(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said, error = shelf.says(capsys, "lora", "serve", "whole", "--", "--max-lora-rank", "8")
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
    status, said, _ = shelf.says(capsys, "lora", "price", "whole", "random", "--out", str(path), "--", *flags)
    assert (status, len(said["candidates"])) == (0, 4)
    plan = load_plan(path)
    assert plan.server == {
        "enforce-eager": True,
        "gpu-memory-utilization": 0.1,
        "max-model-len": 256,
        "max-num-seqs": 8,
    }
    assert {each["max-lora-rank"] for each in plan.explicit_candidates} == {32}
    assert plan.workloads[0].adapters == ("whole", "random")
    status, _, error = shelf.says(capsys, "lora", "price", "whole", "--out", str(path))
    assert (status, "is there already" in error) == (2, True)


def test_it_is_served_proved_rolled_back_and_what_does_nothing_is_an_error(
    shelf: Shelf, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--dataset", "seven", "--records", "4"]  # of those that its training held out
    status, said, error = shelf.says(
        capsys, "lora", "serve", "whole", *few, "--", *SERVER, "--port", str(port), "--max-loras", "2"
    )
    assert status == 0, error
    assert said["max_lora_rank"] == 16
    (worse,) = said["proofs"]
    assert (worse["adapter"], worse["name"], worse["state"]) == ("whole@2", "whole", "proved")
    assert "--max-lora-rank 16" in " ".join(said["server"]["command"])
    for question in UNSEEN:
        assert not UNUSUAL.search(greedy(port, "whole", question))

    status, said, error = shelf.says(capsys, "lora", "rollback", "whole", *few, vllm=False)  # that of the server
    assert status == 0, error
    back = said["rollback"]
    assert (back["from"], back["to"], back["name"]) == ("whole@2", "whole@1", "whole")
    assert back["seconds"] < 10
    (proof,) = said["proofs"]
    assert proof["state"] == "proved"
    assert proof["losses"]["adapter"] < worse["losses"]["adapter"] - 0.5
    for question in UNSEEN:
        assert UNUSUAL.fullmatch(greedy(port, "whole", question)), "the server answers as its training taught"
        assert not UNUSUAL.search(greedy(port, shelf.model.name, question))
    with shelf.reader() as reader:
        assert reader.adapter("whole@1").served["state"] == "proved"
        (server,) = reader.servers()
        folder = shelf.place / reader.adapter("whole@1").path
        assert server.raw["spec"]["flags"]["lora-modules"] == [f"whole={folder}"]
        assert any("whole@1 was loaded as whole" in each.text for each in reader.events(server_id=server.id))
        # vLLM and transformers agree on what it learnt, up to bfloat16 and the records and tokens asked about
        (evaluated,) = reader.evaluations()
    assert proof["losses"]["adapter"] == pytest.approx(evaluated.adapter_loss, rel=0.1, abs=0.05)
    assert proof["losses"]["base"] == pytest.approx(evaluated.base_loss, rel=0.2)

    into = ["--server", "whole", "--dataset", "seven", "--records", "2"]
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


async def test_keys_of_the_screen_import_load_and_roll_back(shelf: Shelf, port: int, tmp_path: Path) -> None:
    made = shutil.copytree(shelf.place / "adapters" / "random" / "1", tmp_path / "elsewhere")
    await by_keys(shelf.place, shelf.vllm, f"http://127.0.0.1:{port}", made, "whole")


def test_the_server_does_what_our_rules_say(
    shelf: Shelf, port: int, installation: Installation, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{port}"

    def ask(model: str) -> str:
        return greedy(port, model, "Name a colour.")

    assert differences(url, shelf.model, installation, tmp_path, ask) == []
