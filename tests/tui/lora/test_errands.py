"""A command of ours that a screen has done."""

import time
from pathlib import Path

from tui import errands


def test_a_command_goes_on_by_itself_and_says_what_came_of_it(tmp_path: Path) -> None:
    errand = errands.begin(tmp_path, "listing", ["lora", "list"], None)
    deadline = time.monotonic() + 30
    while errand.status is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert errand.status == 0
    assert errand.outcome().startswith("there is no adapter yet")
    assert errand.log.stat().st_mode & 0o777 == 0o600


def test_a_command_that_fails_says_so(tmp_path: Path) -> None:
    errand = errands.begin(tmp_path, "showing x", ["lora", "show", "x"], None)
    assert errand.process.wait(30) != 0
    assert errand.outcome().startswith("showing x: ")
    assert "nothing has been recorded" in errand.outcome()
