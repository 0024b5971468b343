"""What is said of the chosen training, adapter or data set below their lists, as rows of a given size. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from engine.numbers import finite
from engine.text import clean, redact
from store.evaluation_job import EvaluationJobRecord
from store.records import AdapterRecord, DatasetRecord, EvaluationRecord, EventRecord, ServerRecord, TrainingRecord
from tui.document_text import wrapped
from tui.format import local_clock, number, span
from tui.lora.curves import LEAST_HEIGHT, a_second, curve_rows, gib, loss_text, rate_text
from tui.lora.evaluating import job_text
from tui.lora.lines import day, rank_text, size_text, validation_loss
from tui.lora.progress import Progress
from tui.lora.standing import Held, computes, doing_text, training_state, unkept_text
from tui.lora.words import (
    environment_text,
    evaluation_text,
    losses_text,
    or_absent,
    proof_text,
    report_text,
    settings_text,
    source_text,
    targets_text,
)
from tui.panels.row import ERROR, GOOD, MUTED, PLAIN, STRONG, WARNING, Row, fit, outside

LABEL_W = 10
_STATE_KINDS = {"▶": GOOD, "✔": GOOD, "✗": ERROR, "!": ERROR, "‖": WARNING, "◌": WARNING}


@dataclass(frozen=True, slots=True)
class TrainingDetails:
    """All that is said of a training; `held` tells of one that has not ended whether anybody keeps it."""

    training: TrainingRecord
    held: Held
    progress: Progress
    dataset: DatasetRecord | None = None
    adapters: tuple[AdapterRecord, ...] = ()
    events: tuple[EventRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class AdapterDetails:
    """`versions` are all of its name, `served` the servers that it is on now; `evaluation` what was last measured of it
    against its base, `job` a newer one that is under way or has ended without a result, `held` by whom."""

    adapter: AdapterRecord
    versions: tuple[AdapterRecord, ...] = ()
    served: tuple[ServerRecord, ...] = ()
    training: TrainingRecord | None = None
    evaluation: EvaluationRecord | None = None
    job: EvaluationJobRecord | None = None
    held: Held = "left"


@dataclass(frozen=True, slots=True)
class DatasetDetails:
    dataset: DatasetRecord
    trainings: tuple[TrainingRecord, ...] = ()


Details = TrainingDetails | AdapterDetails | DatasetDetails


def detail_rows(details: Details, width: int, height: int) -> list[Row]:
    """At most `height` rows of `width` cells."""
    if isinstance(details, TrainingDetails):
        rows = training_rows(details, width, height)
    elif isinstance(details, AdapterDetails):
        rows = adapter_rows(details, width)
    else:
        rows = dataset_rows(details, width)
    return [fit(row, width) for row in rows[:height]]


def training_rows(found: TrainingDetails, width: int, height: int) -> list[Row]:
    """Where it stands, its newest figures, why it ended, what it is made of; the curves take what is left."""
    rows = [_where(found), *_figures(found, width, 1 if height < 9 else 2 if height < 14 else 3)]
    unkept = unkept_text(found.training, found.held, found.progress)
    message = unkept or found.progress.note or found.training.message
    if message:
        kind = WARNING if unkept else ERROR if found.training.state == "failed" else PLAIN
        rows += [((f" {line}", kind),) for line in _lines(message, width - 2, 1 if height < 10 else 4)]
    about, most = (settings_lines(found), 2) if height >= 20 else (settings_lines(found)[: int(height >= 14)], 1)
    for label, text in about:
        for at, line in enumerate(_lines(text, width - 1 - LABEL_W, most)):
            rows.append(_named(label if at == 0 else "", line))
    room = height - len(rows)
    if room >= 30 and found.events:  # the newest events, below the curves
        shown = found.events[-6:]
        curves = curve_rows(found.progress, width, room - len(shown) - 1)
        return [*rows, *curves, ((" events", MUTED),), *map(_event, shown)]
    return rows + curve_rows(found.progress, width, room) if room > LEAST_HEIGHT else rows


def _where(found: TrainingDetails) -> Row:
    """`▶ running  sql-v3  step 120 of 540  about 12:03 left`; what it does beside the steps in place of the time."""
    training, progress = found.training, found.progress
    state = training_state(training, found.held, progress)
    at = progress.steps[-1].step if progress.steps else training.step
    pieces = [
        (f" {state}  ", _STATE_KINDS.get(state[0], PLAIN)),
        (clean(training.name, 30), STRONG),
        (f"  step {number(finite(at))} of {number(finite(progress.planned))}", PLAIN),
    ]
    if computes(training, found.held):
        left = progress.seconds_left()
        about = f"about {span(left)} left" if left is not None else "time left not known yet"
        pieces.append((f"  {about if progress.doing is None else doing_text(progress.doing)}", PLAIN))
    return tuple(pieces)


def _figures(found: TrainingDetails, width: int, most: int) -> list[Row]:
    """The newest of each, with its name, on at most so many rows."""
    progress = found.progress
    took = progress.last("seconds") if progress.steps else finite(found.training.seconds)
    told = (
        ("loss", loss_text(progress.last("loss"))),
        ("evaluation", loss_text(progress.last("eval_loss"))),
        ("learning rate", rate_text(progress.last("learning_rate"))),
        ("tokens/s", or_absent(progress.last("tokens_per_s"), a_second)),
        _memory(progress),
        ("took", span(took)),
        ("gradient", rate_text(progress.last("grad_norm"))),
    )
    rows: list[list[tuple[str, str]]] = [[]]
    left = width
    for name, value in told:
        cells = len(name) + len(value) + 3
        if left < cells:
            rows.append([])
            left = width
        left -= cells
        rows[-1] += [(f" {name} ", MUTED), (f"{value} ", STRONG)]
    return [tuple(row) for row in rows[:most]]


def _memory(progress: Progress) -> tuple[str, str]:
    """The trainer's, on the GPU where it has one."""
    gpu, host = progress.last("gpu_gib"), progress.last("host_gib")
    name, value = ("memory", host) if gpu is None and host is not None else ("GPU", gpu)
    return name, or_absent(value, gib) + " GiB"


def settings_lines(found: TrainingDetails) -> list[tuple[str, str]]:
    """What it is made of: model and data, then the settings."""
    training = found.training
    data = clean(found.dataset.name, 40) if found.dataset is not None else f"data set {training.dataset_id}"
    model = clean(PurePath(training.base_model).name or training.base_model, 60)
    adapters = ", ".join(clean(adapter.label, 40) for adapter in found.adapters[-3:])
    lines = [
        ("made of", f"{model} and {data}, {settings_text(training.settings)}"),
        ("adapter", adapters or f"is to be {clean(training.adapter_name, 64)}"),
        ("machine", environment_text(training.environment)),
    ]
    return [(label, text) for label, text in lines if text]


def adapter_rows(found: AdapterDetails, width: int) -> list[Row]:
    """Where it is served, what it is, what it came to, where it comes from, its other versions."""
    adapter, room = found.adapter, width - 1 - LABEL_W
    where = ", ".join(f"{clean(server.name, 40)} on port {server.port} ({server.state})" for server in found.served)
    rows: list[Row] = [
        (
            (" ● served by " if found.served else " ○ not served  ", GOOD if found.served else MUTED),
            (where if found.served else clean(adapter.label, 80), STRONG),
        )
    ]
    if found.served:
        rows[0] = (*rows[0], (f"  {clean(adapter.label, 80)}", PLAIN))
    trainable = finite(adapter.parameters.get("trainable_parameters"))
    told = [
        ("base", clean(adapter.base_model, 300)),
        (
            "LoRA",
            f"r {rank_text(adapter.parameters)}, alpha {or_absent(finite(adapter.parameters.get('alpha')), number)}, "
            f"{targets_text(adapter.parameters.get('targets'))}, {number(trainable)} parameters, "
            f"{size_text(adapter.size_bytes)}",
        ),
        ("losses", losses_text(adapter)),
        ("evaluates", job_text(found.job, found.held) if found.job is not None else ""),
        ("measured", _measured(found)),
        ("from", _origin(found)),
        ("versions", versions_text(found.versions, adapter.version)),
        ("signed", f"{clean(adapter.signature, 16)}, made {day(adapter.created_at)}"),
        ("proof", proof_text(adapter.served)),
        ("notes", clean(adapter.notes or "", 300)),
    ]
    for label, text in told:
        for at, line in enumerate(_lines(text, room, 2)):
            rows.append(_named(label if at == 0 else "", line))
    return rows


def _measured(found: AdapterDetails) -> str:
    if found.evaluation is not None:
        return evaluation_text(found.evaluation)
    return "" if found.job is not None else "not yet against its base: enter, then e"


def versions_text(versions: Sequence[AdapterRecord], chosen: int) -> str:
    """`1 (1.301)  ▸2 (1.245)`: the newest eight, with their validation losses."""
    said = []
    for one in versions[-8:]:
        loss = validation_loss(one)
        said.append(
            f"{'▸' if one.version == chosen else ''}{one.version}{f' ({loss_text(loss)})' if loss is not None else ''}"
        )
    more = f"{len(versions) - 8} older, " if len(versions) > 8 else ""
    return more + "  ".join(said)


def _origin(found: AdapterDetails) -> str:
    adapter = found.adapter
    if adapter.imported_from:
        return f"imported from {clean(adapter.imported_from, 200)}"
    name = f' "{clean(found.training.name, 40)}"' if found.training is not None else ""
    took = f", {span(finite(adapter.seconds))} on {clean(adapter.gpu or 'the CPU', 60)}" if adapter.seconds else ""
    return f"training {adapter.training_id}{name}{took}" if adapter.training_id is not None else "made elsewhere"


def dataset_rows(found: DatasetDetails, width: int) -> list[Row]:
    """Its parts, where it comes from, what was left out and changed, what it was trained with."""
    dataset, room = found.dataset, width - 1 - LABEL_W
    tokens = f", {number(finite(dataset.train_tokens))} tokens to learn from" if dataset.train_tokens else ""
    parts = (
        f" {number(finite(dataset.train_examples))} train, {number(finite(dataset.validation_examples))} validation"
        f"{tokens}, seed {dataset.seed}"
    )
    rows: list[Row] = [((f" {clean(dataset.name, 60)} ", STRONG), (parts, PLAIN))]
    told = [("from", clean(source_text(source), 300)) for source in dataset.sources if isinstance(source, dict)]
    told += report_text(dataset.report)
    if dataset.model:
        told.append(("counted by", f"{clean(dataset.model, 200)}, at most {number(finite(dataset.max_length))} tokens"))
    trained = ", ".join(f"{clean(one.name, 40)} ({one.state})" for one in found.trainings[-5:])
    told.append(("trained", trained or "with nothing yet: n begins a training"))
    for label, text in told:
        for at, line in enumerate(_lines(text, room, 2)):
            rows.append(_named(label if at == 0 else "", line))
    return rows


def _named(label: str, text: str) -> Row:
    return ((f" {label:<{LABEL_W}}", MUTED), (text, PLAIN))


def _event(event: EventRecord) -> Row:
    kind = {"error": ERROR, "warning": WARNING}.get(event.level, PLAIN)
    return ((f" {local_clock(event.at)}  ", MUTED), (clean(redact(event.text), 300), kind))


def _lines(text: str, width: int, most: int) -> list[str]:
    """At most so many lines of it, the last cut where more follow."""
    lines = wrapped(clean(redact(text), 2000), max(width, 10))
    if len(lines) > most:
        lines = [*lines[: most - 1], outside(f"{lines[most - 1]} {lines[most]}", width).rstrip()]
    return lines
