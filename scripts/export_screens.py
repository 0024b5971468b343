"""Write the README's pictures: the screens on a real data directory, as SVG.

    python scripts/export_screens.py DATA_DIR docs/images [servers|monitor|tune|sessions]...

Best while a sweep runs there, so that the monitor has a server to show. Nothing is started or changed.
"""

import asyncio
import sys
from pathlib import Path

from store.location import database_file
from tui.app import LlmtuneApp

SIZE = (80, 24)
SCREENS = {"servers": ("1",), "monitor": ("2",), "tune": ("3",), "sessions": ("4", "enter")}
# Long enough for the poller to read, and for the monitor to have a history to draw.
SETTLE_S = {"monitor": 12.0}
SETTLE_OTHERS_S = 3.0


async def export(data_dir: Path, target: Path, wanted: list[str]) -> None:
    """One file a screen, named after it; of the sessions, the report of the first."""
    target.mkdir(parents=True, exist_ok=True)
    app = LlmtuneApp(data_dir, vllm=None)
    async with app.run_test(size=SIZE) as pilot:
        for name in wanted:
            for key in SCREENS[name]:
                await pilot.press(key)
                await pilot.pause(SETTLE_S.get(name, SETTLE_OTHERS_S))
            picture = app.export_screenshot(title=f"llmtune · {name}")
            (target / f"{name}.svg").write_text(picture, encoding="utf-8")


def main() -> None:
    wanted = sys.argv[3:] or list(SCREENS)
    if len(sys.argv) < 3 or not set(wanted) <= set(SCREENS) or not database_file(Path(sys.argv[1])).is_file():
        sys.exit(__doc__)
    asyncio.run(export(Path(sys.argv[1]), Path(sys.argv[2]), wanted))


if __name__ == "__main__":
    main()
