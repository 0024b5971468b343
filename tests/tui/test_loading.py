"""What other screens need is imported beside the first one, but not where a server is watched and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from store.database import open_writer
from store.location import database_file
from tests.tui.tune_session import session_in

LOOKED_AT = """
import asyncio, sys
from pathlib import Path
from tui.app import LlmtuneApp

HEAVY = {"scipy.special", "plotext", "tui.screens.tune"}

async def look():
    app = LlmtuneApp(Path(sys.argv[1]), None, monitor=sys.argv[2] == "monitor")
    async with app.run_test() as pilot:
        for _ in range(int(sys.argv[3])):
            await pilot.pause(0.1)
            if HEAVY <= sys.modules.keys():
                break
    print(*sorted(HEAVY & sys.modules.keys()))

asyncio.run(look())
"""


def loaded(data_dir: Path, which: str, tenths: int) -> list[str]:
    command = [sys.executable, "-c", LOOKED_AT, str(data_dir), which, str(tenths)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()


@pytest.mark.parametrize(
    ("sessions", "which", "tenths", "wanted"),
    [
        (True, "screens", 300, ["plotext", "scipy.special", "tui.screens.tune"]),
        (False, "screens", 30, ["plotext", "tui.screens.tune"]),
        (True, "monitor", 15, []),
    ],
)
def test_what_is_loaded_beside_the_first_screen(
    tmp_path: Path, sessions: bool, which: str, tenths: int, wanted: list[str]
) -> None:
    if sessions:
        session_in(tmp_path)
    else:
        open_writer(database_file(tmp_path)).close()
    assert loaded(tmp_path, which, tenths) == wanted
