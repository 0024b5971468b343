"""A tokenizer with the few things of transformers' that are used, and reduced templates of well-known models."""

import re
from types import SimpleNamespace
from typing import Any

from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Qwen3: thoughts are taken out of earlier answers, and the last one has a block for them, empty where it has none.
THINKING = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['role'] == 'assistant' and not loop.last %}{{ m['content'].split('</think>')[-1].lstrip('\n') }}"
    "{% elif m['role'] == 'assistant' and '<think>' not in m['content'] %}<think>\n\n</think>\n\n{{ m['content'] }}"
    "{% else %}{{ m['content'] }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Gemma: no system turn, answers by `model`, texts trimmed.
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}<|im_start|>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n"
    "{{ m['content'] | trim }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>model\n{% endif %}"
)
# Llama 2: a space before and behind an answer.
INSTRUCTIONS = (
    "{% for m in messages %}{% if m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]"
    "{% else %} {{ m['content'] }} <|im_end|>{% endif %}{% endfor %}"
)
# Answers end with nothing at which a server stops.
NO_END = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)

SPECIAL = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot|>")
_TOKEN = re.compile("|".join(map(re.escape, SPECIAL)) + r"| ?\w+| ?(?!<\|)[^\w\s]|<|\s")


class FakeTokenizer:
    """Words with the space before them, marks and white space are tokens; `fast` is whether it tells their places."""

    def __init__(
        self, chat_template: str | None, *, eos: str | None = "<|im_end|>", pad: str | None = None, fast: bool = True
    ) -> None:
        self.chat_template = chat_template
        self._words: list[str] = list(SPECIAL)
        self.eos_token = eos
        self.eos_token_id = None if eos is None else self._words.index(eos)
        self.pad_token_id = None if pad is None else self._words.index(pad)
        self.all_special_ids = [self._words.index(word) for word in ("<|im_end|>", "<|endoftext|>")]
        self.added_tokens_decoder = {0: SimpleNamespace(special=True), 3: SimpleNamespace(special=True)}
        self.is_fast = fast

    def convert_ids_to_tokens(self, number: int) -> str:
        return self._words[number]

    def apply_chat_template(self, messages: Any, tokenize: bool, add_generation_prompt: bool) -> str:
        assert not tokenize
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _raise
        template = environment.from_string(self.chat_template or "")
        return template.render(messages=messages, add_generation_prompt=add_generation_prompt, eos_token=self.eos_token)

    def __call__(
        self, text: str, add_special_tokens: bool, verbose: bool, return_offsets_mapping: bool = False
    ) -> dict[str, list[Any]]:
        assert not add_special_tokens
        assert self.is_fast or not return_offsets_mapping
        found = list(_TOKEN.finditer(text))
        ids = [self._id(each.group()) for each in found]
        return {"input_ids": ids, "offset_mapping": [each.span() for each in found]}

    def _id(self, word: str) -> int:
        if word not in self._words:
            self._words.append(word)
        return self._words.index(word)

    def decode(self, ids: list[int]) -> str:
        return "".join(self._words[number] for number in ids)


def _raise(why: str) -> None:
    raise TemplateError(why)
