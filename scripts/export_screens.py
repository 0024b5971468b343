"""Write the README's pictures: the screens on a real data directory, as SVG.

    python scripts/export_screens.py DATA_DIR docs/images [--at UTC] [servers|monitor|tune|sessions]...

As things stand now, best while a sweep runs there; with --at, as they stood at that moment of a sweep that has ended
(2026-11-30T11:53:52.000Z). Nothing is started, and the directory is left as it is.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import store.clock
from engine.keeper.lock import KeeperLock
from engine.keeper.places import keeper_places
from store.location import database_file

sys.path.insert(0, str(Path(__file__).parent))
from rewind import rewind

SIZE = (80, 24)
# The monitor over a minute, where each second has a place of its own.
SCREENS = {"servers": ("1",), "monitor": ("2", "w", "w"), "tune": ("3",), "sessions": ("4", "enter")}
SETTLE_S = 3.0  # long enough for the poller to read


async def export(data_dir: Path, target: Path, wanted: list[str], now: Callable[[], datetime] = datetime.now) -> None:
    """One file a screen, named after it; of the sessions, the report of the first."""
    from tui.app import LlmtuneApp  # once the clock is set

    target.mkdir(parents=True, exist_ok=True)
    app = LlmtuneApp(data_dir, vllm=None, now=now)
    async with app.run_test(size=SIZE) as pilot:
        for name in wanted:
            for key in SCREENS[name]:
                await pilot.press(key)
                await pilot.pause(SETTLE_S)
            picture = app.export_screenshot(title=f"llmtune · {name}")
            # Without it some viewers close up the blanks.
            picture = picture.replace("<text ", '<text xml:space="preserve" ')
            (target / f"{name}.svg").write_text(picture, encoding="utf-8")


async def export_moment(data_dir: Path, target: Path, wanted: list[str], at: str) -> None:
    """The same of a copy that is set back to `at`, where the sessions that ran then have a keeper as they had."""
    moment = store.clock.parse_utc(at)
    store.clock.utc_now = lambda: at
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LLMTUNE_RUNTIME_DIR"] = f"{folder}/runtime"
        copy = Path(folder) / "data"
        shutil.copytree(data_dir, copy)
        running = rewind(database_file(copy), at)
        locks = [KeeperLock.acquire(keeper_places(copy, "session", number).lock) for number in running]
        await export(copy, target, wanted, lambda: moment.astimezone().replace(tzinfo=None))
        for lock in locks:
            if lock is not None:
                lock.release()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument(
        "screens", nargs="*", metavar="SCREEN", help=f"of {', '.join(SCREENS)}; all where none is given"
    )
    parser.add_argument("--at", metavar="UTC", help="a moment that the database has recorded")
    args = parser.parse_intermixed_args()
    wanted = args.screens or list(SCREENS)
    if not set(wanted) <= set(SCREENS) or not database_file(args.data_dir).is_file():
        parser.error("there is no such screen, or no database in that folder")
    if args.at is None:
        asyncio.run(export(args.data_dir, args.target, wanted))
    else:
        asyncio.run(export_moment(args.data_dir, args.target, wanted, args.at))


if __name__ == "__main__":
    main()
