"""`llmtune lora eval ADAPTER`: what it does to answers it never saw, beside its base; kept in the store."""

import argparse
import os

from lora.adapters.importing import base_for
from lora.evaluations.evaluating import create_evaluation, start_evaluation
from lora.evaluations.evaluation import EvaluationSettings
from lora.evaluations.own_data import own_data
from lora.process.training_python import training_python
from lora.records import Message
from tui.commands.lora_eval_follow import follow_evaluation
from tui.commands.lora_meant import word_of
from tui.commands.places import keeping, reading
from tui.output import say, say_json


def run(args: argparse.Namespace) -> int:
    settings = EvaluationSettings(
        prompts=None if args.prompt is None else tuple((Message("user", text),) for text in args.prompt),
        max_length=args.max_length,
        max_new_tokens=args.max_new_tokens,
        quantization=args.quantization,
    )
    with keeping(args) as place:
        with reading(place) as reader:
            adapter = reader.adapter(args.adapter)
            data = own_data(reader, place, adapter, args.dataset, args.data)
        python = training_python(args.python, args.vllm, os.environ)
        number = create_evaluation(place, adapter, base_for(adapter, args.base), data, python, settings)
        start_evaluation(place, number)
    if not args.no_wait:
        return follow_evaluation(place, number, form="result" if args.json else "lines")
    if args.json:
        say_json({"evaluation": {"id": number, "adapter": adapter.label, "state": "running"}})
    else:
        word = word_of("evaluation", number)
        say(f"evaluation {number} of {adapter.label} has begun: `llmtune lora attach {word}` shows it")
    return 0
