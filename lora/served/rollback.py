"""Back to an earlier version of an adapter, on a server that goes on serving."""

from collections.abc import Sequence

from lora.records import LoraError
from store.records import AdapterRecord


def target_of(versions: Sequence[AdapterRecord], now: AdapterRecord | None, to: int | None) -> AdapterRecord:
    """The version to go to: `to`, else the one before what is served `now`. Raises LoraError."""
    if not versions:
        raise LoraError("there is no such adapter: `llmtune lora list` shows them")
    name = versions[0].name
    among = ", ".join(str(each.version) for each in versions)
    if to is not None:
        found = next((each for each in versions if each.version == to), None)
        if found is None:
            raise LoraError(f"there is no {name}@{to}: of {name} there is version {among}")
    elif now is None:
        raise LoraError(f"what is served as {name} is no version of it here: say which is wanted by --to ({among})")
    else:
        earlier = [each for each in versions if each.version < now.version]
        if not earlier:
            raise LoraError(
                f"{now.label} is the first version: there is none before it (--to names another of {among})"
            )
        found = earlier[-1]
    if now is not None and found.version == now.version:
        raise LoraError(f"{now.label} is what is served already")
    return found
