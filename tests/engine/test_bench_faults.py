"""The benchmark process and the command when vLLM misbehaves. See bench_stand_in for what stands in for vLLM."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from engine.bench.client import Bench, open_bench
from engine.bench.outcome import no_success
from engine.processes.process import is_alive
from engine.records import BenchFailed, BenchRequest
from tests.engine.bench_stand_in import MARKER, SERVE, stand_in


def asks(mode: str, *more: str, timeout_s: float = 20.0) -> BenchRequest:
    return BenchRequest(("--mode", mode, *more), timeout_s)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    installation, environ = stand_in(tmp_path)
    bench = await open_bench(installation, environ, tmp_path / "logs" / "bench.log")
    yield bench
    await bench.close()


def load_goes_on(beacon: Path) -> bool:
    size = beacon.stat().st_size
    time.sleep(0.2)
    return beacon.stat().st_size > size


async def wait_for(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  nobody but another process can tell
            await asyncio.sleep(0.01)


def written(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


async def test_takes_run_after_run(bench: Bench, tmp_path: Path) -> None:
    first = await bench.run(asks("well", "--seed", "1"))
    assert bench.identity is not None
    identity = bench.identity
    second = await bench.run(asks("well", "--seed", "2"))
    assert bench.identity == identity
    assert (first.result["seed"], second.result["seed"]) == (1, 2)
    assert first.via == "process"
    assert first.started_at <= str(first.load_started_at) <= first.finished_at
    assert first.wall_s >= first.result["duration"] > 0
    assert first.client_lag_p99_ms is not None
    assert first.client_cpu_perc is not None


async def test_prints_go_to_the_log_and_not_between_the_answers(bench: Bench, tmp_path: Path) -> None:
    await bench.run(asks("well"))
    text = (tmp_path / "logs" / "bench.log").read_text()
    assert "printed by vllm" in text
    assert "printed by a library" in text


async def test_tokenizer_is_loaded_once(bench: Bench) -> None:
    for _ in range(3):
        outcome = await bench.run(asks("well"))
    assert outcome.result["tokenizers_loaded"] == 1


async def test_what_runs_leave_frozen_is_thawed_once_it_is_much(bench: Bench) -> None:
    frozen = [(await bench.run(asks(mode))).result["frozen"] for mode in ("well", "well", "leak", "well")]
    assert min(frozen[:3]) > 0
    assert frozen[3] == 0


async def test_arguments_are_parsed_anew(bench: Bench) -> None:
    results = [(await bench.run(asks("mutate"))).result["num_prompts"] for _ in range(2)]
    assert results == [5, 5]


async def test_own_folder_is_not_on_its_path_and_the_bin_of_vllm_is_first(bench: Bench, tmp_path: Path) -> None:
    result = (await bench.run(asks("well"))).result
    here = Path(__file__).resolve().parents[2]
    ours = {here, here / "engine" / "bench" / "standalone"}
    assert not ours & {Path(entry or os.getcwd()).resolve() for entry in result["path"]}
    assert result["environ"]["PATH"].split(os.pathsep)[0] == str(tmp_path / "bin")
    assert result["environ"]["LLMTUNE_SERVER"] == MARKER


async def test_only_finite_numbers_come_out(bench: Bench) -> None:
    result = (await bench.run(asks("refused"))).result
    assert result["mean_ttft_ms"] is None
    assert result["infinite"] is None
    assert result["request_rate"] == "inf"


async def test_a_stalled_client_shows(bench: Bench) -> None:
    outcome = await bench.run(asks("stall"))
    assert outcome.client_lag_p99_ms is not None
    assert outcome.client_lag_p99_ms > 200


async def test_a_run_without_success_says_why(bench: Bench) -> None:
    outcome = await bench.run(asks("refused"))
    assert outcome.errors == ("Not Found",)
    assert "none of 4 requests" in str(no_success(outcome))
    assert no_success(await bench.run(asks("well"))) is None


@pytest.mark.parametrize(
    ("mode", "more", "said"),
    [
        ("raise", (), "ValueError: two lines"),
        ("exit", (), "SystemExit: 3"),
        ("well", ("--no-such-flag",), "unrecognized arguments: --no-such-flag"),
        ("well", ("--seed", "many"), "argument --seed: invalid int value: 'many'"),
    ],
)
async def test_what_vllm_raises_is_one_line_and_the_process_stays(
    bench: Bench, mode: str, more: tuple[str, ...], said: str
) -> None:
    identity = bench.identity
    with pytest.raises(BenchFailed) as caught:
        await bench.run(asks(mode, *more))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    await bench.run(asks("well"))
    assert bench.identity == identity


async def test_a_run_that_hangs_is_ended_and_the_next_one_works(bench: Bench, tmp_path: Path) -> None:
    identity = bench.identity
    assert identity is not None
    with pytest.raises(BenchFailed, match="ended after 0 s"):
        await bench.run(asks("hang", timeout_s=0.3))
    assert not is_alive(identity)
    assert not load_goes_on(tmp_path / "beacon")
    assert (await bench.run(asks("well"))).result["completed"] == 4
    assert bench.identity != identity


async def test_a_cancelled_run_leaves_no_load(bench: Bench, tmp_path: Path) -> None:
    running = asyncio.create_task(bench.run(asks("hang")))
    await wait_for(lambda: written(tmp_path / "beacon"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not load_goes_on(tmp_path / "beacon")
    assert bench.identity is None
    assert (await bench.run(asks("well"))).result["completed"] == 4


async def test_a_process_that_dies_is_told_with_its_last_words(bench: Bench) -> None:
    with pytest.raises(BenchFailed, match="signal SIGKILL, 'last words'"):
        await bench.run(asks("die"))
    assert (await bench.run(asks("well"))).result["completed"] == 4


async def test_a_process_killed_between_runs_is_started_again(bench: Bench) -> None:
    identity = bench.identity
    assert identity is not None
    os.kill(identity.pid, signal.SIGKILL)
    await wait_for(lambda: bench.identity is None)
    assert (await bench.run(asks("well"))).result["completed"] == 4


async def test_close_ends_the_process(tmp_path: Path) -> None:
    installation, environ = stand_in(tmp_path)
    bench = await open_bench(installation, environ, tmp_path / "bench.log")
    identity = bench.identity
    assert identity is not None
    await bench.close()
    assert not is_alive(identity)


async def test_the_process_ends_with_the_one_who_started_it(tmp_path: Path) -> None:
    """A keeper that is killed cannot clean up: the load must end by itself, in the middle of a run."""
    code = (
        "import asyncio, os, sys; from pathlib import Path\n"
        "from tests.engine.bench_stand_in import stand_in\n"
        "from engine.bench.client import open_bench; from engine.records import BenchRequest\n"
        "async def main():\n"
        "    installation, environ = stand_in(Path(sys.argv[1]))\n"
        "    bench = await open_bench(installation, environ, Path(sys.argv[1]) / 'bench.log')\n"
        "    await bench.run(BenchRequest(('--mode', 'hang'), 60))\n"
        "asyncio.run(main())\n"
    )
    keeper = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(tmp_path), cwd=Path(__file__).resolve().parents[2]
    )
    await wait_for(lambda: written(tmp_path / "beacon"))
    keeper.kill()
    await keeper.wait()
    await asyncio.sleep(0.3)
    assert not load_goes_on(tmp_path / "beacon")


async def test_a_vllm_that_cannot_be_imported_is_one_line(tmp_path: Path) -> None:
    installation, environ = stand_in(tmp_path, "import os\nprint('no room', flush=True)\nos._exit(1)")
    with pytest.raises(BenchFailed, match="before it was ready: exit status 1, 'no room'"):
        await open_bench(installation, environ, tmp_path / "bench.log")


async def test_a_vllm_that_does_not_load_in_time_is_ended(tmp_path: Path) -> None:
    installation, environ = stand_in(tmp_path, "import time\ntime.sleep(60)")
    with pytest.raises(BenchFailed, match="was not loaded within 1 s"):
        await open_bench(installation, environ, tmp_path / "bench.log", ready_timeout_s=0.6)


async def test_a_python_that_is_not_there(tmp_path: Path) -> None:
    installation, environ = stand_in(tmp_path)
    gone = type(installation)("x", str(tmp_path / "no-python"), installation.command, installation.bin_dir, "0")
    with pytest.raises(BenchFailed, match="No such file"):
        await open_bench(gone, environ, tmp_path / "bench.log")


WITHOUT_ENTRY = SERVE.replace("async def main_async", "async def _inside").replace("main_async(args)", "_inside(args)")


@pytest.fixture
async def by_command(tmp_path: Path) -> Bench:
    installation, environ = stand_in(tmp_path, WITHOUT_ENTRY)
    bench = await open_bench(installation, environ, tmp_path / "bench.log")
    assert "main_async" in str(bench.no_process)
    assert bench.identity is None
    return bench


async def test_without_main_async_the_command_is_run(by_command: Bench, tmp_path: Path) -> None:
    outcome = await by_command.run(asks("well", "--seed", "7"))
    assert outcome.via == "command"
    assert outcome.result["seed"] == 7
    assert outcome.result["infinite"] is None
    assert (outcome.client_cpu_perc, outcome.client_lag_p99_ms, outcome.load_started_at) == (None, None, None)
    assert outcome.wall_s > outcome.result["duration"]
    assert "printed by vllm" in (tmp_path / "bench.log").read_text()


async def test_a_command_without_success_says_why(by_command: Bench) -> None:
    outcome = await by_command.run(asks("refused"))
    assert outcome.errors == ("Not Found",)
    assert "none of 4 requests" in str(no_success(outcome))


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("raise", "vllm bench serve failed: exit status 1, 'lines'"),
        ("exit", "vllm bench serve failed: exit status 3"),
        ("die", "vllm bench serve failed: signal SIGKILL, 'last words'"),
        ("no-result", "left no result"),
    ],
)
async def test_what_goes_wrong_with_the_command_is_one_line(by_command: Bench, mode: str, said: str) -> None:
    with pytest.raises(BenchFailed) as caught:
        await by_command.run(asks(mode))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_command_that_hangs_is_ended(by_command: Bench, tmp_path: Path) -> None:
    with pytest.raises(BenchFailed, match="ended after 2 s"):
        await by_command.run(asks("hang", timeout_s=1.5))
    assert not load_goes_on(tmp_path / "beacon")


async def test_a_cancelled_command_leaves_no_load(by_command: Bench, tmp_path: Path) -> None:
    running = asyncio.create_task(by_command.run(asks("hang")))
    await wait_for(lambda: written(tmp_path / "beacon"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not load_goes_on(tmp_path / "beacon")
