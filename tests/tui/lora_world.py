"""A data directory with data sets, a training under way and ended ones, adapters in versions, one of them served."""

import json
import math
from pathlib import Path
from typing import Any

from store.records import AdapterRecord, DatasetRecord, EvaluationRecord, EventRecord, TrainingRecord
from store.writer import Writer
from tests.tui.conftest import ago, server
from tui.lora.form import TrainingForm, Wanted, read_form
from tui.lora.progress import ProgressTail
from tui.panels.row import text_of

BASE = "/models/qwen2.5-7b"
SETTINGS: dict[str, Any] = {
    "r": 16,
    "alpha": 16,
    "dropout": 0.05,
    "targets": ["q_proj", "v_proj"],
    "learning_rate": 2e-4,
    "batch": 1,
    "accumulation": 8,
    "epochs": 3.0,
    "steps": None,
    "max_length": 1024,
    "quantization": "nf4",
    "gradient_checkpointing": True,
}
STEPS, PLANNED = 120, 540

# The shape of Qwen2.5-7B, which the issue gives the figures of.
QWEN = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "tie_word_embeddings": False,
}


def a_dataset(**changes: Any) -> DatasetRecord:
    fields: dict[str, Any] = {
        "name": "support",
        "path": "datasets/1-support",
        "data_hash": "ab" * 32,
        "train_examples": 1440,
        "validation_examples": 160,
        "seed": 7,
        "created_at": ago(9000),
        "sources": [{"path": "/data/support.jsonl", "sha256": "cd" * 32, "bytes": 812_340, "form": "alpaca"}],
        "model": BASE,
        "max_length": 1024,
        "train_tokens": 432_000,
        "validation_tokens": 48_000,
        "report": {
            "left_out": [{"kind": "duplicate", "what": "duplicates", "number": 31, "lines": [17, 90]}],
            "changed": [],
            "length_tokens": {"median": 260, "p95": 610, "longest": 1020, "total": 480_000},
            "advice": ["answers are short: 41 tokens at the median"],
            "learnt": "Yes, we can.<|im_end|>",
        },
    }
    return DatasetRecord(**{**fields, **changes})


def a_training(**changes: Any) -> TrainingRecord:
    fields: dict[str, Any] = {
        "name": "support-qv",
        "state": "running",
        "base_model": BASE,
        "dataset_id": 1,
        "settings": SETTINGS,
        "seed": 0,
        "path": "trainings/1-support-qv",
        "marker": "1" * 32,
        "created_at": ago(300),
        "started_at": ago(290),
        "adapter_name": "support-qv",
        "environment": {"gpu": "NVIDIA H200", "torch": "2.9.1", "peft": "0.21.2"},
        "step": STEPS,
        "steps": PLANNED,
        "loss": 1.31,
        "seconds": 1.5 * STEPS,
    }
    return TrainingRecord(**{**fields, **changes})


def an_adapter(version: int = 1, **changes: Any) -> AdapterRecord:
    name = str(changes.get("name", "support-qv"))
    fields: dict[str, Any] = {
        "name": name,
        "version": version,
        "base_model": BASE,
        "path": f"adapters/{name}/{version}",
        "signature": "ef" * 32,
        "size_bytes": 20_212_345,
        "created_at": ago(7000 - version),
        "parameters": {"r": 16, "alpha": 16, "targets": ["q_proj", "v_proj"], "trainable_parameters": 5_046_272},
        "losses": {"train": 1.1, "validation": 1.4 - 0.05 * version},
        "gpu": "NVIDIA H200",
        "seconds": 812.0,
    }
    return AdapterRecord(**{**fields, **changes})


def an_evaluation(adapter_id: int, **changes: Any) -> EvaluationRecord:
    fields: dict[str, Any] = {
        "adapter_id": adapter_id,
        "created_at": ago(600),
        "data_hash": "ab" * 32,
        "records": 160,
        "answer_tokens": 6560,
        "base_loss": 2.1,
        "adapter_loss": 1.3,
        "difference": -0.8,
        "improved": 147,
        "low": -0.91,
        "high": -0.69,
        "answers": [{"prompt": "Can I return it?", "base": "Yes.", "adapter": "Within 30 days, [/b] yes."}],
    }
    return EvaluationRecord(**{**fields, **changes})


def progress_lines(steps: int = STEPS, planned: int = PLANNED) -> str:
    """What a trainer would have told so far: an evaluation every 40 steps."""
    lines: list[dict[str, Any]] = [{"kind": "plan", "steps": planned}]
    for step in range(1, steps + 1):
        loss = 1.1 + 1.2 * math.exp(-step / 60) + 0.08 * math.sin(1.7 * step)
        lines.append(
            {
                "kind": "step",
                "step": step,
                "steps": planned,
                "loss": round(loss, 4),
                "learning_rate": 2e-4 * min(step / 16, 1 - step / planned),
                "tokens_per_s": 1620 + 30 * math.sin(step),
                "grad_norm": 0.4 + 0.2 * math.exp(-step / 30),
                "gpu_gib": 11.4,
                "seconds": 1.5 * step,
            }
        )
        if step % 40 == 0:
            lines.append({"kind": "eval", "step": step, "eval_loss": round(1.15 + 1.2 * math.exp(-step / 60), 4)})
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def fill(writer: Writer, data_dir: Path) -> None:
    """Data sets 1 and 2; trainings 1 (done) and 2 (under way); adapters 1, 2 (served) and 3 (imported)."""
    writer.insert(a_dataset())
    writer.insert(a_dataset(name="tiny", train_examples=9, validation_examples=1, train_tokens=None, model=None))
    writer.insert(
        a_training(state="done", step=540, seconds=812.0, loss=1.1, eval_loss=1.35, finished_at=ago(7000), name="first")
    )
    training = writer.insert(a_training(path="trainings/2-support-qv"))
    writer.insert(EventRecord(at=ago(250), level="info", text="step 40: a checkpoint", training_id=training))
    folder = data_dir / "trainings" / "2-support-qv"
    folder.mkdir(parents=True)
    (folder / "progress.jsonl").write_text(progress_lines())
    writer.insert(an_adapter(1, training_id=1))
    second = writer.insert(an_adapter(2, training_id=1))
    writer.insert(an_evaluation(second))
    writer.insert(an_adapter(1, name="imported", imported_from="/elsewhere/a", losses={}, seconds=None, gpu=None))
    command = ["vllm", "serve", BASE, "--enable-lora", "--max-lora-rank", "16", "--lora-modules"]
    writer.insert(
        server(
            data_dir, name="qwen-lora", model=BASE, command=[*command, f"support-qv={data_dir}/adapters/support-qv/2"]
        )
    )


def tail(tmp_path: Path, text: str) -> ProgressTail:
    (tmp_path / "progress.jsonl").write_text(text)
    return ProgressTail(tmp_path / "progress.jsonl")


def shown(rows: Any) -> str:
    return "\n".join(map(text_of, rows))


def wanted(form: TrainingForm, **dataset: Any) -> Wanted:
    found = read_form(form, [a_dataset(id=1, **dataset)])
    assert isinstance(found, Wanted), found
    return found


FORM = TrainingForm(dataset="support", model=BASE, name="mine")
