"""Servers started by hand: the row, the keeper that owns the process, the commands."""

import asyncio
import os
import uuid
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from engine.keeper import client
from engine.keeper.hold import only_keeper
from engine.keeper.journal import Journal, unsaid
from engine.keeper.secrets import pass_spec, redacted_spec, refuse_hidden, restore_secrets, secrets_to_env
from engine.keeper.spawn import spawn_keeper
from engine.launch.command import model_argument
from engine.launch.local_paths import absolute_flags
from engine.launch.model import check_model
from engine.launch.signed_adapters import signed_adapters
from engine.leftovers import end_leftover_server
from engine.processes.ports import require_free
from engine.records import EngineError, Installation, ServerSpec
from engine.text import redact
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import ServerRecord

MODULE = "engine.server_keeper"


def start_server(
    data_dir: Path, installation: Installation, spec: ServerSpec, name: str, environ: Mapping[str, str] = os.environ
) -> int:
    """Start a server that outlives this program and return its id as soon as its keeper runs; the server then loads.

    Paths in `spec` are read as seen from this program's folder. Secrets in it reach the server and
    nothing that is kept. Raises EngineError in one line: model, port, keeper, a secret that is not at hand, an adapter
    of the registry that is not what was registered.
    """
    refuse_hidden(spec)
    spec = secrets_to_env(spec)
    check_model(spec.model)
    spec = replace(
        spec,
        model=model_argument(spec.model),
        flags=absolute_flags(spec.flags, Path.cwd()),
        env=restore_secrets(spec.env, {}, environ),
    )
    require_free(spec.host, spec.port)
    kept = redacted_spec(spec)
    with open_writer(database_file(data_dir)) as writer:
        with open_reader(database_file(data_dir)) as reader:
            signed_adapters(reader, data_dir).require_unchanged(spec.flags)
        record = ServerRecord(
            name=redact(name),
            state="starting",
            model=kept["model"],
            served_name=kept["served_name"],
            host=spec.host,
            port=spec.port,
            command=[],
            env=kept["env"],
            log_path="",
            marker=uuid.uuid4().hex,
            vllm_version=installation.version,
            started_at=utc_now(),
            raw={"spec": kept, "installation": asdict(installation)},
        )
        server_id = writer.insert(record)
        writer.update(ServerRecord, server_id, log_path=str(server_log(data_dir, server_id)))
    try:
        spawn_keeper(data_dir, "server", server_id, MODULE, pass_spec(environ, spec))
    except EngineError as error:
        with open_writer(database_file(data_dir)) as writer:
            writer.update(ServerRecord, server_id, state="failed", failure=redact(str(error)), stopped_at=utc_now())
        raise
    return server_id


def stop_server(data_dir: Path, server_id: int) -> str:
    """Have a server stopped; what to tell. Where its keeper is gone, what that left is ended here and now. Raises
    EngineError, StoreError."""
    try:
        return str(client.call(data_dir, "server", server_id, "stop")["message"])
    except client.KeeperGone:
        database = database_file(data_dir)
    with only_keeper(data_dir, "server", server_id), open_writer(database) as writer, open_reader(database) as reader:
        return asyncio.run(_end_orphan(Journal(writer, server_id=server_id, log=unsaid), reader.server(server_id)))


async def _end_orphan(journal: Journal, server: ServerRecord) -> str:
    journal.end_within(0.0)
    done = await end_leftover_server(journal, server)
    journal.require_all_written()
    return done


def server_log(data_dir: Path, server_id: int) -> Path:
    return data_dir / "logs" / f"server-{server_id}.log"


def spec_from_json(kept: Mapping[str, Any], env: Mapping[str, str]) -> ServerSpec:
    return ServerSpec(**{**kept, "env": dict(env), "extra_args": tuple(kept.get("extra_args", ()))})
