"""The prepared form of a conversation: one `{"messages": [{"role", "content"}, …]}` a line."""

import json
from pathlib import Path

from lora.records import DataUnfit, Example, Message


def example_line(example: Example) -> str:
    """One line with its end. Only what is learnt: the same conversations give the same bytes, and the same hash."""
    messages = [{"role": message.role, "content": message.content} for message in example.messages]
    return json.dumps({"messages": messages}, ensure_ascii=False) + "\n"


def read_examples(path: Path) -> tuple[Example, ...]:
    """The conversations of a prepared file; `line` is that of this file. Raises DataUnfit."""
    examples: list[Example] = []
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, 1):
                messages = tuple(Message(each["role"], each["content"]) for each in json.loads(line)["messages"])
                examples.append(Example(messages, number))
    except OSError as error:
        raise DataUnfit(f"{path} cannot be read ({error.strerror}): prepare the data set again") from None
    except (ValueError, KeyError, TypeError):
        raise DataUnfit(f"{path}:{len(examples) + 1} is not as it was prepared: prepare the data set again") from None
    return tuple(examples)
