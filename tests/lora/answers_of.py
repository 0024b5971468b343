"""Runs in the training Python: what a base and an adapter of it answer. `python answers_of.py STANDALONE BASE ADAPTER
QUESTION…` prints one line, `ANSWERS [[base's, adapter's], …]`."""

import json
import sys

sys.path.insert(0, sys.argv[1])

import llmtune_chat_tokens as chat_tokens
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM


def main() -> None:
    base, adapter, questions = sys.argv[2], sys.argv[3], sys.argv[4:]
    chat = chat_tokens.open_tokenizer(base)
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), adapter).eval()
    found = []
    for question in questions:
        prompt = torch.tensor([chat.prompt_ids([{"role": "user", "content": question}])])

        def answer(prompt: torch.Tensor = prompt) -> str:
            made = model.generate(
                prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=32,
                eos_token_id=list(chat.end_ids), pad_token_id=chat.pad_id,
            )  # fmt: skip
            return str(chat.tokenizer.decode(made[0, prompt.shape[1] :]))

        with model.disable_adapter():
            plain = answer()
        found.append([plain, answer()])
    print("ANSWERS " + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
