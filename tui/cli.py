"""The command line: the parser, and what becomes of errors. Each command is a module of `tui.commands`, imported
when it is called: `llmtune --help` must not pay for libraries it does not use."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn, Protocol

from tui.lora.parser import add_lora
from tui.output import OutputLost, UsageError, complain, drop_output, open_closed, say

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
_TAKE_REST = frozenset({("server", "start"), ("lora", "serve"), ("lora", "price")})


class Command(Protocol):
    def run(self, args: argparse.Namespace) -> int:
        """Carry the command out; the exit status."""


class _Parser(argparse.ArgumentParser):
    """Tells a mistake in one line, as all errors here are, in place of argparse's usage above it."""

    def error(self, message: str) -> NoReturn:
        complain(f"{message}: see `{self.prog} --help`")
        self.exit(USAGE)


class _Version(argparse.Action):
    """`--version`, reading the metadata only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            say(f"llmtune {version('llmtune-vllm')}")
        except PackageNotFoundError:
            say("llmtune, run from its source without having been installed")
        parser.exit()


def _shared() -> _Parser:
    """Options that may stand before or after the command. SUPPRESS keeps the later place from undoing the earlier."""
    shared = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    shared.add_argument("--data-dir", metavar="DIR", help="where sessions are kept (environment LLMTUNE_DATA_DIR)")
    shared.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")
    return shared


def _option(*names: str, **keywords: object) -> _Parser:
    parent = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    parent.add_argument(*names, **keywords)  # type: ignore[arg-type]
    return parent


def _vllm() -> _Parser:
    text = "vLLM's command, Python or environment (environment LLMTUNE_VLLM)"
    return _option("--vllm", metavar="PATH", help=text)


def build_parser() -> _Parser:
    """The whole command line. `module` in the namespace names the module of `tui.commands` that runs it."""
    shared, vllm = _shared(), _vllm()
    as_json = _option("--json", action="store_true", help="print JSON")
    parser = _Parser(
        prog="llmtune",
        allow_abbrev=False,
        description="Start vLLM servers, watch them, and measure which settings help. Without a command: the screens.",
        # Its own ones: what it sets as defaults must not become the children's.
        parents=[_shared(), _vllm()],
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    parser.set_defaults(module="screens", data_dir=None, vllm=None, json=False, no_mouse=False)
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")

    def add(name: str, module: str, text: str, *extra: _Parser) -> _Parser:
        child = commands.add_parser(name, help=text, description=text, parents=[shared, *extra], allow_abbrev=False)
        child.set_defaults(module=module, command=name)
        return child

    demo = add("demo", "demo", "measure a small model with the embedded plan", vllm, as_json)
    demo.add_argument("--model", metavar="PATH", help="the model's folder (a checkout's own where it has one)")
    demo.add_argument("--headless", action="store_true", help="plain lines in place of the screens")

    add("doctor", "doctor", "look at the machine before anything is started", vllm, as_json)

    _add_server(add("server", "server", "start, stop and list servers"), shared, vllm, as_json)

    monitor = add("monitor", "monitor", "watch servers, whoever started them")
    monitor.add_argument(
        "--url", action="append", default=[], metavar="URL", help="a server's address; may be repeated"
    )
    monitor.add_argument("--record", action="store_true", help="keep the samples of servers that are not ours")

    snapshot = add("snapshot", "snapshot", "one sample of a server and the GPUs", as_json)
    snapshot.add_argument(
        "--url",
        action="append",
        default=[],
        metavar="URL",
        help="a server's address; may be repeated (our own running one where not given, else those found here)",
    )
    snapshot.add_argument("--watch", type=_seconds, metavar="S", help="go on, one sample every S seconds")
    snapshot.add_argument(
        "--window",
        type=_seconds,
        metavar="S",
        help="rates and latencies over the last S seconds (since the last sample)",
    )
    snapshot.add_argument("--record", action="store_true", help="keep the samples of servers that are not ours")

    sweep = add("sweep", "sweep", "start a session from a plan", vllm, as_json)
    sweep.add_argument("plan", metavar="PLAN.toml", help="the plan")
    sweep.add_argument("--headless", action="store_true", help="plain lines in place of the screens")
    sweep.add_argument(
        "--calibrate", action="store_true", help="an A/A session: the plan's default against itself, for the noise"
    )
    sweep.add_argument("--blocks", type=int, metavar="N", help="so many blocks (the plan's; 6 to calibrate)")

    attach = add("attach", "attach", "follow a session that runs", vllm, as_json)
    _add_session(attach)
    attach.add_argument("--headless", action="store_true", help="plain lines in place of the screens")
    for name, text in (
        ("pause", "let the run in progress end, then hold the session"),
        ("resume", "go on with a session, also after its keeper or the machine went away"),
        ("skip", "leave a candidate out from now on"),
        ("stop", "end a session and its server; what is measured stays"),
    ):
        control = add(name, "control", text, as_json)
        _add_session(control)
        if name == "skip":
            control.add_argument("candidate", type=int, metavar="CANDIDATE", help="its number, as the report shows it")
        if name == "resume":
            control.add_argument(
                "--accept-changes", action="store_true", help="also where vLLM, driver, GPU or model are others now"
            )
    report = add("report", "report", "a session's results", as_json)
    _add_session(report)
    report.add_argument("--format", choices=("md", "json", "csv", "html"), help="default: as FILE ends, else md")
    report.add_argument("--out", metavar="FILE", help="write there in place of standard output")

    compare = add("compare", "compare", "two sessions held against each other", as_json)
    for name in ("a", "b"):
        compare.add_argument(name, metavar=name.upper(), help="a session: its number, its name, or `last`")
    compare.add_argument("--format", choices=("text", "md", "html", "json"), help="default text")
    compare.add_argument("--out", metavar="FILE", help="write there in place of standard output")

    add("sessions", "sessions", "list the sessions", as_json)
    _add_import(
        add("import", "import_", "results of `vllm bench serve` and `vllm bench sweep`, and what they say", as_json)
    )
    add_lora(add("lora", "lora", "adapters: data, training, and which are kept"), shared, vllm, as_json)
    explain = add("explain", "explain", "what a vLLM log says", vllm, as_json)
    explain.add_argument("file", metavar="FILE", help="the log; - reads standard input")
    return parser


def _add_session(command: _Parser) -> None:
    command.add_argument("session", metavar="SESSION", help="its number, its name, or `last`")


def _add_import(command: _Parser) -> None:
    command.add_argument("paths", nargs="*", metavar="PATH", help="files and folders (what is kept is listed without)")
    command.add_argument("--kept", action="store_true", help="report on what is kept (of PATHs where given)")
    command.add_argument("--format", choices=("text", "md", "json"), help="default text")
    command.add_argument("--out", metavar="FILE", help="write there in place of standard output")
    command.add_argument(
        "--names",
        metavar="PATTERN",
        help="what file names mean, as 'exp-{configuration}{launch}-{run}'; * stands for anything",
    )
    command.add_argument(
        "--apart", action="store_true", help="runs that lack a piece of metadata are configurations of their own"
    )
    command.add_argument(
        "--ignore", action="append", default=[], metavar="KEY", help="metadata that tell no configurations apart"
    )
    command.add_argument("--raw", action="store_true", help="with --json: each run's whole result too")


def _add_server(
    server: _Parser,
    shared: _Parser,
    vllm: _Parser,
    as_json: _Parser,
) -> None:
    actions = server.add_subparsers(metavar="ACTION", dest="action", required=True, title="actions")
    start = actions.add_parser(
        "start",
        allow_abbrev=False,
        parents=[shared, vllm, as_json],
        help="start one: llmtune server start [NAME] -- MODEL [vllm serve flags]",
        description="Start a server that outlives this terminal. What follows -- is given to `vllm serve`.",
        epilog="llmtune server start chat -- models/qwen3-14b --max-model-len 4096",
    )
    start.add_argument("name", nargs="?", metavar="NAME", help="what to call it (the model's name where not given)")
    start.add_argument("--no-wait", action="store_true", help="do not wait until it is ready")
    for name, text in (("stop", "stop one"), ("restart", "stop one and start it with the same command")):
        action = actions.add_parser(name, parents=[shared, as_json], help=text, description=text)
        action.add_argument("name", nargs="?", metavar="NAME", help="name or number (the only one where not given)")
    listing = actions.add_parser("list", parents=[shared, as_json], help="list them", description="list the servers")
    listing.add_argument("--all", action="store_true", help="also those that ended, and those of sweeps")
    logs = actions.add_parser("logs", parents=[shared], help="show a log", description="show a server's log")
    logs.add_argument("name", nargs="?", metavar="NAME", help="name or number (the latest where not given)")
    logs.add_argument("-f", "--follow", action="store_true", help="go on as it grows")
    logs.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="so many of the last lines (50)")


def _seconds(text: str) -> float:
    try:
        if 0.1 <= (value := float(text)) <= 86_400:
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text} is not a number of seconds from 0.1 to 86400")


def split_rest(argv: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """What stands before `--` and what after it; None without a `--`. argparse would eat a flag meant for vLLM."""
    if "--" not in argv:
        return list(argv), None
    cut = list(argv).index("--")
    return list(argv[:cut]), list(argv[cut + 1 :])


def _told_errors() -> tuple[type[Exception], ...]:
    """The errors whose text is one line for a person. Called only once something was raised."""
    from engine.records import EngineError
    from store.errors import StoreError
    from tuning.records import PlanError

    return (UsageError, OutputLost, PlanError, EngineError, StoreError)


def _status(error: Exception) -> int:
    from engine.records import VllmNotFound, VllmTooOld
    from store.errors import NotFound
    from tuning.records import PlanError

    return USAGE if isinstance(error, (UsageError, PlanError, NotFound, VllmNotFound, VllmTooOld)) else FAILED


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status: 0 done, 1 tried and failed, 2 wrong arguments or file, 130 interrupted."""
    open_closed()
    try:
        args = _understood(sys.argv[1:] if argv is None else argv)
        command: Command = importlib.import_module(f"tui.commands.{args.module}")
        return command.run(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read us has gone (`| head`)
        drop_output()
        return DONE
    except _told_errors() as error:
        if isinstance(error, OutputLost):
            drop_output()
        complain(str(error))
        return _status(error)


def _understood(argv: Sequence[str]) -> argparse.Namespace:
    """The command line's namespace, with what follows `--` as `rest`. Ends the program with 2 where it is wrong."""
    own, rest = split_rest(argv)
    parser = build_parser()
    args = parser.parse_args(own)
    args.rest = rest
    if rest is not None and (args.module, getattr(args, "action", None)) not in _TAKE_REST:
        parser.error("only `server start`, `lora serve` and `lora price` take arguments after --")
    return args


if __name__ == "__main__":
    sys.exit(main())
