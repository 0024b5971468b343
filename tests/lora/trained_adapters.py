"""Runs in the training Python: makes small real adapters for a model with peft, without the program's own trainer.

`python trained_adapters.py MODEL EXAMPLES FOLDER` makes FOLDER/{first,second,random,zero}/ of rank 16. `first` and
`second` learnt EXAMPLES (`{"messages": […]}` a line) a little and a little more, `random` was never trained, and the B
factors of `zero` are 0, as before the first step of a training.
"""

import sys
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from transformers import AutoModelForCausalLM

STEPS = (3, 5)  # the loss on short answers halves within the first
RATE = 4e-3
LAYERS = list(range(20, 30))  # the last third: nothing before it needs a gradient


def main() -> None:
    model, examples, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lora" / "standalone"))
    import llmtune_chat_tokens as chat_tokens

    chat = chat_tokens.open_tokenizer(model)
    rows = [chat.tokens(messages) for messages in chat_tokens.read_examples(examples)]
    batch = {name: torch.tensor(values) for name, values in chat_tokens.collate(rows, chat.pad_id).items()}
    torch.manual_seed(1)
    base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    settings = LoraConfig(
        task_type="CAUSAL_LM", r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"], layers_to_transform=LAYERS
    )
    adapted = get_peft_model(base, settings)
    adapted.save_pretrained(folder / "zero")
    before = {name: value.clone() for name, value in get_peft_model_state_dict(adapted).items()}
    optimizer = torch.optim.AdamW([each for each in adapted.parameters() if each.requires_grad], lr=RATE)
    for step in range(max(STEPS) + 1):
        if step in STEPS:
            adapted.save_pretrained(folder / ("first" if step == STEPS[0] else "second"))
        loss = adapted(**batch).loss
        print(f"step {step} loss {loss.item():.4f}", flush=True)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    noise = {name: torch.randn_like(value) * 0.05 if "lora_B" in name else value for name, value in before.items()}
    set_peft_model_state_dict(adapted, noise)
    adapted.save_pretrained(folder / "random")


if __name__ == "__main__":
    main()
