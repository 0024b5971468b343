"""The order of a conversation's turns: an optional system turn, then questions and answers in turn, an answer last."""

from collections.abc import Sequence

from lora.data.records import Fault
from lora.records import Message


def ordered(turns: Sequence[Message], line: int) -> tuple[tuple[Message, ...], tuple[Fault, ...], Fault | None]:
    """The turns to learn from, what was left off of them, and why there are none.

    Left off are answers that nothing asked for at the beginning (ShareGPT holds many: its conversations were cut) and
    a last question without an answer. Any other disorder may hide a lost turn, so the record is left out.
    """
    system, rest = (tuple(turns[:1]), list(turns[1:])) if turns and turns[0].role == "system" else ((), list(turns))
    repairs: list[Fault] = []
    if rest and rest[0].role == "assistant" and len(rest) > 1:
        repairs.append(Fault(line, "leading_answer"))
        rest = rest[1:]
    if len(rest) > 1 and rest[-1].role == "user":
        repairs.append(Fault(line, "open_question"))
        rest = rest[:-1]
    fault = _disorder(rest, line, len(turns))
    if fault is not None:
        return (), (), fault
    return (*system, *rest), tuple(repairs), None


def _disorder(rest: Sequence[Message], line: int, turns: int) -> Fault | None:
    if not any(turn.role == "assistant" for turn in rest):
        return Fault(line, "no_answer", f"{turns} turns" if turns != 1 else "one turn")
    for before, after in zip((None, *rest), rest, strict=False):
        if after.role == "system":
            return Fault(line, "roles", "a system turn within the conversation")
        if before is None and after.role == "assistant":
            return Fault(line, "roles", "an answer without a question")
        if before is not None and before.role == after.role:
            return Fault(line, "roles", f"two {after.role} turns in a row")
    for turn in rest:
        if not turn.content:
            return Fault(line, "empty_answer" if turn.role == "assistant" else "empty_question")
    return None
