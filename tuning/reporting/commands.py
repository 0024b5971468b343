"""The command lines of a session, to paste into a shell; secrets are hidden."""

from engine.launch.command import copyable, serve_argv
from engine.records import Installation, ServerSpec
from tuning.document import Code, Heading, Paragraph, Part
from tuning.plans.workload_args import bench_argv
from tuning.records import Candidate, Plan
from tuning.reporting.material import Material
from tuning.scheduling.schedule import launch_runs

_HOST, _PORT = "127.0.0.1", 8000


def serve_command(plan: Plan, candidate: Candidate) -> str:
    """The line that serves the candidate."""
    spec = ServerSpec(
        model=plan.model,
        host=_HOST,
        port=_PORT,
        flags={**plan.server, **candidate.settings},
        served_name=plan.served_name,
        env=plan.server_env,
    )
    program = plan.vllm or "vllm"
    return copyable(serve_argv(Installation(program, "", (program,), "", ""), spec), plan.server_env)


def commands_parts(material: Material) -> list[Part]:
    """To serve each configuration, and to send each workload once."""
    plan = material.plan
    parts: list[Part] = [Heading("Commands")]
    for candidate in material.candidates:
        parts += [Paragraph(f"{candidate.label}:"), Code(serve_command(plan, candidate))]
    runs = launch_runs(plan, material.session.seed, 0)
    for workload in plan.workloads:
        seed = next(run.seed for run in runs if (run.workload, run.kind) == (workload.name, "measured"))
        argv = bench_argv(workload, plan.model, plan.served_name, f"http://{_HOST}:{_PORT}", seed)
        parts.append(Paragraph(f"{workload.name}, each run with a seed of its own:"))
        parts.append(Code(copyable([plan.vllm or "vllm", "bench", "serve", *argv])))
    return parts
