"""Seeds and draws that follow from the session's seed alone, the same in every version of Python.

They come from SHA-256 and integer arithmetic, not from `random`, whose derived methods may change between versions.
"""

from hashlib import sha256

RUNS_PER_LAUNCH = 1024  # at most: the stride between the blocks' seeds
_HALF = 1 << 30


def uniform(session_seed: int, *what: object) -> float:
    """A number in [0, 1) with 53 bits, drawn for `what` (a name and some indices) in this session."""
    return (_hashed(session_seed, *what) >> 11) / 2**53


def run_seed(session_seed: int, block: int, index: int) -> int:
    """The seed of the `index`-th run of every launch of `block`: below 2^30, and no two of a session are equal.

    An odd multiplier and an offset permute the numbers below 2^30, so distinct (block, index) cannot meet as long as
    index < RUNS_PER_LAUNCH and block < 2^20. ValueError beyond.
    """
    if not 0 <= index < RUNS_PER_LAUNCH or not 0 <= block < _HALF // RUNS_PER_LAUNCH:
        raise ValueError(f"no seed for run {index} of block {block}")
    multiplier = _hashed(session_seed, "multiplier") | 1
    offset = _hashed(session_seed, "offset")
    return ((block * RUNS_PER_LAUNCH + index) * multiplier + offset) % _HALF


def retry_seed(seed: int) -> int:
    """The seed with which a rejected run is made again: in the upper half of 31 bits, where no first seed lies.

    The server has cached the prompts of the first try by then, so that seed cannot be used again.
    """
    return seed | _HALF


def _hashed(session_seed: int, *what: object) -> int:
    text = ":".join(("llmtune", str(session_seed), *map(str, what)))
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big")
