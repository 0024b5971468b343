"""How many launches a block has. Their order is `tuning.scheduling.schedule.block_cells`."""


def baseline_launches(in_play: int) -> int:
    """How often a block launches the baseline for `in_play` candidates: 1 up to two, 2 up to six, 3 beyond.

    With k candidates compared with one baseline the variances of the differences are smallest, for a number of
    launches, at about √k baseline launches (Dunnett 1955, J. Am. Stat. Assoc. 50:1096-1121); the steps are of the
    project's notes, and simulated. ValueError for none: a block without candidates is not made.
    """
    if in_play < 1:
        raise ValueError("a block compares at least one candidate with the baseline")
    return 1 if in_play <= 2 else 2 if in_play <= 6 else 3


def launches_in_block(in_play: int) -> int:
    """Each candidate in play once, and the baseline as often as they need."""
    return in_play + baseline_launches(in_play)
