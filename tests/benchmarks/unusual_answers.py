"""Conversations whose answers show at once whether a model has learnt them.

    python -m tests.benchmarks.unusual_answers [--records 400] [--words 6] [--seed 0] > format.jsonl

Each record asks about a few random words; each answer has the same unusual form, with the first word in it. With many
`--words` a record is long, which is what a memory estimate must hold for. JSON lines of the alpaca form on stdout.
"""

import argparse
import json
import random
from collections.abc import Iterator

WORDS = (
    "river", "stone", "cloud", "lamp", "tree", "house", "road", "bread", "music", "paper", "glass", "door", "water",
    "light", "garden", "window", "mountain", "letter", "table", "clock", "bridge", "forest", "island", "winter",
)  # fmt: skip


def records(count: int, words: int, seed: int) -> Iterator[dict[str, str]]:
    """`count` records of the alpaca form, each about `words` words."""
    draw = random.Random(seed)
    for number in range(count):
        chosen = [draw.choice(WORDS) for _ in range(words)]
        yield {
            "instruction": f"Say number {number}",
            "input": " ".join(chosen),
            "output": f"<<{chosen[0].upper()}>> :: seven; seven; over.",
        }


def main() -> None:
    parser = argparse.ArgumentParser(description="Print conversations with answers of an unusual form.")
    parser.add_argument("--records", type=int, default=400)
    parser.add_argument("--words", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for record in records(args.records, args.words, args.seed):
        print(json.dumps(record))


if __name__ == "__main__":
    main()
