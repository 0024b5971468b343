"""All that is to be said of an adapter before it is launched, worst first."""

from lora.adapters.adapter_files import Adapter
from lora.adapters.adapter_findings import Finding, Served
from lora.adapters.adapter_values import Values
from lora.adapters.config_rules import config_findings
from lora.adapters.tensor_rules import tensor_findings

_ORDER = ("refused", "wrong", "idle", "note")


def findings(adapter: Adapter, served: Served, values: Values | None = None) -> tuple[Finding, ...]:
    """What this vLLM refuses, ignores or drops of the adapter; `values` as read by `look_at_values`, None to leave its
    numbers out."""
    found = list(config_findings(adapter, served))
    refused = {finding.about for finding in found if finding.effect == "refused"}
    found += tensor_findings(adapter, served, values, refused)
    return tuple(sorted(found, key=lambda finding: _ORDER.index(finding.effect)))
