"""The Servers screen: what it shows of each server, every key, the form, the log."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from engine.keeper.client import KeeperGone
from engine.records import EngineError
from store.records import ServerRecord
from store.writer import Writer
from tests.tui.conftest import NOW, fed, screen_text, server
from tui.app import LlmtuneApp
from tui.screens.monitor import MonitorScreen
from tui.screens.new_server import NewServer
from tui.screens.server_details import ServerDetails
from tui.screens.servers import ServersScreen
from tui.servers import server_form
from tui.servers.log_tail import KEPT_LINES, TAIL_BYTES, LogTail
from tui.servers.server_form import Wish, read_wish
from tui.servers.server_text import checklist, command_line
from tui.widgets.confirm import Confirm
from tui.widgets.copy import CopyPanel
from tui.widgets.server_table import ServerTable


class Asked(list[tuple[str, int, str]]):
    """Commands that reached the keeper's client."""

    def call(self, data_dir: Path, kind: str, number: int, command: str, **_: Any) -> dict[str, Any]:
        self.append((kind, number, command))
        return {"message": "stopping"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked = Asked()
    monkeypatch.setattr("engine.keeper.client.call", asked.call)
    return asked


def words(record: ServerRecord) -> list[str]:
    return [item.plain for item in checklist(record, NOW)]


@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_a_server_is_one_line_with_its_numbers(app: LlmtuneApp, filled: Path, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await fed(pilot)
        rows = [line for line in screen_text(app).splitlines() if "qwen-7b" in line]
        assert rows[0].split() == ["●", "ready", "qwen-7b", "qwen2.5-7b", "8000", "0", "1,973,808", "1:05:15"]
        rows = [line for line in screen_text(app).splitlines() if "smollm2-135m" in line]
        assert rows[0].split() == ["◐", "starting", "smollm2", "smollm2-135m", "8001", "cpu", "–", "0:12"]


async def test_the_failure_stands_before_the_log(app: LlmtuneApp, filled: Path) -> None:
    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.press("j", "down")
        await fed(pilot, until=lambda: "✗ the KV cache" in screen_text(app))
        shown = screen_text(app)
        assert (
            shown.index("✗ KV cache") < shown.index("✗ the KV cache is too small") < shown.index("Model loading took")
        )
        assert "(EngineCore pid=693)" not in shown  # a head of sixty characters leaves no room for the message
        await pilot.press("k", "k")
        await fed(pilot)
        assert "✗ the KV cache" not in screen_text(app)


def test_the_checklist_follows_the_log(tmp_path: Path) -> None:
    assert words(server(tmp_path)) == [
        "✔ weights 14.29 GiB 1.8 s",
        "✔ compile 24.6 s",
        "✔ KV cache 1,973,808 tokens",
        "✔ graphs 6 s",
        "✔ ready after 1:25",
    ]
    loading = server(tmp_path, state="starting", ready_at=None, facts={"weights_gib": 14.29, "load_s": 1.8})
    assert words(loading)[1:] == ["◐ compile", "· KV cache", "· graphs", "· ready"]
    failed = server(tmp_path, state="failed", ready_at=None, facts={})
    assert words(failed)[0] == "✗ weights"
    eager = {"weights_gib": 0.25, "kv_cache_tokens": 117504, "engine_config": {"enforce_eager": "True"}}
    assert words(server(tmp_path, facts=eager))[1:4] == ["– compile", "✔ KV cache 117,504 tokens", "– graphs"]


async def test_stop_asks_once_and_tells_the_keeper(app: LlmtuneApp, filled: Path, asked: Asked) -> None:
    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.press("j", "x")
        await fed(pilot)
        assert isinstance(app.screen, Confirm)
        assert "Stop qwen-7b on port 8000?" in screen_text(app)
        await pilot.press("n")
        await pilot.pause()
        assert asked == []
        await pilot.press("x", "y")
        await fed(pilot, until=lambda: bool(asked))
        assert asked == [("server", 1, "stop")]
        await fed(pilot)
        assert "✔ qwen-7b: stopping" in screen_text(app)
        await pilot.press("r", "enter")
        await fed(pilot, until=lambda: len(asked) == 2)
        assert asked[1] == ("server", 1, "restart")


async def test_a_keeper_that_is_gone_is_one_line(
    app: LlmtuneApp, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any) -> dict[str, Any]:
        raise KeeperGone("no keeper runs for server 2 [/x]")

    monkeypatch.setattr("engine.keeper.client.call", gone)
    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.press("r", "enter")
        await fed(pilot, until=lambda: "✗ no keeper runs for server 2 [/x]" in screen_text(app))
        await pilot.press("x", "y")  # what it left is ended all the same
        await fed(pilot, until=lambda: "was gone already" in screen_text(app))


async def test_a_server_of_a_session_is_not_stopped_here(
    app: LlmtuneApp, filled: Path, writer: Writer, asked: Asked
) -> None:
    from tests.tui.test_app import session

    number = writer.insert(session(state="paused"))
    writer.insert(server(filled, name="launch-3", session_id=number))
    async with app.run_test() as pilot:
        await fed(pilot)
        for key in ("x", "r"):
            await pilot.press(key)
            await fed(pilot)
            assert f"belongs to session {number}" in screen_text(app)
        assert asked == []


async def test_copy_sends_and_shows_the_command_line(app: LlmtuneApp, filled: Path) -> None:
    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.press("j")
        await fed(pilot)
        await pilot.press("y")
        await pilot.pause()
        assert isinstance(app.screen, CopyPanel)
        line = "CUDA_VISIBLE_DEVICES=0 /venv/bin/vllm serve /models/qwen2.5-7b --port 8000 --max-num-seqs 256"
        assert app.clipboard == line
        assert line.split()[-1] in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, ServersScreen)


async def test_details_log_and_monitor_keys(app: LlmtuneApp, filled: Path) -> None:
    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.press("j")
        await fed(pilot)
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, ServerDetails)
        assert "481.9x at 4,096 tokens" in screen_text(app)
        assert "FLASH_ATTN" in screen_text(app)
        await pilot.press("escape", "l")
        await pilot.pause()
        assert app.focused is not None
        assert app.focused.id == "log"
        await pilot.press("l", "m")
        await fed(pilot)
        assert isinstance(app.screen, MonitorScreen)
        assert "127.0.0.1:8000" in screen_text(app)


async def test_the_form_says_what_is_wrong_in_one_line(app: LlmtuneApp, filled: Path, tmp_path: Path) -> None:
    no_model = tmp_path / "empty"
    no_model.mkdir()
    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.press("n")
        await pilot.pause()
        form = app.screen
        assert isinstance(form, NewServer)
        await pilot.press("enter")
        await pilot.pause()
        assert "✗ no model is given" in screen_text(app)
        app.vllm = str(tmp_path / "no-vllm")
        form.query_one("#line", Input).value = str(no_model)
        await pilot.press("enter")
        await fed(pilot, until=lambda: "does not exist" in screen_text(app))
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, ServersScreen)


async def test_the_form_starts_what_it_says(
    app: LlmtuneApp, filled: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wishes: list[Wish] = []

    def start(data_dir: Path, vllm: str | None, wish: Wish) -> int:
        wishes.append(wish)
        return writer.insert(server(filled, name=wish.name, state="starting", ready_at=None, facts={}))

    monkeypatch.setattr("tui.screens.new_server.start_wish", start)
    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.press("n")
        await pilot.pause()
        await pilot.press(*"org/model", "tab", *"--max-num-seqs 64", "tab", *"8123", "tab", *"mine", "enter")
        await fed(pilot, until=lambda: isinstance(app.screen, ServersScreen))
        assert wishes == [Wish("mine", "org/model", port=8123, flags={"max-num-seqs": 64})]
        await fed(pilot, until=lambda: "◐ starting  mine" in screen_text(app))


@pytest.mark.parametrize("listed_first", [True, False])
async def test_the_cursor_goes_to_what_was_started_whichever_comes_first(
    app: LlmtuneApp, filled: Path, writer: Writer, listed_first: bool
) -> None:
    """The list that holds it, or the word that it was started; and whatever row is highlighted meanwhile."""
    async with app.run_test() as pilot:
        await fed(pilot)
        screen = app.screen
        assert isinstance(screen, ServersScreen)
        table = screen.query_one(ServerTable)
        number = writer.insert(server(filled, name="mine", state="starting", ready_at=None, facts={}))
        if listed_first:
            await fed(pilot, until=lambda: "mine" in screen_text(app))
            table.move_cursor(row=2)
            await pilot.pause()
        screen.choose_started(number)
        screen.choose()  # a row that was highlighted before
        await fed(pilot, until=lambda: "◐ starting  mine" in screen_text(app))
        assert table.chosen is not None
        assert table.chosen.id == number
        await pilot.press("down")
        await fed(pilot, until=lambda: "◐ starting  mine" not in screen_text(app))  # and may be moved away


async def test_a_server_for_everybody_takes_a_second_enter(
    app: LlmtuneApp, filled: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wishes: list[Wish] = []

    def start(data_dir: Path, vllm: str | None, wish: Wish) -> int:
        wishes.append(wish)
        return writer.insert(server(filled, name=wish.name, state="starting", ready_at=None, facts={}))

    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    monkeypatch.setattr("tui.screens.new_server.start_wish", start)
    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.press("n")
        await pilot.pause()
        app.screen.query_one("#line", Input).value = "vllm serve org/model --host 0.0.0.0"
        await pilot.press("enter")
        await pilot.pause()
        assert "lets anyone who reaches it" in screen_text(app)
        assert wishes == []
        await pilot.press("enter")
        await fed(pilot, until=lambda: isinstance(app.screen, ServersScreen))
        assert [wish.host for wish in wishes] == ["0.0.0.0"]


async def test_a_pasted_command_of_several_lines_becomes_one(app: LlmtuneApp, filled: Path) -> None:
    from textual.events import Paste

    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.press("n")
        await pilot.pause()
        field = app.screen.query_one("#line", Input)
        field.post_message(Paste("vllm serve org/model \\\n  --port 8005 \\\n  --max-num-seqs 4\n"))
        await pilot.pause()
        assert field.value == "vllm serve org/model --port 8005 --max-num-seqs 4"
        assert read_wish(field.value) == Wish("model", "org/model", port=8005, flags={"max-num-seqs": 4})


def test_a_wish_reads_environment_host_and_port_of_a_pasted_line() -> None:
    wish = read_wish("HF_HOME=/hf vllm serve /m/qwen --host 0.0.0.0 --port 9000 --served-model-name q", "", "9001", "")
    assert wish == Wish("qwen", "/m/qwen", "0.0.0.0", 9001, None, {"served-model-name": "q"}, {"HF_HOME": "/hf"})
    with pytest.raises(EngineError, match="is no port"):
        read_wish("org/model", "", "http")


def test_a_free_port_is_found_where_none_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr("engine.launch.installation.find_vllm", lambda *_: "installation")
    monkeypatch.setattr("engine.processes.ports.free_port", lambda host: 8042)
    monkeypatch.setattr("engine.hand_servers.start_server", lambda *args: started.append(args) or 7)
    assert server_form.start_wish(tmp_path, None, read_wish("org/model")) == 7
    assert (started[0][2].port, started[0][3]) == (8042, "model")


async def test_the_list_keeps_its_cursor_when_servers_come(app: LlmtuneApp, filled: Path, writer: Writer) -> None:
    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.press("j")
        await fed(pilot)
        writer.insert(server(filled, name="another", port=8010))
        await fed(pilot, until=lambda: "another" in screen_text(app))
        chosen = app.screen.query_one(ServerTable).chosen
        assert chosen is not None
        assert chosen.name == "qwen-7b"


def test_a_log_is_read_in_bounded_pieces(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = LogTail(str(path))
    assert tail.read().note == f"no log at {tail.path}"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(200_000)))
    first = tail.read()
    assert first.lines[-1] == "line 199999"
    assert len(first.lines) <= KEPT_LINES
    assert first.end <= TAIL_BYTES // len("line 199999\n") + 1
    with path.open("ab") as log:
        log.write(b"half a")
    assert tail.read().end == first.end
    with path.open("ab") as log:
        log.write(b" line\n\x1b[31mred\x1b[0m\n 10%|#\r 20%|##\n")
    assert tail.read().lines[-3:] == ("half a line", "red", " 20%|##")
    path.write_bytes(b"anew\n")
    assert tail.read().lines == ("anew",)


def test_our_own_looks_at_the_gauges_are_left_out_and_failed_ones_are_not(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(
        '(APIServer pid=7) INFO:     127.0.0.1:53168 - "GET /metrics HTTP/1.1" 200 OK\n'
        'INFO:     127.0.0.1:53168 - "GET /metrics HTTP/1.1" 500 Internal Server Error\n'
        'INFO:     127.0.0.1:53172 - "POST /v1/completions HTTP/1.1" 200 OK\n'
    )
    shown = LogTail(str(path)).read()
    assert len(shown.lines) == shown.end == 2
    assert "500" in shown.lines[0]
    assert "/v1/completions" in shown.lines[1]


async def test_the_log_follows_until_one_scrolls_up(app: LlmtuneApp, filled: Path) -> None:
    log = filled / "smollm2.log"
    log.write_text("".join(f"first {number}\n" for number in range(60)))
    async with app.run_test() as pilot:
        await fed(pilot, until=lambda: "first 59" in screen_text(app))
        with log.open("a") as more:
            more.write("then this\n")
        await fed(pilot, until=lambda: "then this" in screen_text(app))
        await pilot.press("l", "home")
        await pilot.pause()
        with log.open("a") as more:
            more.write("and that\n")
        await fed(pilot)
        await asyncio.sleep(0.3)
        await fed(pilot)
        assert "first 0" in screen_text(app)
        assert "and that" not in screen_text(app)


def test_the_command_line_hides_secrets(tmp_path: Path) -> None:
    record = server(tmp_path, command=["vllm", "serve", "m", "--api-key", "sesame"], env={"HF_TOKEN": "hf_x"})
    assert command_line(record) == "HF_TOKEN='***' vllm serve m --api-key '***'"
