"""The adapters of a server by its own flags, and which of them a workload's requests address.

A plan holds plain flags: `lora-modules = ["name=/folder"]` and `enable-lora = true`, of the baseline or of candidates,
and a workload names adapters: `adapters = ["name"]`. Where a candidate's server has some of them, each request goes to
one of these; where it has none, the requests go to the base. So the same load tells what it costs to serve adapters.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from engine.launch.adapter_flags import FLAG, modules
from tuning.records import Workload


def module_names(value: Any) -> tuple[str, ...]:
    """The names of `modules`."""
    return tuple(name for name, _ in modules(value))


def addressed(workload: Workload, flags: Mapping[str, Any]) -> tuple[str, ...]:
    """Those of a workload's adapters that a server with `flags` has, in the workload's order."""
    served = module_names(flags.get(FLAG, ()))
    return tuple(name for name in workload.adapters if name in served)


def unknown(workload: Workload, servers: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Those of its adapters that none of the servers has: requests meant for them would silently go to the base."""
    served = {name for flags in servers for name in module_names(flags.get(FLAG, ()))}
    return tuple(name for name in workload.adapters if name not in served)
