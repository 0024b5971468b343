"""Makes a new database: `python -m store.make PATH`, in a process of its own.

What applies the steps of the schema takes 15 MiB that a program which only reads would keep until it ends.
"""

import subprocess
import sys
from pathlib import Path

from store.database import open_writer
from store.errors import StoreError


def make_database(path: Path) -> None:
    """Make the database at `path`, or leave it as it is where there is one. Raises StoreError, as open_writer."""
    made = subprocess.run(
        [sys.executable, "-m", "store.make", str(path)], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if made.returncode:
        raise StoreError(made.stderr.decode(errors="replace").strip() or f"{path} could not be made")


def main() -> int:
    try:
        open_writer(Path(sys.argv[1])).close()
    except StoreError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
