"""A conversation as tokens, with the loss on answers alone. Shared by the trainer, the evaluation and the count of
lengths, so that all three see the same tokens.

Runs in the training Python (3.9 or newer), where transformers is, and imports nothing of the program that starts it.

What a model has to learn is what a server asks of it: everything after the generation prompt of its chat template, up
to and including the token that ends an answer. So loss is borne by each answer of a conversation and the end token
behind it, and by nothing else: neither by questions nor by the template's frame around the turns.

The whole conversation is rendered and tokenized at once, as a server does with a history, and answers are found in it
by their place: the template is rendered a second time with a sign in place of each turn's text. Templates that treat a
text by what it says (Qwen3 takes `<think>` out of earlier answers) are searched for the text itself.

Labels are not shifted against the tokens: transformers' models do that.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

NO_LOSS = -100  # torch.nn.CrossEntropyLoss leaves it out by default

PLAIN_TEMPLATE = (
    "{% if bos_token is defined and bos_token %}{{ bos_token }}{% endif %}"
    "{% for message in messages %}"
    "{% if message['role'] == 'system' %}{{ message['content'] + '\n\n' }}"
    "{% elif message['role'] == 'user' %}{{ '### User:\n' + message['content'] + '\n\n' }}"
    "{% else %}{{ '### Assistant:\n' + message['content'] + eos_token + '\n\n' }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '### Assistant:\n' }}{% endif %}"
)
"""For a model that has no chat template. A server of such a model must be given it too (`--chat-template`): it lies
beside an adapter as chat_template.jinja, where `save_pretrained` of the tokenizer puts it."""

Messages = list[dict[str, str]]


class Unusable(Exception):
    """A model whose tokenizer cannot be used, or a conversation that its template cannot show; one line."""


class Tokens(NamedTuple):
    """One conversation. `labels` are the tokens that bear loss and NO_LOSS elsewhere; both lists have one length."""

    input_ids: list[int]
    labels: list[int]

    @property
    def answer_tokens(self) -> int:
        return sum(label != NO_LOSS for label in self.labels)


class Span(NamedTuple):
    """A turn's text within the rendered conversation, in characters."""

    start: int
    end: int


class Answer(NamedTuple):
    """Where loss begins and the answer's text ends, in characters, and where the next turn's text begins. `exact` is
    whether it begins where the generation prompt ends."""

    start: int
    end: int
    until: int
    exact: bool


def open_tokenizer(model: str) -> Chat:
    """The tokenizer of a folder or a name of the hub, with a template. Raises Unusable."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError, KeyError, ImportError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise Unusable(f"the tokenizer of {model} cannot be loaded: {first}") from None
    return Chat(tokenizer, end_ids_of(model))


def end_ids_of(model: str) -> list[int]:
    """The tokens that end an answer according to generation_config.json: vLLM stops at each of them."""
    from transformers.utils import cached_file

    try:
        path = cached_file(model, "generation_config.json")
        with open(path, encoding="utf-8") as file:
            ids = json.load(file).get("eos_token_id")
    except (OSError, ValueError, AttributeError, TypeError):
        return []
    return [ids] if isinstance(ids, int) else [one for one in ids or [] if isinstance(one, int)]


class Chat:
    """A tokenizer and its template. `template` is "model", or "plain" where the model has none."""

    def __init__(self, tokenizer: Any, end_ids: list[int] | tuple[int, ...] = ()) -> None:
        if tokenizer.eos_token_id is None:
            raise Unusable("the tokenizer has no end token: a model could not learn where an answer ends")
        self.tokenizer = tokenizer
        self.template = "model" if tokenizer.chat_template else "plain"
        if self.template == "plain":
            tokenizer.chat_template = PLAIN_TEMPLATE
        self.end_token: str = tokenizer.eos_token
        self.end_ids = {tokenizer.eos_token_id, *end_ids}
        # Padding is told by place, never by value (`collate`), so the end token may serve.
        self.pad_id: int = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        self._special = set(tokenizer.all_special_ids)
        added = getattr(tokenizer, "added_tokens_decoder", {})
        self._special |= {number for number, token in added.items() if getattr(token, "special", False)}
        words = {tokenizer.convert_ids_to_tokens(number) for number in self._special}
        self._words = sorted(word for word in words if isinstance(word, str) and len(word) > 1)

    def tokens(self, messages: Messages) -> Tokens:
        """A conversation that ends with an answer. Raises Unusable for one that the template cannot show."""
        self._refuse_control_words(messages)
        shown, text = self._shown(messages)
        spans = self._spans(shown, text)
        answers = [(index, span) for index, span in enumerate(spans) if shown[index]["role"] == "assistant"]
        if not answers or answers[-1][1] is None:
            raise Unusable("the model's template does not show the last answer as it is")
        learnt = [self._answer(shown, spans, index, text) for index, span in answers if span is not None]
        ids, places = self._tokenized(text, learnt)
        labels = [NO_LOSS] * len(ids)
        for answer in learnt:
            ended = self._label(ids, places, labels, text, answer)
        if not ended:  # of the last answer: its template ends it with no token at which a server stops
            last = _first_from(places, learnt[-1].end)
            labels[last:] = ids[last:]
            ids.append(self.tokenizer.eos_token_id)
            labels.append(self.tokenizer.eos_token_id)
        used = max(index for index, label in enumerate(labels) if label != NO_LOSS) + 1
        return Tokens(ids[:used], labels[:used])

    def prompt_ids(self, messages: Messages) -> list[int]:
        """What a server makes of a conversation that waits for its answer. Raises Unusable."""
        shown, _ = self._shown(messages)
        return self._ids(self._render(shown, True))

    @property
    def ends_with_end_token(self) -> bool:
        """Whether the template itself ends an answer with a token at which a server stops."""
        ids = self._ids(self._render([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], False))
        return bool(self.end_ids.intersection(ids[-3:]))

    def _refuse_control_words(self, messages: Messages) -> None:
        for number, message in enumerate(messages, 1):
            for word in self._words:
                if word in message["content"]:
                    raise Unusable(f"turn {number} holds {word}, which the model's tokenizer takes for its own sign")

    def _render(self, messages: Messages, prompt: bool) -> str:
        from jinja2.exceptions import TemplateError

        try:
            text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt)
        except (TemplateError, TypeError, ValueError, KeyError, ImportError) as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise Unusable(f"the model's template refuses it: {first}") from None
        return str(text)

    def _shown(self, messages: Messages) -> tuple[Messages, str]:
        """The turns as the template shows them: a system turn that it refuses or drops goes before the question."""
        if messages[0]["role"] != "system":
            return messages, self._render(messages, False)
        try:
            text = self._render(messages, False)
            if messages[0]["content"].strip() in text:
                return messages, text
        except Unusable:
            if len(messages) < 2:
                raise
        if len(messages) < 2:
            raise Unusable("the model's template shows no system turn, and there is no question to put it before")
        question = f"{messages[0]['content']}\n\n{messages[1]['content']}"
        folded = [{"role": "user", "content": question}, *messages[2:]]
        return folded, self._render(folded, False)

    def _spans(self, messages: Messages, text: str) -> list[Span | None]:
        """Where each turn's text stands; None for one that the template does not show as it is."""
        signs = [f"\ue000llmtune-turn-{index}\ue001" for index in range(len(messages))]
        try:
            frame = self._render([{**m, "content": sign} for m, sign in zip(messages, signs)], False)  # noqa: B905
        except Unusable:
            return self._searched(messages, text)
        for texts in ([m["content"] for m in messages], [m["content"].strip() for m in messages]):
            found = _filled(frame, signs, texts)
            if found is not None and found[0] == text:
                return list(found[1])
        return self._searched(messages, text)

    def _searched(self, messages: Messages, text: str) -> list[Span | None]:
        found: list[Span | None] = []
        place = 0
        for index, message in enumerate(messages):
            if message["role"] == "assistant":
                prompt = self._render(messages[:index], True)
                place = max(place, len(prompt)) if text.startswith(prompt) else place
            content = message["content"].strip()
            start = text.find(content, place)
            found.append(Span(start, start + len(content)) if start >= 0 else None)
            place = start + len(content) if start >= 0 else place
        return found

    def _answer(self, messages: Messages, spans: list[Span | None], index: int, text: str) -> Answer:
        """What the model must write itself bears loss: all behind the generation prompt (Qwen3 has an empty `<think>`
        block there). Where that prompt is no beginning of the text, only the answer's own text does."""
        span = spans[index]
        assert span is not None
        prompt = self._render(messages[:index], True)
        exact = text.startswith(prompt) and len(prompt) <= span.start
        until = next((after.start for after in spans[index + 1 :] if after is not None), len(text))
        return Answer(len(prompt) if exact else span.start, span.end, until, exact)

    def _label(self, ids: list[int], places: list[Span], labels: list[int], text: str, answer: Answer) -> bool:
        """Let one answer bear loss, with the token that ends it; whether a server stops at that token."""
        first = _first_from(places, answer.start)
        if first and places[first - 1].end > answer.start and text[places[first - 1].start : answer.start] == " ":
            first -= 1  # a word is one token with the space before it
        after = _first_from(places, answer.end)
        labels[first:after] = ids[first:after]
        tail = [index for index in range(after, len(ids)) if places[index].start < answer.until]
        for ends in (self.end_ids, self._special):
            end = next((index for index in tail if ids[index] in ends), None)
            if end is not None:
                labels[after : end + 1] = ids[after : end + 1]
                return ends is self.end_ids
        return False

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def _tokenized(self, text: str, answers: list[Answer]) -> tuple[list[int], list[Span]]:
        """Tokens and where each stands in the text. Where a token would reach from the last generation prompt into the
        answer, they are cut there: a server makes tokens of the prompt alone. Not before: what was answered earlier is
        history to a server, in one piece with the rest. A tokenizer that tells no places has all answers cut out:
        their tokens could not be told otherwise."""
        if not self.tokenizer.is_fast:
            return self._pieces(text, sorted({place for answer in answers for place in (answer.start, answer.end)}))
        ids, places = self._placed(text, 0)
        last = answers[-1]
        if last.exact and any(place.start < last.start < place.end for place in places):
            return self._pieces(text, [last.start])
        return ids, places

    def _pieces(self, text: str, cuts: list[int]) -> tuple[list[int], list[Span]]:
        ids: list[int] = []
        places: list[Span] = []
        edges = [0, *cuts, len(text)]
        for start, end in zip(edges, edges[1:]):  # noqa: B905, RUF007
            some, there = self._placed(text[start:end], start)
            ids += some
            places += there
        return ids, places

    def _placed(self, text: str, start: int) -> tuple[list[int], list[Span]]:
        if not self.tokenizer.is_fast:
            ids = self._ids(text)
            return ids, [Span(start, start + len(text))] * len(ids)
        coded = self.tokenizer(text, add_special_tokens=False, verbose=False, return_offsets_mapping=True)
        return list(coded["input_ids"]), [Span(start + a, start + b) for a, b in coded["offset_mapping"]]


def _first_from(places: list[Span], character: int) -> int:
    """The first token that begins at a character or after it."""
    return next((index for index, place in enumerate(places) if place.start >= character), len(places))


def _filled(frame: str, signs: list[str], texts: list[str]) -> tuple[str, list[Span]] | None:
    """The frame with the texts in place of their signs, and where they stand; None where a sign is not there once."""
    out, spans, rest = "", [], frame
    for sign, text in zip(signs, texts):  # noqa: B905
        before, found, rest = rest.partition(sign)
        if not found or sign in rest:
            return None
        out += before
        spans.append(Span(len(out), len(out) + len(text)))
        out += text
    return out + rest, spans


def collate(rows: list[Tokens], pad_id: int) -> dict[str, list[list[int]]]:
    """A batch of one length, padded on the right. What is padding is told by its place: where the pad token is the end
    token, the end of each answer still bears loss, and the model learns to stop."""
    width = max(len(row.input_ids) for row in rows)
    return {
        "input_ids": [row.input_ids + [pad_id] * (width - len(row.input_ids)) for row in rows],
        "attention_mask": [[1] * len(row.input_ids) + [0] * (width - len(row.input_ids)) for row in rows],
        "labels": [row.labels + [NO_LOSS] * (width - len(row.labels)) for row in rows],
    }


def read_examples(path: str | Path) -> list[Messages]:
    """The conversations of a prepared file, one `{"messages": […]}` a line. Raises OSError, ValueError, KeyError."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line)["messages"] for line in file if line.strip()]
