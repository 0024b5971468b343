"""Making a session, and starting the keeper that carries it out."""

import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from engine.keeper.client import is_running
from engine.keeper.secrets import pass_secrets, restore_secrets
from engine.keeper.spawn import spawn_keeper
from engine.launch.installation import find_vllm
from engine.launch.signed_adapters import signed_adapters
from engine.processes.process import is_alive
from engine.records import EngineError, Installation, ProcessIdentity
from engine.text import clean, redact, redact_env
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import EventRecord, SessionRecord
from tuning.environment_change import differences
from tuning.judgement.calibration import prior_noise
from tuning.judgement.deciding import KEY as DECIDING
from tuning.judgement.deciding import deciding_json, deciding_of
from tuning.machine import describe_machine
from tuning.plans.grid import candidates
from tuning.plans.plan_file import plan_toml
from tuning.plans.plan_json import plan_from_json, plan_json
from tuning.plans.plan_secrets import hidden_text
from tuning.records import Plan

MODULE = "tuning.keeper"


class MachineChanged(EngineError):
    """The session was measured on something else than what is here now; `differences` are one line each."""

    def __init__(self, session_id: int, differences: list[str]) -> None:
        super().__init__(
            f"session {session_id} was measured on another machine ({'; '.join(differences)}): its numbers would be "
            f"mixed; go on all the same with llmtune resume {session_id} --accept-changes, or start a new session"
        )
        self.differences = differences


def create_session(data_dir: Path, plan: Plan, plan_text: str, installation: Installation) -> int:
    """Write a new session in state `waiting` and return its id. Nothing is started.

    The plan is kept twice: as it was given, and as it was understood, with defaults and absolute paths, for a keeper
    that runs in another folder. Secrets of `[server.env]` are kept in neither;
    where they cannot be taken out of the text, the plan is written anew in its place. What decides is fixed here, with
    the noise that an A/A session of the same server and workloads found on this machine, and kept: up to a second.

    Raises SignatureBroken, with nothing written, for an adapter of the registry that is not what was registered.
    """
    kept = replace(plan, server_env=redact_env(plan.server_env))
    points, skipped = candidates(plan)
    given = hidden_text(plan_text, plan.server_env)
    environment = describe_machine(plan.model, installation)
    record = SessionRecord(
        name=plan.name,
        state="waiting",
        plan_toml=plan_toml(kept) if given is None else given,
        plan=plan_json(kept),
        candidates=[asdict(point) for point in points],
        seed=secrets.randbelow(2**31),
        created_at=utc_now(),
        environment=environment,
        raw={
            "installation": asdict(installation),
            "left_out": [asdict(point) for point in skipped],
        },
    )
    path = database_file(data_dir)
    with open_writer(path) as writer:
        with open_reader(path) as reader:
            adapters = signed_adapters(reader, data_dir)
            adapters.require_unchanged(*servers_of(plan.server, (point.settings for point in points)))
            prior, source = prior_noise(reader, kept, environment)
        record.raw[DECIDING] = deciding_json(deciding_of(plan, points, prior, source))
        return writer.insert(record)


def start_keeper(
    data_dir: Path,
    session_id: int,
    server_env: Mapping[str, str] | None = None,
    environ: Mapping[str, str] = os.environ,
    accept_changes: bool = False,
) -> int:
    """Start, or start again, the keeper of a session; returns its pid. It goes on at the first run without a result.

    `server_env` is the plan's own where it was just read, since only then its secrets are at hand. Raises EngineError:
    done already, has a keeper, a secret that is needed again, an adapter that is not what was registered, or a keeper
    that did not start, which then is the session's end until it is resumed; MachineChanged where something was measured
    already and vLLM, driver, GPU or model are others now, unless `accept_changes`: then both machines are kept with the
    session.
    """
    with open_reader(database_file(data_dir)) as reader:
        session, adapters = reader.session(session_id), signed_adapters(reader, data_dir)
    if session.state == "done":
        raise EngineError(f"session {session_id} is done; start a new one for more blocks")
    if server_env is None:
        server_env = restore_secrets(session.plan["server_env"], {}, environ)
    _require_no_keeper(data_dir, session)
    if session.started_at is not None:
        adapters.require_unchanged(
            *servers_of(session.plan["server"], (each["settings"] for each in session.candidates))
        )
        _meet_the_machine(data_dir, session, environ, accept_changes)
    try:
        return spawn_keeper(data_dir, "session", session_id, MODULE, pass_secrets(environ, server_env))
    except EngineError as error:
        if not is_running(data_dir, "session", session_id):  # else another was quicker to start one
            with open_writer(database_file(data_dir)) as writer:
                writer.update(
                    SessionRecord,
                    session_id,
                    state="failed",
                    message=redact(clean(str(error), 500)),
                    finished_at=utc_now(),
                )
        raise


def servers_of(server: Mapping[str, Any], candidates: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The flags of each server of a session: the baseline's, and each candidate's put over them."""
    return [dict(server), *({**server, **settings} for settings in candidates)]


def _require_no_keeper(data_dir: Path, session: SessionRecord) -> None:
    """Raises EngineError while the session has a keeper: one with its lock, or one whose lock somebody deleted."""
    if session.id is not None and is_running(data_dir, "session", session.id):
        raise EngineError(f"session {session.id} has a keeper already")
    if session.state not in ("running", "paused") or session.keeper_pid is None or session.keeper_start_ticks is None:
        return
    if is_alive(ProcessIdentity(session.keeper_pid, session.keeper_start_ticks, session.boot_id or "")):
        raise EngineError(
            f"session {session.id} has a keeper that cannot be asked, process {session.keeper_pid}: "
            f"end it with kill {session.keeper_pid} and resume then"
        )


def _meet_the_machine(data_dir: Path, session: SessionRecord, environ: Mapping[str, str], accept_changes: bool) -> None:
    """Compare what is here with what the session knows. Raises MachineChanged, and EngineError for a vLLM gone."""
    assert session.id is not None
    installation = find_vllm(session_installation(session).path, environ)
    machine = describe_machine(str(session.plan["model"]), installation)
    changed = differences(session.environment, machine)
    if not changed:
        return
    if not accept_changes:
        raise MachineChanged(session.id, changed)
    earlier = [*session.raw.get("earlier_environments", []), session.environment]
    raw = {**session.raw, "earlier_environments": earlier, "installation": asdict(installation)}
    with open_writer(database_file(data_dir)) as writer, writer.transaction():
        writer.update(SessionRecord, session.id, environment=machine, raw=raw)
        text = f"goes on on another machine, as accepted: {'; '.join(changed)}"
        writer.insert(EventRecord(at=utc_now(), level="warning", text=text, session_id=session.id))


def session_plan(session: SessionRecord, secret_env: Mapping[str, str], environ: Mapping[str, str]) -> Plan:
    """The plan of a session, its secrets put back. Raises EngineError for a secret that is not to be had."""
    plan = plan_from_json(session.plan)
    return replace(plan, server_env=restore_secrets(plan.server_env, secret_env, environ))


def session_installation(session: SessionRecord) -> Installation:
    kept = session.raw["installation"]
    return Installation(**{**kept, "command": tuple(kept["command"])})
