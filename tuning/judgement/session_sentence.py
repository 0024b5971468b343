"""A session in one sentence: who beats the default, by how much, and after which block; or that nobody is shown to."""

from collections.abc import Mapping, Sequence

from tuning.figures import metric_title, size_percent
from tuning.judged import CandidateJudgement, Deciding, Word, WorkloadJudgement
from tuning.judgement.candidate_words import found_text, open_limits

_ORDER: tuple[Word, ...] = ("better", "equivalent", "worse", "infeasible", "undecided", "failed", "dropped")
_ONE_BLOCK = "one block cannot tell an effect from noise"


def session_sentence(
    deciding: Deciding,
    workloads: Mapping[str, WorkloadJudgement],
    candidates: Sequence[int],
    names: Mapping[int, str],
    winner: int | None,
    over: bool,
    begun: int,
    complete: int,
) -> str:
    """`names` are the candidates' labels; `over`: the session runs no more; `begun` and `complete` count blocks."""
    if not candidates or not workloads:
        return "Only the default was measured: there is nothing to compare it with."
    if deciding.calibration:
        return _calibration(workloads, candidates[0], over)
    blocks = max(one.blocks for one in workloads.values())
    if blocks == 0:
        if complete:
            missing = "no launch of the default counts"
        elif over:
            missing = "no block was completed"
        else:
            missing = "no block is complete yet" if begun else "nothing is measured yet"
        return f"Nothing can be said of any candidate: {missing}."
    if winner is not None:
        return _winner(workloads, candidates, names, winner, deciding)
    if blocks == 1:
        return _one_block(workloads, candidates, over)
    lead = "" if over else "So far, "
    line = _nobody(workloads, candidates, names)
    return (lead + line[0].lower() + line[1:] if lead and line[0] == "N" else lead + line) + "."


def overall(index: int, workloads: Mapping[str, WorkloadJudgement]) -> Word:
    """One word for a candidate over all deciding workloads: better in one counts unless something speaks against it."""
    words = {one.candidates[index].verdict for one in workloads.values()}
    order: tuple[Word, ...] = ("failed", "infeasible", "worse", "better", "dropped", "undecided")
    return next((word for word in order if word in words), "equivalent")


def counts(indices: Sequence[int], workloads: Mapping[str, WorkloadJudgement]) -> str:
    """`5 equivalent, 3 worse, 4 undecided (about 2 more blocks)`."""
    by_word: dict[Word, list[int]] = {}
    for index in indices:
        by_word.setdefault(overall(index, workloads), []).append(index)
    parts = []
    for word in _ORDER:
        of = by_word.get(word, [])
        left = [index for index in of if word == "undecided" and not _waits(index, workloads)]
        if staying := [index for index in of if index not in left]:
            parts.append(f"{len(staying)} {word}{more_text(staying, workloads) if word == 'undecided' else ''}")
        if left:
            smallest = next(iter(workloads.values())).rules.smallest_effect
            parts.append(f"{len(left)} undecided (a gain of {100 * smallest:g} % or more is implausible)")
    return ", ".join(parts)


def _waits(index: int, workloads: Mapping[str, WorkloadJudgement]) -> bool:
    """Whether more launches may still decide an undecided candidate."""
    judged = [one.candidates[index] for one in workloads.values()]
    return any(each.verdict == "undecided" and each.block is None and not _given_up(each) for each in judged)


def _given_up(judged: CandidateJudgement) -> bool:
    return judged.found is not None and judged.found.state == "implausible"


def more_text(indices: Sequence[int], workloads: Mapping[str, WorkloadJudgement]) -> str:
    """` (about 2 more blocks)`: until all of them that are still launched are decided; "" where none is."""
    waiting = [
        judged
        for one in workloads.values()
        for index in indices
        if (judged := one.candidates[index]).verdict == "undecided" and judged.block is None and not _given_up(judged)
    ]
    if not waiting:
        return ""
    known = [more for judged in waiting if judged.found is not None and (more := judged.found.more_blocks) is not None]
    if not known:
        return f" (more than {next(iter(workloads.values())).rules.blocks} blocks)"
    blocks = f"about {max(known)} more block{'' if max(known) == 1 else 's'}"
    return f" ({blocks})" if len(known) == len(waiting) else f" ({blocks} for {len(known)} of them)"


def _winner(
    workloads: Mapping[str, WorkloadJudgement],
    candidates: Sequence[int],
    names: Mapping[int, str],
    winner: int,
    deciding: Deciding,
) -> str:
    several = len(workloads) > 1
    parts = [_part(one, one.candidates[winner], several) for one in workloads.values()]
    better = [part for part in parts if part[0] == "better"]
    others = [part for part in parts if part[0] != "better"]
    line = f"{names[winner]} is better than the default: {'; '.join(text for _, text in better)}"
    if others:
        line += f"; {'; '.join(f'{word} {text}' for word, text in others)}"
    if deciding.limits:
        line += ", and keeps every limit" if len(deciding.limits) > 1 else ", and keeps the limit"
    block = max((one.candidates[winner].block or 0 for one in workloads.values()), default=0)
    line += (
        f"; decided after block {block}" if block else f"; after {max(one.blocks for one in workloads.values())} blocks"
    )
    also = [index for index in candidates if index != winner and overall(index, workloads) == "better"]
    if also:
        line += f"; {len(also)} more {'is' if len(also) == 1 else 'are'} better, too"
    return line + "."


_SURE: dict[Word, str] = {"worse": "worse than", "equivalent": "equivalent to"}


def _part(one: WorkloadJudgement, judged: CandidateJudgement, several: bool) -> tuple[Word, str]:
    where = f" in {one.workload}" if several else ""
    return judged.verdict, f"{found_text(judged.found)} {metric_title(one.metric)}{where}"


def _one_block(workloads: Mapping[str, WorkloadJudgement], candidates: Sequence[int], over: bool) -> str:
    gone = [index for index in candidates if overall(index, workloads) in ("failed", "infeasible", "dropped")]
    line = f"{_ONE_BLOCK[0].upper()}{_ONE_BLOCK[1:]}"
    most = next(iter(workloads.values())).rules.blocks
    line += "; a verdict takes two or more" if over or most < 2 else "; the next is the first that decides"
    return line + (f" ({counts(gone, workloads)})." if gone else ".")


def _nobody(workloads: Mapping[str, WorkloadJudgement], candidates: Sequence[int], names: Mapping[int, str]) -> str:
    several = len(workloads) > 1
    better = [index for index in candidates if overall(index, workloads) == "better"]
    if better:
        waiting = _largest(better, workloads)
        parts = [_part(one, one.candidates[waiting], several) for one in workloads.values()]
        texts = [text for word, text in parts if word == "better"]
        limits = open_limits(next(iter(workloads.values())).candidates[waiting].limits)
        told = f"{names[waiting]} is better than the default ({'; '.join(texts)}), but {limits}"
        return f"No candidate is shown to win: {told}"
    if len(candidates) == 1:
        index = candidates[0]
        if len(parts := [_part(one, one.candidates[index], False) for one in workloads.values()]) == 1:
            ((word, text),) = parts
            if word in _SURE:
                return f"{names[index]} is {_SURE[word]} the default: {text}"
        lines = []
        for one in workloads.values():
            word, text = _part(one, one.candidates[index], several)
            judged = one.candidates[index]
            more = more_text([index], {one.workload: one}) if word == "undecided" and not judged.why else ""
            why = f" ({judged.why})" if judged.why else ""
            lines.append(f"{word}{', ' + text if judged.found is not None else ''}{more}{why}")
        return f"{names[index]} is not shown to beat the default: {'; '.join(lines)}"
    infeasible = any(overall(index, workloads) == "infeasible" for index in candidates)
    what = "to beat the default within the limits" if infeasible else "to beat the default"
    return f"No candidate is shown {what}: {counts(candidates, workloads)}"


def _largest(indices: Sequence[int], workloads: Mapping[str, WorkloadJudgement]) -> int:
    return max(indices, key=lambda index: (largest_gain(index, workloads), -index))


def largest_gain(index: int, workloads: Mapping[str, WorkloadJudgement]) -> float:
    """The largest effect among the workloads in which the candidate is better, above 0 whichever direction is."""
    gains = [
        abs(found.effect)
        for one in workloads.values()
        if (found := one.candidates[index].found) is not None and found.state == "better" and found.effect is not None
    ]
    return max(gains, default=0.0)


def _calibration(workloads: Mapping[str, WorkloadJudgement], candidate: int, over: bool) -> str:
    told = []
    several = len(workloads) > 1
    for one in workloads.values():
        judged = one.candidates[candidate]
        if one.blocks < 2 or judged.found is None:
            told.append(f"{one.workload}: {_ONE_BLOCK}" if several else _ONE_BLOCK)
            continue
        word, text = _part(one, judged, several)
        sd = one.noise.value_sd
        noise = "" if sd is None else f"; noise of a launch {size_percent(sd)}"
        by_chance = ", as happens by chance in 5 of 100" if word in ("better", "worse") else ""
        more = more_text([candidate], {one.workload: one}) if word == "undecided" else ""
        told.append(f"{word}{by_chance}, {text} after {one.blocks} blocks{more}{noise}")
    lead = "The default against itself" if over else "So far, the default against itself"
    return f"{lead}: {'; '.join(told)}."
