"""The arrows between the rooms, and who may know which library. Each rule has its reason; see CONTRIBUTING.md."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("store", "engine", "tuning", "lora", "tui")
# Runs in the server's Python, where nothing of ours can be imported and vLLM can.
STANDALONE = Path("engine") / "bench" / "standalone"
# Runs in the trainer's Python.
TRAINING = Path("lora") / "standalone"

MAY_IMPORT = {
    "store": frozenset[str](),
    "engine": frozenset({"store"}),
    "tuning": frozenset({"engine", "store"}),
    "lora": frozenset({"engine", "store"}),
    "tui": frozenset({"tuning", "lora", "engine", "store"}),
}
WHY = {
    "store": "the file is read by every room, so it knows none of them",
    "engine": "one server and one machine are facts that hold without any plan",
    "tuning": "a sweep must run where no screen is",
    "lora": "a training must run where no screen is",
    "tui": "the screens show everything",
}
LORA_MAY_ALSO = "tuning.statistics"
SERVER_LIBRARIES = frozenset({"vllm", "torch", "transformers", "peft", "bitsandbytes"})


class Import(NamedTuple):
    path: Path  # relative to the repository
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} imports {self.module}"

    @property
    def root(self) -> str:
        return self.module.partition(".")[0]


def imports_of(path: Path, source: str) -> Iterator[Import]:
    """Every import of a module, also inside functions and under TYPE_CHECKING; relative ones made absolute."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (Import(path, node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.parts[: len(path.parts) - node.level] if node.level else ()
            base = ".".join((*package, *([node.module] if node.module else [])))
            # `from tuning import statistics` imports the module tuning.statistics.
            yield from (Import(path, node.lineno, base if node.module else f"{base}.{a.name}") for a in node.names[:1])
            if node.module and "." not in base and base in ROOMS:
                yield from (Import(path, node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, (ast.Attribute, ast.Name))
            and (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id)
            in ("import_module", "__import__")
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield Import(path, node.lineno, str(node.args[0].value))


def all_imports() -> list[Import]:
    found = []
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            path = file.relative_to(ROOT)
            found += imports_of(path, file.read_text(encoding="utf-8"))
    return found


def breaches(imports: list[Import]) -> list[Import]:
    """Imports against the arrows."""
    return [
        one
        for one in imports
        if (room := one.path.parts[0]) in ROOMS
        and one.root in ROOMS
        and one.root != room
        and one.root not in MAY_IMPORT[room]
        and not (room == "lora" and (one.module == "tuning" or one.module.startswith(LORA_MAY_ALSO)))
    ]


IMPORTS = all_imports()


@pytest.mark.parametrize("room", ROOMS)
def test_arrows_point_one_way(room: str) -> None:
    found = [str(one) for one in breaches(IMPORTS) if one.path.parts[0] == room]
    assert not found, f"{WHY[room]}: {found}"


def test_no_room_imports_the_tests() -> None:
    """The wheel holds none."""
    assert not [str(one) for one in IMPORTS if one.root == "tests"]


def test_only_the_screens_know_textual() -> None:
    """Everything else runs in keepers and pipes, and textual costs a third of a second to load."""
    assert not [str(one) for one in IMPORTS if one.root == "textual" and one.path.parts[0] != "tui"]


def test_only_the_chart_knows_plotext() -> None:
    """Its module state is global and NaN kills its process: one module guards both."""
    assert not [str(one) for one in IMPORTS if one.root == "plotext" and one.path != Path("tui/chart.py")]


def test_no_process_of_ours_loads_the_servers_libraries() -> None:
    """vLLM lives in another environment, and importing it takes up to a minute."""
    found = [
        str(one)
        for one in IMPORTS
        if one.root in SERVER_LIBRARIES and STANDALONE not in one.path.parents and TRAINING not in one.path.parents
    ]
    assert not found


def test_standalone_files_import_nothing_of_ours() -> None:
    """Our folder is never on the path of the server's Python: our `store` could hide a module of somebody else's."""
    inside = [one for one in IMPORTS if STANDALONE in one.path.parents or TRAINING in one.path.parents]
    assert not [str(one) for one in inside if one.root in ROOMS]


def test_package_inits_import_nothing() -> None:
    """`from store.records import …` must not load what only the writer needs."""
    assert not [str(one) for one in IMPORTS if one.path.name == "__init__.py"]


@pytest.mark.parametrize(
    ("path", "source", "bad"),
    [
        ("store/a.py", "import engine.gpus.gpu", True),
        ("engine/a.py", "def f():\n    from tuning.plans.grid import candidates", True),
        ("tuning/a.py", "from tui import chart", True),
        ("engine/keeper/a.py", "from ..gpu import GpuReader", False),
        ("engine/a.py", "import importlib\nimportlib.import_module('tui.app')", True),
        ("lora/a.py", "from tuning.statistics import t_interval", False),
        ("lora/a.py", "from tuning import sweep", True),
        ("lora/a.py", "from tuning.sweeping.sweep import Sweep", True),
        ("tui/a.py", "import store.reader, engine.gpus.gpu, tuning.plans.grid", False),
    ],
)
def test_the_check_sees_a_breach(path: str, source: str, bad: bool) -> None:
    assert bool(breaches(list(imports_of(Path(path), source)))) is bad


HEAVY = (
    "textual",
    "httpx",
    "httpcore",
    "sqlite_utils",
    "scipy",
    "numpy",
    "pynvml",
    "plotext",
    "prometheus_client",
    "psutil",
    "jinja2",
    "asyncio",
)


def test_the_command_line_loads_nothing_heavy() -> None:
    code = f"import sys, tui.cli; tui.cli.build_parser(); print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"
