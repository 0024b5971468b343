import shlex
from pathlib import Path

import pytest

from engine.launch.command import copyable, parse_serve, parse_serve_line, serve_argv, served_name
from engine.records import EngineError, Installation, ServerSpec

VLLM = Installation("vllm", "/v/bin/python", ("/v/bin/vllm",), "/v/bin", "0.25.1")


def argv(flags: dict[str, object], **rest: object) -> list[str]:
    return serve_argv(VLLM, ServerSpec("org/model", "127.0.0.1", 8000, flags, **rest))  # type: ignore[arg-type]


def tail(flags: dict[str, object], **rest: object) -> list[str]:
    return argv(flags, **rest)[7:]


def test_the_same_settings_give_the_same_line_in_any_order() -> None:
    one = argv({"max-num-seqs": 64, "enforce_eager": True}, served_name="m")
    assert one == argv({"enforce-eager": True, "--max-num-seqs": 64}, served_name="m")
    assert one == [
        "/v/bin/vllm", "serve", "org/model", "--host", "127.0.0.1", "--port", "8000", "--served-model-name", "m",
        "--enforce-eager", "--max-num-seqs", "64",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"enable-prefix-caching": False}, ["--no-enable-prefix-caching"]),
        ({"gpu-memory-utilization": 0.9}, ["--gpu-memory-utilization", "0.9"]),
        ({"max-model-len": -1}, ["--max-model-len=-1"]),
        ({"lora-modules": ["a=/a", "b=/b"]}, ["--lora-modules", "a=/a", "b=/b"]),
        ({"speculative-config": {"method": "ngram", "k": 2}}, ["--speculative-config", '{"k": 2, "method": "ngram"}']),
        ({"compilation_config.cudagraph_mode": "NONE"}, ["--compilation-config.cudagraph_mode", "NONE"]),
        ({"-tp": 2}, ["--tensor-parallel-size", "2"]),
        ({"max-num-seqs": None}, []),
    ],
)
def test_values_become_arguments(flags: dict[str, object], expected: list[str]) -> None:
    assert tail(flags) == expected


@pytest.mark.parametrize(
    ("flags", "rest"),
    [
        ({"port": 1}, {}),
        ({"model": "x"}, {}),
        ({"max-num-seqs": 1, "max_num_seqs": 2}, {}),
        ({"enable-prefix-caching": True, "no-enable-prefix-caching": True}, {}),
        ({"served-model-name": "a"}, {"served_name": "b"}),
        ({"max-num-seqs": 1}, {"extra_args": ("--max_num_seqs=2",)}),
        ({}, {"extra_args": ("--port", "2")}),
    ],
)
def test_a_flag_set_twice_is_refused(flags: dict[str, object], rest: dict[str, object]) -> None:
    with pytest.raises(EngineError, match="set twice"):
        argv(flags, **rest)


@pytest.mark.parametrize("value", [float("nan"), [], object(), "a\0b"])
def test_a_value_that_no_command_line_holds_is_refused(value: object) -> None:
    with pytest.raises(EngineError, match="--max-num-seqs"):
        argv({"max-num-seqs": value})


def test_a_local_model_is_absolute_since_the_server_runs_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m").mkdir()
    monkeypatch.chdir(tmp_path)
    spec = ServerSpec("m", "127.0.0.1", 8000)
    assert serve_argv(VLLM, spec)[2] == str(tmp_path / "m")
    assert served_name(spec) == str(tmp_path / "m")
    assert served_name(ServerSpec("m", "h", 1, {"served_model_name": ["a", "b"]})) == "a"


def test_a_pasted_line_with_continuations_environment_and_redirection() -> None:
    pasted = parse_serve_line(
        "CUDA_VISIBLE_DEVICES=0 HF_HOME=/hf vllm serve /m/qwen \\\n"
        "  --max-num-seqs=64 --gpu-memory-utilization 0.95 \\\n"
        "  --enable-prefix-caching --no-enable-chunked-prefill \\  \n --lora-modules a=/a b=/b -tp 2 \\\n"
        '  --speculative-config \'{"method": "ngram"}\' --served-model-name 14 --kv-cache-dtype fp8 > log 2>&1 &'
    )
    assert pasted.model == "/m/qwen"
    assert pasted.env == {"CUDA_VISIBLE_DEVICES": "0", "HF_HOME": "/hf"}
    assert pasted.flags == {
        "max-num-seqs": 64,
        "gpu-memory-utilization": 0.95,
        "enable-prefix-caching": True,
        "enable-chunked-prefill": False,
        "lora-modules": ["a=/a", "b=/b"],
        "tensor-parallel-size": 2,
        "speculative-config": {"method": "ngram"},
        "served-model-name": "14",
        "kv-cache-dtype": "fp8",
    }


@pytest.mark.parametrize(
    "text",
    [
        "python3 -m vllm.entrypoints.openai.api_server --model org/m --enforce-eager",
        "$ vllm serve org/m --enforce-eager",
        "vllm serve --enforce-eager org/m",
        "/v/bin/vllm serve --model=org/m --enforce-eager | tee log",
        "nohup env A=b /v/bin/python -m vllm.entrypoints.cli.main serve org/m --enforce-eager",
    ],
)
def test_other_ways_to_write_it(text: str) -> None:
    assert parse_serve(text) == ("org/m", {"enforce-eager": True})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "docker run vllm/vllm-openai --model x",
        "vllm serve",
        "vllm serve --max-num-seqs 3",
        "vllm serve 'x",
        "vllm serve m --a 1 --a 2",
        "vllm serve m --enforce-eager --model other",
        "vllm serve m --speculative-config {a:1}",
    ],
)
def test_what_is_no_command_line_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(EngineError) as error:
        parse_serve(text)
    assert "\n" not in str(error.value)


def test_what_is_copied_can_be_pasted_again_and_holds_no_secret() -> None:
    flags = {"api-key": "sk-very-secret", "chat-template": "a b.jinja", "max-num-seqs": 64, "enforce-eager": True}
    line = copyable(argv(dict(flags)), {"HF_TOKEN": "hf_secret", "HF_HOME": "/my hf"})
    assert "secret" not in line
    pasted = parse_serve_line(line)
    assert pasted.env["HF_HOME"] == "/my hf"
    assert {name: pasted.flags[name] for name in ("chat-template", "max-num-seqs", "enforce-eager")} == {
        name: flags[name] for name in ("chat-template", "max-num-seqs", "enforce-eager")
    }
    assert shlex.split(line)[2] == "/v/bin/vllm"
