from pathlib import Path

import engine
from engine.launch.environment import child_environ, server_environ, with_client_key
from engine.records import Installation, ServerSpec

VLLM = Installation("vllm", "/v/bin/python", ("/v/bin/vllm",), "/v/bin", "0.25.1")
OURS = str(Path(engine.__file__).resolve().parent.parent)


def test_their_programs_come_first_and_our_python_does_not_leak() -> None:
    base = {
        "PATH": "/usr/bin:/v/bin:/bin",
        "PYTHONPATH": f"{OURS}:/their/packages",
        "VIRTUAL_ENV": "/ours",
        "PYTHONHOME": "/ours",
        "VLLM_ENABLE_STARTUP_PLAN": "1",
        "HF_HUB_OFFLINE": "0",
        "LLMTUNE_SERVER": "of another server",
    }
    environ = child_environ("/v/bin", base)
    assert environ == {
        "PATH": "/v/bin:/usr/bin:/bin",
        "PYTHONPATH": "/their/packages",
        "HF_HUB_OFFLINE": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "NO_COLOR": "1",
        "VLLM_LOGGING_COLOR": "0",
    }
    assert "PYTHONPATH" not in child_environ("/v/bin", {"PYTHONPATH": OURS})


def test_a_server_carries_its_marker_and_the_variables_of_its_spec() -> None:
    spec = ServerSpec("m", "127.0.0.1", 8000, env={"HF_HOME": "/hf", "LLMTUNE_SERVER": "forged"})
    environ = server_environ(VLLM, spec, "the-marker", {"HF_HOME": "/home", "HF_TOKEN": "kept"})
    assert environ["LLMTUNE_SERVER"] == "the-marker"
    assert environ["SPT_NOENV"] == "1"
    assert (environ["HF_HOME"], environ["HF_TOKEN"]) == ("/hf", "kept")


def test_a_client_has_the_key_that_its_server_wants() -> None:
    assert with_client_key({"A": "1", "OPENAI_API_KEY": "other"}) == {"A": "1", "OPENAI_API_KEY": "other"}
    assert with_client_key({"VLLM_API_KEY": "k", "OPENAI_API_KEY": "other"})["OPENAI_API_KEY"] == "k"
