"""Whom a command looks at: addresses that a person gave, else a server of ours, else those found on this machine."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from engine.discovery import FoundServer, found_servers, on_this_machine
from engine.limiting.knobs import Knobs, knobs_of, knobs_of_flags
from store.errors import NotFound
from store.records import SampleRecord
from tui.commands.places import reading


class Target(NamedTuple):
    """`knobs` says from any sample of it what it is set to."""

    url: str
    knobs: Callable[[SampleRecord], Knobs]
    ours: bool = False


def named(urls: tuple[str, ...]) -> tuple[Target, ...]:
    """Those of a person's `--url`; the settings of one that runs on this machine stand in its command line."""
    running = found_servers()
    return tuple(Target(url, partial(knobs_of_flags, _flags(url, running))) for url in urls)


def unnamed(place: Path) -> tuple[Target, ...]:
    """Whom a person means who names nobody: our server that became ready last and still runs, of a sweep or by hand;
    else all that run on this machine."""
    own = _own(place)
    return (own,) if own else tuple(Target(one.url, partial(knobs_of_flags, one.flags)) for one in found_servers())


def _own(place: Path) -> Target | None:
    try:
        with reading(place) as reader:
            ready = [server for server in reader.servers(active=True) if server.state == "ready"]
    except NotFound:
        return None
    if not ready:
        return None
    newest = max(ready, key=lambda server: server.ready_at or "")
    return Target(newest.url, partial(knobs_of, newest), ours=True)


def _flags(url: str, running: tuple[FoundServer, ...]) -> Mapping[str, Any] | None:
    port = urlsplit(url).port
    here = (one.flags for one in running if urlsplit(one.url).port == port)
    return next(here, None) if on_this_machine(url) else None
