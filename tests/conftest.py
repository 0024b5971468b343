"""What all tests share: a data directory of their own, and the real vLLM and model that `make setup` prepares."""

import math
import os
from pathlib import Path

import pytest

from engine.launch.installation import find_vllm
from engine.launch.model import check_model
from engine.records import EngineError, Installation

REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_xdist_auto_num_workers() -> int:
    """Workers of `-n auto`: half as many again as cores, since keepers, beats and servers are waited for in real time.
    With more the load itself makes tests wait, and each worker imports everything, for three seconds."""
    return math.ceil(1.5 * len(os.sched_getaffinity(0)))


@pytest.fixture(autouse=True)
def _own_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the data, cache or configuration of the person who runs it, nor calls out. Only vLLM
    keeps its own cache: without it each start inspects the model's architecture anew, for ten seconds and more."""
    caches = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    monkeypatch.setenv("VLLM_CACHE_ROOT", os.environ.get("VLLM_CACHE_ROOT") or str(Path(caches) / "vllm"))
    monkeypatch.setenv("LLMTUNE_DATA_DIR", str(tmp_path / "data"))
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("LLMTUNE_VLLM", raising=False)


@pytest.fixture(scope="session")
def installation() -> Installation:
    """The real vLLM: LLMTUNE_VLLM, else the one of `make setup`."""
    path = os.environ.get("LLMTUNE_VLLM") or str(REPOSITORY / ".venv-vllm" / "bin" / "vllm")
    try:
        return find_vllm(path, os.environ)
    except EngineError as error:
        pytest.fail(f"run make setup ({error})", pytrace=False)


@pytest.fixture(scope="session")
def model_dir() -> Path:
    """The small real model: LLMTUNE_TEST_MODEL, else the one of `make setup`."""
    path = Path(os.environ.get("LLMTUNE_TEST_MODEL") or REPOSITORY / "models" / "smollm2-135m")
    try:
        check_model(str(path))
    except EngineError as error:
        pytest.fail(f"run make setup ({error})", pytrace=False)
    return path
