"""The arrows between the rooms, and who may know which library. Each rule has its reason; see CONTRIBUTING.md."""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
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
# The sub-rooms of a room, layer by layer: each may import those of the layers before its own.
LAYERS = {
    "engine": (
        ("processes", "scrape"),
        ("bench", "launch"),
        ("failures", "gpus", "keeper", "logs"),
        ("samples",),
        ("limiting", "preflight"),
    ),
    "tuning": (
        ("verdict",),
        ("plans", "scheduling"),
        ("checks", "judgement"),
        ("reporting",),
        ("compared", "imported", "sweeping"),
    ),
    "lora": (
        ("sizes", "standalone"),
        ("adapters",),
        ("process",),
        ("data",),
        ("evaluations", "trainings"),
        ("served",),
    ),
}
# What of the screens only says, reads and computes; see PURE_MAY_NOT.
PURE = ("lora", "monitor", "panels", "runs", "servers", "sessions", "tune")
PURE_MAY_NOT = ("app", "widgets", "screens", "commands")
TUI_MAY_NOT = {
    **dict.fromkeys(PURE, PURE_MAY_NOT),
    "widgets": ("screens", "commands"),
    "screens": ("commands",),
}
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


@cache
def all_imports() -> tuple[Import, ...]:
    """Those of every room. Read by the first test that asks: each worker of xdist imports this module."""
    found: list[Import] = []
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            path = file.relative_to(ROOT)
            found += imports_of(path, file.read_text(encoding="utf-8"))
    return tuple(found)


def breaches(imports: Iterable[Import]) -> list[Import]:
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


def place_of(path: Path) -> str:
    """`engine.keeper` for all that lies in that folder, `engine.stop` for a module of the room itself."""
    return ".".join(path.with_suffix("").parts[:2])


def inside(room: str, imports: Iterable[Import]) -> dict[str, set[str]]:
    """Which places of a room import which others of it."""
    found: dict[str, set[str]] = {}
    for one in imports:
        imported = ".".join(one.module.split(".")[:2])
        place = place_of(one.path)
        if one.root == one.path.parts[0] == room and imported not in (place, room):
            found.setdefault(place, set()).add(imported)
    return found


def circles(arrows: Mapping[str, set[str]]) -> list[str]:
    """Places from which arrows lead back to themselves, each with one way round."""
    found = []
    for start in sorted(arrows):
        ways, seen = [(start,)], {start}
        while ways:
            way = ways.pop()
            for place in sorted(arrows.get(way[-1], ())):
                if place == start:
                    found.append(" → ".join((*way, start)))
                    ways.clear()
                    break
                if place not in seen:
                    seen.add(place)
                    ways.append((*way, place))
    return found


def sub_rooms(room: str) -> set[str]:
    return {each.parent.name for each in (ROOT / room).glob("*/__init__.py")}


@pytest.mark.parametrize("room", ROOMS)
def test_arrows_point_one_way(room: str) -> None:
    found = [str(one) for one in breaches(all_imports()) if one.path.parts[0] == room]
    assert not found, f"{WHY[room]}: {found}"


@pytest.mark.parametrize("room", LAYERS)
def test_sub_rooms_import_only_those_below_them(room: str) -> None:
    """Who reads one of them needs no other but those before it."""
    layers = LAYERS[room]
    assert {name for layer in layers for name in layer} == sub_rooms(room), "a sub-room is in no layer, or in two"
    height = {f"{room}.{name}": at for at, layer in enumerate(layers) for name in layer}
    found = [
        f"{place} imports {imported}"
        for place, wanted in inside(room, all_imports()).items()
        for imported in wanted
        if place in height and imported in height and height[imported] >= height[place]
    ]
    assert not found


@pytest.mark.parametrize("room", ["store", "engine", "tuning", "lora"])
def test_no_way_leads_back_into_the_same_place(room: str) -> None:
    """Neither from sub-room to sub-room nor by a module that lies beside them."""
    assert not circles(inside(room, all_imports()))


@pytest.mark.parametrize("sub_room", TUI_MAY_NOT)
def test_what_is_shown_does_not_know_who_shows_it(sub_room: str) -> None:
    """What only says and reads is tested without an app, a widget serves several screens, and a command line must not
    be needed for a screen."""
    arrows = inside("tui", all_imports())
    assert not arrows.get(f"tui.{sub_room}", set()) & {f"tui.{name}" for name in TUI_MAY_NOT[sub_room]}


def test_the_check_sees_a_circle() -> None:
    sources = {"engine/a/b.py": "import engine.c", "engine/c.py": "def f():\n    from engine.d.e import g"}
    imports = [one for path, source in sources.items() for one in imports_of(Path(path), source)]
    assert circles(inside("engine", imports)) == []
    closed = [*imports, *imports_of(Path("engine/d/e.py"), "from engine.a.b import x")]
    assert circles(inside("engine", closed)) == [
        "engine.a → engine.c → engine.d → engine.a",
        "engine.c → engine.d → engine.a → engine.c",
        "engine.d → engine.a → engine.c → engine.d",
    ]


def test_no_room_imports_the_tests() -> None:
    """The wheel holds none."""
    assert not [str(one) for one in all_imports() if one.root == "tests"]


def test_only_the_screens_know_textual() -> None:
    """Everything else runs in keepers and pipes, and textual costs a third of a second to load."""
    assert not [str(one) for one in all_imports() if one.root == "textual" and one.path.parts[0] != "tui"]


def test_only_the_chart_knows_plotext() -> None:
    """Its module state is global and NaN kills its process: one module guards both."""
    assert not [str(one) for one in all_imports() if one.root == "plotext" and one.path != Path("tui/chart.py")]


def test_no_process_of_ours_loads_the_servers_libraries() -> None:
    """vLLM lives in another environment, and importing it takes up to a minute."""
    found = [
        str(one)
        for one in all_imports()
        if one.root in SERVER_LIBRARIES and STANDALONE not in one.path.parents and TRAINING not in one.path.parents
    ]
    assert not found


def test_standalone_files_import_nothing_of_ours() -> None:
    """Our folder is never on the path of the server's Python: our `store` could hide a module of somebody else's."""
    found = [one for one in all_imports() if STANDALONE in one.path.parents or TRAINING in one.path.parents]
    assert not [str(one) for one in found if one.root in ROOMS]


def test_package_inits_import_nothing() -> None:
    """`from store.records import …` must not load what only the writer needs."""
    assert not [str(one) for one in all_imports() if one.path.name == "__init__.py"]


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
