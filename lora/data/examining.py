"""All that can be said of a file before a model sees it: what it holds, what cannot be used, how it would be split."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from lora.data.forms import convert
from lora.data.reading import contents_of, read_file
from lora.data.records import Counted, Examination, Fault, Spread
from lora.data.splitting import split, without_duplicates
from lora.records import DataUnfit, Example

_NAMES_KEPT = 50

Count = Callable[[Sequence[Example]], Counted]


def examine(
    path: Path,
    *,
    share: float = 0.1,
    seed: int = 0,
    max_length: int | None = None,
    model: str | None = None,
    count: Count | None = None,
) -> Examination:
    """Read `path` and split what can be used of it. `count` asks the tokenizer of `model` for lengths; without it no
    length is known and `max_length` (tokens) leaves nothing out.

    Raises DataUnfit for a file that is no data at all; one of which nothing can be used has an examination, too.
    """
    data, source_hash = read_file(path)
    try:
        contents = contents_of(data)
    except DataUnfit as error:
        raise DataUnfit(f"{path}: {error}") from None
    faults = list(contents.faults)
    repairs: list[Fault] = []
    forms: Counter[str] = Counter()
    unused: Counter[str] = Counter()
    examples: list[Example] = []
    for record in contents.records:
        converted = convert(record)
        forms[converted.form] += 1
        unused.update(converted.unused)
        faults += converted.faults
        repairs += converted.repairs
        examples += converted.examples
    examples, twice = without_duplicates(examples)
    faults += twice
    counted = count(examples) if count is not None and examples else None
    if counted is not None:
        examples, unfit = _measured(examples, counted, max_length)
        faults += unfit
    parts = split(examples, share, seed)
    kept = {example.line for example in examples}
    return Examination(
        path=str(path),
        container=contents.container,
        forms=dict(forms.most_common()),
        notes=contents.notes,
        records=len(contents.records) + len(contents.faults),
        faults=tuple(sorted(faults, key=lambda fault: fault.line)),
        repairs=tuple(fault for fault in repairs if fault.line in kept),
        unused=dict(unused.most_common(_NAMES_KEPT)),
        train=parts.train,
        validation=parts.validation,
        shared_questions=parts.shared,
        overlap=parts.overlap,
        source_hash=source_hash,
        source_bytes=len(data),
        seed=seed,
        share=share,
        max_length=max_length,
        model=model,
        counted=counted,
        lengths=_spread([each[0] for each in counted.lengths if not isinstance(each, str)]) if counted else None,
        answers=_spread([example.answer_tokens or 0 for example in examples]) if counted else None,
        characters=_spread([sum(len(message.content) for message in example.messages) for example in examples]),
    )


def _measured(
    examples: Sequence[Example], counted: Counted, max_length: int | None
) -> tuple[list[Example], list[Fault]]:
    """The examples with their lengths, without those that are too long or that the template does not show."""
    kept: list[Example] = []
    faults: list[Fault] = []
    for example, length in zip(examples, counted.lengths, strict=True):
        if isinstance(length, str):
            faults.append(Fault(example.line, "template", length))
        elif max_length is not None and length[0] > max_length:
            faults.append(Fault(example.line, "too_long", f"{length[0]:,} tokens"))
        else:
            kept.append(replace(example, tokens=length[0], answer_tokens=length[1]))
    return kept, faults


def _spread(lengths: Sequence[int]) -> Spread | None:
    """Nearest ranks: a length that is there."""
    if not lengths:
        return None
    ordered = sorted(lengths)
    return Spread(
        median=ordered[(len(ordered) - 1) // 2],
        p95=ordered[-(-95 * len(ordered) // 100) - 1],
        longest=ordered[-1],
        total=sum(ordered),
    )
