"""One look at a session: from the launches so far to a verdict on each candidate in play."""

from collections.abc import Collection, Sequence

from tuning.verdict.records import LaunchValue, Look, Prior, Rules


def look(values: Sequence[LaunchValue], rules: Rules, in_play: Collection[int], prior: Prior | None = None) -> Look:
    """The verdicts after the blocks in `values`, all of them complete. Pure: the same values give the same verdicts.

    `values` hold the launches of candidates that left, too. ValueError for more blocks than `rules.blocks`.
    """
    raise NotImplementedError
