"""The forms in which people keep training data, told apart by the fields of each record, and each as a conversation.

    alpaca             {"instruction", "input", "output"}, with "system" and "history" where LLaMA-Factory has them;
                       Dolly calls the input "context" and the output "response"
    messages           {"messages": [{"role", "content"}]}, as OpenAI and TRL have it
    sharegpt           {"conversations": [{"from", "value"}]}, with "system" beside
    prompt/completion  {"prompt", "completion"}: texts, or lists of messages as in TRL; also question and answer
    self-instruct      {"instruction", "instances": [{"input", "output"}]}: one conversation an instance

Names of fields count whatever their case: spreadsheets begin them with a capital. A field that is null counts for
nothing where another one serves: tables that were made of several sets have the fields of all in each record.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from engine.text import clean
from lora.data.contents import Unusable, text_of, turns_of, unused_of
from lora.data.records import Converted, Fault, Record
from lora.data.turns import ordered
from lora.records import Example, Message

ANSWERS = ("output", "completion", "response", "answer", "solution", "target")
QUESTIONS = ("prompt", "question", "query", "problem", "input")
_GIVEN = ("input", "context")
_SYSTEM = ("system", "system_prompt")
_LISTS = ("conversations", "conversation")
_NO_INPUT = ("<noinput>", "<no input>")  # as self-instruct and Alpaca's generated sets write it


def form_of(value: Mapping[str, Any]) -> str | None:
    """The form of a record, or None. A preference is told apart, though nothing is learnt from it here."""
    named = _lowered(value)
    return _form_of({name for name, each in named.items() if each is not None}) or _form_of(named.keys())


def _form_of(names: Collection[str]) -> str | None:
    if "messages" in names:
        return "messages"
    if any(name in names for name in _LISTS):
        return "sharegpt"
    if "chosen" in names and "rejected" in names:
        return "preference"
    if "instruction" in names and "instances" in names:
        return "self-instruct"
    if "instruction" in names and any(name in names for name in ANSWERS):
        return "alpaca"
    if any(name in names for name in QUESTIONS) and any(name in names for name in ANSWERS):
        return "prompt/completion"
    return None


def convert(record: Record) -> Converted:
    """One record as conversations; what cannot be used is told, never dropped in silence."""
    named = _lowered(record.value)
    form = form_of(named)
    if form is None:
        return Converted("unknown", faults=(_unknown(named, record.line),))
    if form == "preference":
        return Converted(form, faults=(Fault(record.line, "preference"),))
    try:
        conversations, used = _TURNS[form](named)
    except Unusable as error:
        return Converted(form, faults=(error.at(record.line),))
    examples: list[Example] = []
    faults: list[Fault] = []
    repairs: list[Fault] = []
    for turns in conversations:
        messages, changed, fault = ordered(turns, record.line)
        repairs += changed
        if fault is not None:
            faults.append(fault)
        else:
            examples.append(Example(messages, record.line))
    if not conversations:
        faults.append(Fault(record.line, "no_answer", "no instances"))
    inside = {name for field in ("messages", *_LISTS) for name in unused_of(named.get(field))}
    unused = {name for name, value in named.items() if name not in used and value not in (None, "", [], {})}
    names = tuple(sorted({clean(name, 40) for name in unused | inside}))
    return Converted(form, tuple(examples), tuple(faults), tuple(repairs), names)


_Turns = tuple[list[list[Message]], set[str]]


def _messages(named: Mapping[str, Any]) -> _Turns:
    return [turns_of(named["messages"])], {"messages"}


def _sharegpt(named: Mapping[str, Any]) -> _Turns:
    field = _field(named, _LISTS)
    turns = turns_of(named[field])
    begins = bool(turns) and turns[0].role == "system"
    system, used = ([], set[str]()) if begins else _system(named)
    return [[*system, *turns]], {field, *used}


def _alpaca(named: Mapping[str, Any]) -> _Turns:
    answer = _field(named, ANSWERS)
    given = _given(named)
    system, used = _system(named)
    question = _question(named["instruction"], named.get(given))
    turns = [*system, *_history(named.get("history")), question, Message("assistant", text_of(named[answer], answer))]
    return [turns], {"instruction", given, "history", answer, *used}


def _self_instruct(named: Mapping[str, Any]) -> _Turns:
    conversations = []
    if not isinstance(named["instances"], list):
        raise Unusable("not_text", "no list of instances")
    for instance in named["instances"]:
        if not isinstance(instance, Mapping):
            raise Unusable("not_text", "an instance")
        answer = text_of(instance.get("output"), "output")
        conversations.append([_question(named["instruction"], instance.get("input")), Message("assistant", answer)])
    return conversations, {"instruction", "instances"}


def _prompt_completion(named: Mapping[str, Any]) -> _Turns:
    question, answer = _field(named, QUESTIONS), _field(named, ANSWERS)
    given = _given(named) if question != "input" else "context"
    system, used = _system(named)
    before, after = named[question], named[answer]
    asked = turns_of(before) if _is_turns(before) else [_question(before, named.get(given))]
    answered = turns_of(after) if _is_turns(after) else [Message("assistant", text_of(after, answer))]
    return [[*system, *asked, *answered]], {question, given, answer, *used}


_TURNS: dict[str, Callable[[Mapping[str, Any]], _Turns]] = {
    "messages": _messages,
    "sharegpt": _sharegpt,
    "alpaca": _alpaca,
    "self-instruct": _self_instruct,
    "prompt/completion": _prompt_completion,
}


def _field(named: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first of these fields that is there, one with something in it if there is any."""
    there = [name for name in names if name in named]
    return next((name for name in there if named[name] is not None), there[0])


def _given(named: Mapping[str, Any]) -> str:
    """The field of what a question is about."""
    return next((name for name in _GIVEN if named.get(name)), _GIVEN[0])


def _question(instruction: Any, given: Any) -> Message:
    asked, added = text_of(instruction, "the question"), text_of(given, "the input")
    if added.casefold() in _NO_INPUT:
        added = ""
    return Message("user", f"{asked}\n\n{added}" if asked and added else asked or added)


def _system(named: Mapping[str, Any]) -> tuple[list[Message], set[str]]:
    field = next((name for name in _SYSTEM if name in named), None)
    text = text_of(named[field], field) if field else ""
    return ([Message("system", text)] if text else []), ({field} if field else set())


def _history(value: Any) -> list[Message]:
    """LLaMA-Factory's earlier turns: a list of `[question, answer]`."""
    turns: list[Message] = []
    for pair in value or []:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise Unusable("not_text", "history")
        turns += [Message("user", text_of(pair[0], "history")), Message("assistant", text_of(pair[1], "history"))]
    return turns


def _is_turns(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, Mapping) and "role" in each for each in value)


def _lowered(value: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name).strip().casefold(): each for name, each in value.items()}


def _unknown(named: Mapping[str, Any], line: int) -> Fault:
    """Names what is there: the one thing from which a person can see what to rename."""
    names = ", ".join(clean(name, 30) for name in list(named)[:8]) or "no fields"
    asked = any(name in named for name in (*QUESTIONS, "instruction", "turns"))
    return Fault(line, "no_answer" if asked else "unknown_form", f"fields: {names}")
