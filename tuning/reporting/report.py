"""A session's report, part by part: what an engineer needs first stands first."""

from tuning.document import Code, Heading, Part
from tuning.reporting.commands import commands_parts
from tuning.reporting.environment import environment_parts
from tuning.reporting.every_metric import every_metric_parts
from tuning.reporting.head import head
from tuning.reporting.losses import loss_parts
from tuning.reporting.material import Material
from tuning.reporting.meaning import meaning_parts, method_parts
from tuning.reporting.noise import noise_parts
from tuning.reporting.outlook import outlook_parts
from tuning.reporting.price import price_parts
from tuning.reporting.workload import workload_parts


def report_parts(material: Material) -> list[Part]:
    """The same for Markdown and HTML; pictures are among them."""
    parts = head(material)
    if material.calibration:
        parts += noise_parts(material) + outlook_parts(material)
    for at, workload in enumerate(material.plan.workloads):
        parts += workload_parts(material, workload, at)
    parts += price_parts(material)
    parts += loss_parts(material)
    if not material.calibration:
        parts += noise_parts(material)
    parts += method_parts(material)
    parts += meaning_parts(material)
    parts += every_metric_parts(material)
    parts += environment_parts(material.result.environment)
    parts += commands_parts(material)
    if material.session.plan_toml.strip():
        parts += [Heading("The plan"), Code(material.session.plan_toml.strip("\n"))]
    return parts
