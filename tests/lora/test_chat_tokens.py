"""Which tokens of a conversation bear loss: the answers and the tokens that end them, whatever the template does."""

import pytest

from lora.standalone.llmtune_chat_tokens import NO_LOSS, Chat, Tokens, Unusable, collate
from tests.lora.fake_tokenizer import CHATML, INSTRUCTIONS, NO_END, NO_SYSTEM, THINKING, FakeTokenizer

END = 1  # <|im_end|>


def turns(*texts: str, system: str | None = None) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    said = [{"role": roles[index % 2], "content": text} for index, text in enumerate(texts)]
    return said if system is None else [{"role": "system", "content": system}, *said]


def learnt(tokenizer: FakeTokenizer, tokens: Tokens) -> list[str]:
    """The stretches of tokens that bear loss."""
    stretches: list[list[int]] = [[]]
    for number, label in zip(tokens.input_ids, tokens.labels, strict=True):
        if label == NO_LOSS:
            stretches.append([])
        else:
            assert label == number
            stretches[-1].append(number)
    return [tokenizer.decode(stretch) for stretch in stretches if stretch]


def learnt_of(template: str | None, messages: list[dict[str, str]], **options: object) -> list[str]:
    tokenizer = FakeTokenizer(template, **options)  # type: ignore[arg-type]
    return learnt(tokenizer, Chat(tokenizer).tokens(messages))


@pytest.mark.parametrize("fast", [True, False])
def test_only_answers_and_their_end_tokens_bear_loss(fast: bool) -> None:
    messages = turns("What is up?", "Not much.", "And now?", "Still nothing.", system="Be brief.")
    assert learnt_of(CHATML, messages, fast=fast) == ["Not much.<|im_end|>", "Still nothing.<|im_end|>"]


def test_an_answer_that_stands_in_the_frame_or_in_a_question_is_found_at_its_place() -> None:
    messages = turns("is the answer 4 or a", "a", "assistant", "assistant")
    assert learnt_of(CHATML, messages) == ["a<|im_end|>", "assistant<|im_end|>"]


def test_what_follows_the_last_end_token_is_left_off() -> None:
    tokenizer = FakeTokenizer(CHATML)
    tokens = Chat(tokenizer).tokens(turns("a", "b"))
    assert tokenizer.decode(tokens.input_ids) == "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>"
    assert tokens.answer_tokens == 2


def test_the_prompt_of_a_server_ends_where_loss_begins() -> None:
    tokenizer = FakeTokenizer(THINKING)
    chat = Chat(tokenizer)
    messages = turns("a", "b", "c", "d")
    prompt = chat.prompt_ids(messages[:-1])
    tokens = chat.tokens(messages)
    assert tokens.input_ids[: len(prompt)] == prompt
    assert all(label != NO_LOSS for label in tokens.labels[len(prompt) :])


def test_a_frame_that_the_model_must_write_itself_is_learnt() -> None:
    """Qwen3's empty block of thoughts comes behind the generation prompt."""
    assert learnt_of(THINKING, turns("a", "b")) == ["<think>\n\n</think>\n\nb<|im_end|>"]


@pytest.mark.parametrize("template", [CHATML, THINKING, NO_SYSTEM, NO_END, INSTRUCTIONS, None])
@pytest.mark.parametrize("answer", ["b", "  if x:\n    y", "1"])
def test_every_template_has_the_servers_prompt_before_the_loss(template: str | None, answer: str) -> None:
    """Also where a word takes the space at the prompt's end along (`assistant: b`)."""
    tokenizer = FakeTokenizer(template)
    chat = Chat(tokenizer)
    messages = turns("a", "b", "c", answer)
    prompt = chat.prompt_ids(messages[:-1])
    tokens = chat.tokens(messages)
    assert tokens.input_ids[: len(prompt)] == prompt
    assert all(label != NO_LOSS for label in tokens.labels[len(prompt) :])
    assert tokens.labels[len(prompt) - 1] == NO_LOSS


def test_thoughts_that_the_template_drops_from_history_bear_no_loss_there() -> None:
    messages = turns("a", "<think>hm</think>\n\nb", "c", "<think>ha</think>\n\nd")
    assert learnt_of(THINKING, messages)[-1] == "<think>ha</think>\n\nd<|im_end|>"
    assert not any("hm" in stretch for stretch in learnt_of(THINKING, messages))


def test_a_system_turn_that_the_template_refuses_goes_before_the_question() -> None:
    tokenizer = FakeTokenizer(NO_SYSTEM)
    chat = Chat(tokenizer)
    tokens = chat.tokens(turns("Who?", "Me.", system="Be brief."))
    assert "user\nBe brief.\n\nWho?<|im_end|>" in tokenizer.decode(tokens.input_ids)
    assert learnt(tokenizer, tokens) == ["Me.<|im_end|>"]
    assert "Be brief.\n\nWho?" in tokenizer.decode(chat.prompt_ids(turns("Who?", system="Be brief.")))


def test_a_template_that_drops_the_system_turn_in_silence_has_it_in_the_question() -> None:
    silent = CHATML.replace("{% for m in messages %}", "{% for m in messages if m['role'] != 'system' %}")
    tokenizer = FakeTokenizer(silent)
    assert "Be brief.\n\nWho?" in tokenizer.decode(Chat(tokenizer).tokens(turns("Who?", "Me.", system="Be brief."))[0])


def test_a_template_that_trims_is_no_obstacle() -> None:
    assert learnt_of(NO_SYSTEM, turns(" a ", "  if x:\n    y")) == ["if x:\n    y<|im_end|>"]


def test_the_space_before_an_answer_belongs_to_its_first_token() -> None:
    assert learnt_of(INSTRUCTIONS, turns("Who?", "Me.", "Why?", "Luck.")) == [" Me. <|im_end|>", " Luck. <|im_end|>"]


def test_a_model_without_a_template_gets_the_plain_one() -> None:
    tokenizer = FakeTokenizer(None)
    chat = Chat(tokenizer)
    messages = turns("Who?", "Me.", "Why?", "Luck.", system="Be brief.")
    assert chat.template == "plain"
    assert chat.ends_with_end_token
    assert tokenizer.decode(chat.prompt_ids(messages[:2])) == "Be brief.\n\n### User:\nWho?\n\n### Assistant:\n"
    assert learnt(tokenizer, chat.tokens(messages)) == ["Me.<|im_end|>", "Luck.<|im_end|>"]
    assert tokenizer.chat_template  # what is saved beside an adapter


def test_an_end_token_is_learnt_where_the_template_has_none() -> None:
    tokenizer = FakeTokenizer(NO_END)
    chat = Chat(tokenizer)
    tokens = chat.tokens(turns("a", "b"))
    assert not chat.ends_with_end_token
    assert tokens.labels[-1] == tokens.input_ids[-1] == END


def test_a_turn_that_ends_with_another_sign_than_the_end_token_gets_both() -> None:
    """Base models of Qwen2.5: chatml, but a server stops at <|endoftext|>."""
    stretches = learnt_of(CHATML, turns("a", "b", "c", "d"), eos="<|endoftext|>")
    assert stretches == ["b<|im_end|>", "d<|im_end|>\n<|endoftext|>"]


def test_end_tokens_of_the_generation_config_count() -> None:
    tokenizer = FakeTokenizer(CHATML, eos="<|endoftext|>")
    chat = Chat(tokenizer, [END])
    assert chat.ends_with_end_token
    assert learnt(tokenizer, chat.tokens(turns("a", "b"))) == ["b<|im_end|>"]


def test_padding_that_is_the_end_token_leaves_the_end_learnt() -> None:
    tokenizer = FakeTokenizer(CHATML, pad="<|im_end|>")
    chat = Chat(tokenizer)
    rows = [chat.tokens(turns("a", "b")), chat.tokens(turns("a", "b c d e"))]
    batch = collate(rows, chat.pad_id)
    assert chat.pad_id == END
    widths = {len(row) for part in batch.values() for row in part}
    assert widths == {len(rows[1].input_ids)}
    for row, ids, mask, labels in zip(rows, batch["input_ids"], batch["attention_mask"], batch["labels"], strict=True):
        length = len(row.input_ids)
        assert sum(mask) == length
        assert mask == sorted(mask, reverse=True)
        assert ids[length - 1] == labels[length - 1] == END
        assert set(labels[length:]) <= {NO_LOSS}
        assert set(ids[length:]) <= {END}


def test_a_tokenizer_without_a_pad_token_pads_with_the_end_token() -> None:
    assert Chat(FakeTokenizer(CHATML, eos="<|endoftext|>")).pad_id == 2


@pytest.mark.parametrize("word", ["<|im_end|>", "<|im_start|>", "<|eot|>"])
def test_control_words_in_a_text_are_refused(word: str) -> None:
    with pytest.raises(Unusable, match=r"turn 2 holds <\|"):
        Chat(FakeTokenizer(CHATML)).tokens(turns("a", f"b {word} c"))


def test_a_template_that_hides_the_answer_is_told() -> None:
    hides = CHATML.replace("{{ m['content'] }}", "{{ m['content'] | upper }}")
    with pytest.raises(Unusable, match="does not show the last answer"):
        Chat(FakeTokenizer(hides)).tokens(turns("a", "b"))


def test_a_template_that_refuses_says_why() -> None:
    with pytest.raises(Unusable, match="refuses it: only two turns"):
        Chat(FakeTokenizer("{{ raise_exception('only two turns') }}")).tokens(turns("a", "b", "c", "d"))


def test_a_tokenizer_without_an_end_token_is_refused() -> None:
    with pytest.raises(Unusable, match="no end token"):
        Chat(FakeTokenizer(CHATML, eos=None))


def test_a_system_turn_alone_that_nothing_shows_is_told() -> None:
    silent = CHATML.replace("{% for m in messages %}", "{% for m in messages if m['role'] != 'system' %}")
    with pytest.raises(Unusable, match="no question to put it before"):
        Chat(FakeTokenizer(silent)).prompt_ids([{"role": "system", "content": "Be brief."}])
