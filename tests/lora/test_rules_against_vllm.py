"""Our rules against the installed vLLM's own loader, on real adapters of peft's. Starts no server."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from engine.launch.environment import child_environ
from engine.records import Installation
from lora.adapters.adapter_files import read_adapter
from lora.adapters.adapter_findings import Finding
from lora.adapters.importing import Examined, examine
from lora.sizes.base_model import read_base
from lora.sizes.parameter_count import adapter_size

SCRIPT = Path(__file__).parent / "real_adapters.py"
MAX_RANK = 16
# vLLM gathers what it refuses in this order (peft_helper.py, validate_legal).
ORDER = (
    "modules_to_save", "use_dora", "lora_bias", "init_lora_weights", "alora_invocation_tokens", "layer_replication",
    "use_bdlora", "use_qalora", "r", "bias",
)  # fmt: skip

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def made(
    installation: Installation, model_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, str | None]]:
    """The folder of the adapters, and what vLLM says of each."""
    folder = tmp_path_factory.mktemp("adapters")
    environ = child_environ(installation.bin_dir, os.environ) | {"HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
    answer = subprocess.run(
        [installation.python, str(SCRIPT), str(model_dir), str(folder)],
        env=environ,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    line = next((line for line in answer.stdout.splitlines() if line.startswith("ADAPTERS ")), None)
    assert line is not None, answer.stderr[-2000:]
    return folder, json.loads(line.removeprefix("ADAPTERS "))


def test_we_refuse_what_vllm_refuses_and_say_what_it_says(
    made: tuple[Path, dict[str, str | None]], installation: Installation, model_dir: Path
) -> None:
    folder, said = made
    assert len(said) >= 28
    for kind, message in said.items():
        examined = examine(folder / kind, str(model_dir), installation, os.environ, max_rank=MAX_RANK)
        refused = [finding for finding in examined.findings if finding.effect == "refused"]
        assert bool(refused) == (message is not None), kind
        if message is not None:
            assert _in_its_words(refused) in message, kind
            # nothing of what it says is missing
            assert kind == "no_alpha" or _in_its_words(refused) == message, kind


def _in_its_words(refused: list[Finding]) -> str:
    known = [finding for finding in refused if finding.about in ORDER]
    known.sort(key=lambda finding: ORDER.index(finding.about))
    return " ".join(finding.vllm or "" for finding in known or refused)


@pytest.mark.parametrize("kind", ["plain", "all-linear", "rslora", "rank_pattern", "alpha_pattern", "gaussian"])
def test_what_vllm_takes_gives_no_cause_to_warn(
    kind: str, made: tuple[Path, dict[str, str | None]], installation: Installation, model_dir: Path
) -> None:
    examined: Examined = examine(made[0] / kind, str(model_dir), installation, os.environ)
    assert (examined.findings, examined.max_rank) == ((), 8)


def test_an_adapter_is_as_large_as_was_said(made: tuple[Path, dict[str, str | None]], model_dir: Path) -> None:
    """On one layer of thirty: `layers_to_transform` of the script."""
    base = read_base(model_dir)
    adapter = read_adapter(made[0] / "all-linear")
    assert adapter.parameters == adapter_size(base, 4, r"model\.layers\.0\..*").trainable
