"""What the person wants done when a session has ended, such as stopping the pod that costs money."""

import subprocess

from engine.keeper.journal import say

WITHIN_S = 600.0


def run_on_finish(command: str, within_s: float = WITHIN_S) -> None:
    """Run it in a shell and wait for its end; what it prints and how it ended go to the keeper's log."""
    say(f"on_finish: {command}")
    try:
        done = subprocess.run(command, shell=True, check=False, timeout=within_s, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        say(f"on_finish did not end within {within_s:g} s")
    else:
        say(f"on_finish ended with status {done.returncode}")
