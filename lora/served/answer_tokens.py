"""Own conversations as the tokens that a server is asked about; counted in the training Python."""

from collections.abc import Mapping

from lora.evaluations.own_data import OwnData
from lora.process.asking import absolute_model, told_by
from lora.process.training_python import TrainingPython
from lora.records import LoraError
from lora.served.proof import AnswerTokens

SCRIPT = "llmtune_answer_tokens.py"


def answer_tokens(
    base: str, data: OwnData, python: TrainingPython, environ: Mapping[str, str], at_most: int, max_length: int
) -> tuple[AnswerTokens, ...]:
    """The first `at_most` conversations of `data` that are no longer than `max_length` tokens. Raises LoraError."""
    job = {
        "model": absolute_model(base),
        "examples": str(data.path),
        "at_most": at_most,
        "max_length": max_length,
    }
    found = tuple(
        AnswerTokens(tuple(told["ids"]), tuple(told["answers"])) for told in told_by(SCRIPT, job, python, environ)
    )
    if not found:
        raise LoraError(f"no conversation of {data.what} fits into {max_length} tokens: nothing can be proved with it")
    return found
