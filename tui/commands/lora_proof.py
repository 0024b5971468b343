"""The proof that adapters are in effect, for the commands that put them on a server."""

import argparse
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.text import clean
from lora.evaluations.own_data import NoOwnData, OwnData, own_data
from lora.evaluations.paired_loss import Paired
from lora.process.training_python import training_python
from lora.records import DataUnfit, LoraError
from lora.served.answer_tokens import answer_tokens
from lora.served.proof import AnswerTokens, Proof, State, prove
from lora.served.running import Running
from lora.served.server_api import ServerApi
from lora.served.serving import ToServe
from store.clock import utc_now
from store.database import open_writer
from store.errors import NotFound
from store.location import database_file
from store.reader import Reader
from store.records import AdapterRecord, EvaluationRecord
from tui.commands.places import reading
from tui.output import complain, say

_LONGEST = 1024  # tokens of a conversation for the proof, or what the server takes

_WORDS: dict[State, str] = {
    "proved": "in effect: it finds its own answers likelier than the base does",
    "differs": "in effect: it answers differently from the base; whether better is not known, for lack of its data",
    "undecided": "NOT PROVED: it differs from the base, but on these records in no direction for sure",
    "wrong_direction": "NOT AS TRAINED: it finds its own answers LESS likely than the base does",
    "nothing": "NOT IN EFFECT: it changes nothing",
}
_REASONS: dict[State, str] = {
    "undecided": "ask with more of its data (--records), or evaluate it (`llmtune lora eval`)",
    "wrong_direction": (
        "likely the base is not the one it was trained on, the chat template is another, or the scale is (rsLoRA, "
        "alpha_pattern); `llmtune lora eval` tells what it does outside of vLLM"
    ),
    "nothing": (
        "likely it was saved before its first step (every B factor 0), its layers have other names than the server's, "
        "--lora-target-modules leaves them out, or the server answers for another of that name; `llmtune lora show` "
        "and the server's log tell more"
    ),
}


@dataclass(frozen=True, slots=True)
class Held:
    """What an adapter is asked about; `data` None where its own is not here."""

    wanted: ToServe
    data: OwnData | None
    tokens: "Future[tuple[AnswerTokens, ...]] | None"
    evaluated: EvaluationRecord | None


class Proofs:
    """Makes ready while a server loads, and proves when it is there. A context manager. `vllm` is the installation in
    whose Python answers are tokenized, unless --python names another."""

    def __init__(
        self, args: argparse.Namespace, place: Path, base: str, adapters: Sequence[ToServe], vllm: str | None = None
    ) -> None:
        self._place = place
        self._vllm = vllm
        self._pool = ThreadPoolExecutor(1)  # one load of transformers at a time
        self._held: list[Held] = []
        if args.no_proof:
            return
        with reading(place) as reader:
            for each in adapters:
                data = _data(args, reader, place, each.adapter)
                known = reader.evaluations(each.adapter.id)
                same = [one for one in known if data is not None and one.data_hash == data.data_hash]
                self._held.append(Held(each, data, self._asked(args, base, data), same[-1] if same else None))

    def __enter__(self) -> "Proofs":
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _asked(
        self, args: argparse.Namespace, base: str, data: OwnData | None
    ) -> "Future[tuple[AnswerTokens, ...]] | None":
        if data is None:
            return None
        python = training_python(args.python, self._vllm, os.environ)
        return self._pool.submit(answer_tokens, base, data, python, os.environ, args.records, _LONGEST)

    def make(self, api: ServerApi, running: Running, *, quiet: bool) -> tuple[list[dict[str, Any]], bool]:
        """Prove each, tell it unless `quiet`, and keep it with the adapter; as JSON, and whether all are in effect."""
        done, all_proved = [], True
        for held in self._held:
            room = running.base.max_model_len
            own = () if held.tokens is None else held.tokens.result()
            own = tuple(each for each in own if room is None or len(each.ids) <= room)
            if held.data is not None and not own:
                raise LoraError(f"no conversation of {held.data.what} fits into the {room} tokens of the server")
            proof = prove(api, running.base.name, held.wanted.name, own)
            shown = proof_json(held.wanted, proof, held.data)
            self._keep(held.wanted.adapter, shown | {"server_id": running.record.id})
            done.append(shown)
            all_proved = all_proved and proof.in_effect
            if not quiet:
                for line in proof_lines(held, proof):
                    say(line)
            if not proof.in_effect:
                complain(f"{held.wanted.adapter.label}: {_WORDS[proof.state]}: {_REASONS[proof.state]}")
        return done, all_proved

    @staticmethod
    def in_short(done: Sequence[dict[str, Any]]) -> str:
        """`in effect`, `NOT IN EFFECT`, of all that were proved; the worst of several."""
        states: list[State] = [each["state"] for each in done]
        worst = max(states, key=list(_WORDS).index, default=None)
        return "not proved" if worst is None else _WORDS[worst].partition(":")[0]

    def _keep(self, adapter: AdapterRecord, shown: dict[str, Any]) -> None:
        assert adapter.id is not None
        with open_writer(database_file(self._place)) as writer:
            writer.update(AdapterRecord, adapter.id, served={"at": utc_now(), **shown})


def _data(args: argparse.Namespace, reader: Reader, place: Path, adapter: AdapterRecord) -> OwnData | None:
    """What was named; else the adapter's own where it is here: without it, it is served all the same."""
    if args.dataset is not None or args.data is not None:
        return own_data(reader, place, adapter, args.dataset, args.data)
    try:
        return own_data(reader, place, adapter)
    except NoOwnData:
        return None
    except (DataUnfit, NotFound) as error:
        complain(f"{adapter.label}: {error}")
        return None


def proof_lines(held: Held, proof: Proof) -> list[str]:
    """What was found, and by which numbers."""
    found = proof.paired
    if found is None:
        numbers = f"log-probabilities differ by {proof.change:.4f} nats a token over {proof.tokens} tokens"
    else:
        what = held.data.what if held.data is not None else ""
        numbers = f"loss {found.adapter:.4f} where the base has {found.base:.4f}{_interval(found)}, on {what}"
        numbers += f" ({found.records} records, {proof.tokens} tokens)"
    lines = [f"{held.wanted.adapter.label} as {held.wanted.name}: {_WORDS[proof.state]}", f"  {clean(numbers, 300)}"]
    if held.evaluated is not None and found is not None:
        lines.append(
            f"  evaluated before: {held.evaluated.adapter_loss:.4f} where the base has {held.evaluated.base_loss:.4f}, "
            "over all tokens of its answers"
        )
    return lines


def proof_json(wanted: ToServe, proof: Proof, data: OwnData | None) -> dict[str, Any]:
    found = proof.paired
    losses = (
        None
        if found is None
        else {
            "base": found.base,
            "adapter": found.adapter,
            "difference": found.difference,
            "low": found.low,
            "high": found.high,
            "records": found.records,
        }
    )
    return {
        "adapter": wanted.adapter.label,
        "name": wanted.name,
        "state": proof.state,
        "in_effect": proof.in_effect,
        "change_nats": proof.change,
        "noise_nats": proof.noise,
        "tokens": proof.tokens,
        "losses": losses,
        "data": None if data is None else data.what,
    }


def _interval(found: Paired) -> str:
    return "" if found.low is None else f" ({found.difference:+.4f}, 95 % from {found.low:+.4f} to {found.high:+.4f})"
