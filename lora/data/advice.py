"""What a person should know before deciding on a data set: one line each, with what to do."""

from collections import Counter

from lora.data.faults import counts
from lora.data.records import Examination, FaultKind

FEW = 50  # examples
FEW_VALIDATION = 20  # examples; the interval of a difference of losses is wide below
SAME_ANSWER = 0.5


def advice(found: Examination) -> list[str]:
    """In the order of what to look at first. `found` has something usable."""
    wrong = counts(found.faults)
    said = [
        *_file(found, wrong),
        *_template(found),
        *_lengths(found, wrong),
        *_parts(found),
    ]
    answers = Counter(example.messages[-1].content for example in (*found.train, *found.validation))
    times = answers.most_common(1)[0][1]
    if found.usable >= FEW_VALIDATION and times > SAME_ANSWER * found.usable:
        said.append(f"{times:,} of {found.usable:,} last answers are the same: a model learns to say nothing else")
    return said


def _file(found: Examination, wrong: dict[FaultKind, int]) -> list[str]:
    said = []
    if "cut_off" in wrong:
        last = next(fault for fault in found.faults if fault.kind == "cut_off")
        said.append(f"the file breaks off at line {last.line}: what follows it is not in the data set")
    if len(found.forms) > 1:
        forms = ", ".join(f"{number:,} {form}" for form, number in found.forms.items())
        said.append(f"records of several forms: {forms}")
    left = len({fault.line for fault in found.faults if fault.kind != "duplicate"})
    if left * 10 > found.records:
        said.append(f"more than a tenth of the records cannot be used as they are ({left:,} of {found.records:,})")
    return said


def _template(found: Examination) -> list[str]:
    counted = found.counted
    if counted is None:
        return ["lengths in tokens are not known: --model says whose tokenizer and chat template count"]
    if counted.template == "plain":
        return [
            "the model has no chat template: a plain one is used (`### User:`, `### Assistant:`), and a server of it "
            "needs the same (--chat-template)"
        ]
    if not counted.ends:
        return [f"the model's template does not end an answer with {counted.end_token}: it is put there to be learnt"]
    return []


def _lengths(found: Examination, wrong: dict[FaultKind, int]) -> list[str]:
    if "too_long" not in wrong or found.lengths is None:
        return []
    longest, most = found.lengths.longest, found.lengths.p95
    enough = "" if found.max_length is None or most <= found.max_length else f"--max-length {most} keeps 95 %, "
    return [f"{wrong['too_long']:,} are longer than the limit: {enough}--max-length {longest} keeps all"]


def _parts(found: Examination) -> list[str]:
    said = []
    if not found.validation:
        why = "all begin with the same question" if found.share > 0 else "--validation 0"
        said.append(f"no validation ({why}): nothing will show whether more than the training part was learnt")
    elif len(found.validation) < FEW_VALIDATION:
        said.append(f"a validation of {len(found.validation)} says little: about {FEW_VALIDATION} and more are better")
    if found.overlap:
        said.append(
            f"{found.overlap:,} answered questions of the validation stand in the training part too, later in a "
            "conversation: its loss will look better than it is"
        )
    if len(found.train) < FEW:
        said.append(f"{len(found.train)} examples to learn from are few")
    return said
