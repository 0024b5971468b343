"""Write the README's pictures: the screens on recorded data, as SVG. The same picture each time.

    python scripts/export_screens.py docs/images [NAME]...

Nothing is started, and nothing is kept but the pictures.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from lora_recording import UNDER_WAY, make_trainings
from recordings import STARVED_AT, make_starved, recorded_gpus, unpack_sweep
from rewind import rewind

import store.clock
from engine.keeper.lock import KeeperLock
from engine.keeper.places import keeper_places
from store.location import database_file

README = Path(__file__).resolve().parent.parent / "README.md"
README_PLAN = README.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
SMALL, LARGE = (80, 24), (140, 45)
MID_RUN, AFTER = "2026-11-30T11:53:52.000Z", "2026-11-30T11:56:00.000Z"
"""Of the sweep: the last launch's first run that counts is under way; it has ended."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What is pressed on which recording: the starved server, the sweep in mid-run or when done, a training, or
    nothing at all."""

    recording: str
    size: tuple[int, int]
    keys: tuple[str, ...]


PICTURES = {
    "servers": Picture("starved", SMALL, ("1",)),
    "monitor": Picture("starved", SMALL, ("2",)),
    "monitor-large": Picture("starved", LARGE, ("2",)),
    "events": Picture("starved", SMALL, ("2", "e")),
    "plan": Picture("nothing", SMALL, ("3",)),
    "tune": Picture("mid-run", SMALL, ("3",)),
    "sessions": Picture("done", SMALL, ("4", "enter")),
    "lora": Picture("training", SMALL, ("5",)),
    "lora-large": Picture("training", LARGE, ("5",)),
    "pareto": Picture("done", SMALL, ("4", "enter", "P")),
    "charts": Picture("done", LARGE, ("4", "enter", "r", "end", "enter")),
}


class Recordings:
    """The data directories, and the moment at which each is looked at."""

    def __init__(self, folder: Path, held: ExitStack) -> None:
        self.now = {"starved": store.clock.format_utc(STARVED_AT), "mid-run": MID_RUN, "done": AFTER, "nothing": AFTER}
        self.places = {name: folder / name for name in self.now}
        for name in ("mid-run", "done"):
            unpack_sweep(self.places[name])
        self.places["nothing"].mkdir()
        self.places["training"] = folder / "training"
        self.now["training"] = make_trainings(self.places["training"])
        self._hold(held, "training", "training", UNDER_WAY)
        number = make_starved(self.places["starved"], recorded_gpus(self.places["done"]))
        self._hold(held, "starved", "server", number)
        for session in rewind(database_file(self.places["mid-run"]), MID_RUN):
            self._hold(held, "mid-run", "session", session)

    def _hold(self, held: ExitStack, name: str, kind: Any, number: int) -> None:
        """A keeper's lock, as one that lives has it."""
        lock = KeeperLock.acquire(keeper_places(self.places[name], kind, number).lock)
        assert lock is not None
        held.callback(lock.release)


async def export(recordings: Recordings, name: str, target: Path) -> None:
    """One picture."""
    from tui.app import LlmtuneApp

    picture = PICTURES[name]
    at = recordings.now[picture.recording]
    moment = store.clock.parse_utc(at)
    store.clock.utc_now = lambda: at
    app = LlmtuneApp(recordings.places[picture.recording], vllm=None, now=lambda: local(moment))
    async with app.run_test(size=picture.size) as pilot:
        await read(app)
        for key in picture.keys:
            await pilot.press(key)
            await read(app)
        while any(worker.is_running for worker in app.workers if worker.group == "preview"):
            await read(app)  # the editor's prices are worked out
        await pilot.pause()
        drawn = app.export_screenshot(title=f"llmtune · {name}")
    # Without it some viewers close up the blanks.
    drawn = drawn.replace("<text ", '<text xml:space="preserve" ')
    (target / f"{name}.svg").write_text(drawn, encoding="utf-8")


def local(moment: datetime) -> datetime:
    return moment.astimezone().replace(tzinfo=None)


async def read(app: Any) -> None:
    """Until the present screen was fed twice: the first reading may have been under way."""
    wanted = app.readings + 2
    while app.readings < wanted:
        if not app.is_running:
            raise RuntimeError("the program has ended; its error is above")
        app.ask()
        await asyncio.sleep(0.05)


def write(target: Path, names: list[str]) -> None:
    """Those pictures into the folder."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    no_servers_of_this_machine()
    first_plan_of_any_machine()
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as held:
        os.environ["LLMTUNE_RUNTIME_DIR"] = f"{folder}/runtime"
        recordings = Recordings(Path(folder), held)
        for name in names:
            asyncio.run(export(recordings, name, target))


def no_servers_of_this_machine() -> None:
    import tui.monitor.finding

    tui.monitor.finding.finder = lambda: tuple


def first_plan_of_any_machine() -> None:
    """The plan that the editor begins with names this checkout's folders; in its place the README's."""
    import tui.screens.plan_editing
    from tuning.plans.plan_file import read_plan

    tui.screens.plan_editing.demo_plan = lambda *_, **__: read_plan(README_PLAN, where="plan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PICTURES)}; all where none is given")
    args = parser.parse_args()
    if not set(args.names) <= set(PICTURES):
        parser.error("there is no such picture")
    write(args.target, args.names or list(PICTURES))


if __name__ == "__main__":
    main()
