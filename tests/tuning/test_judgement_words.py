"""Words, sentences and notes: what left and why, several workloads, candidates that joined, noise, drift, outliers."""

from copy import deepcopy
from dataclasses import asdict, replace

import pytest

from store.records import LaunchRecord, RunRecord
from tests.tuning.examples import launch
from tests.tuning.played_sessions import Played, Truth, add_block, add_launch, plan_of, play
from tuning.judged import Judgement
from tuning.judgement.deciding import ADDED, KEY, deciding_from_json, deciding_json, deciding_of, session_deciding
from tuning.plans.grid import candidates
from tuning.records import Candidate, Plan
from tuning.verdict.boundary import bars
from tuning.verdict.calibration import prior_of
from tuning.verdict.records import Prior

QUIET = Truth(launch_sd=0.001, run_sd=0.001)


def words(judgement: Judgement, workload: str = "chat") -> dict[int, str]:
    return {index: each.verdict for index, each in judgement.workloads[workload].candidates.items() if index}


def out(played: Played, **reasons: str) -> Played:
    """`_1="skipped, as asked"`: candidate 1 left for that, and what it had not launched is gone."""
    raw = {**played.session.raw, "out": {key.removeprefix("_"): why for key, why in reasons.items()}}
    return replace(played, session=replace(played.session, raw=raw))


def without(played: Played, candidate: int, since: int = 0) -> Played:
    def stays(each: LaunchRecord | RunRecord) -> bool:
        return each.candidate != candidate or each.block < since

    return replace(
        played,
        launches=[each for each in played.launches if stays(each)],
        runs=[each for each in played.runs if stays(each)],
    )


def test_what_did_not_start_failed() -> None:
    played = without(play(plan_of(3), QUIET, leaving=False), 1)
    failed = replace(launch(0, 1, number=900), state="failed", failure="out of memory")
    played = replace(played, launches=[*played.launches, failed])
    found = out(played, _1="did not start: out of memory").judge()
    assert words(found)[1] == "failed"
    assert found.workloads["chat"].candidates[1].why == "did not start: out of memory"
    assert "1 failed" in found.sentence


def test_what_stops_starting_cannot_win() -> None:
    """It was better in one workload, and then started no more."""
    plan = plan_of(2, workloads=("chat", "prefix"))
    played = play(plan, replace(QUIET, effects={("chat", 1): 0.08}, launch_sd=0.004), leaving=False)
    found = out(without(played, 1, since=2), _1="did not start: out of memory").judge()
    assert words(found)[1] == words(found, "prefix")[1] == "failed"
    assert found.winner is None


def test_what_was_skipped_is_dropped_unless_it_was_decided() -> None:
    played = play(plan_of(3, blocks=5), Truth({1: 0.08}, launch_sd=0.004), leaving=False)
    dropped = out(without(played, 3, since=1), _3="skipped, as asked").judge()
    assert words(dropped)[3] == "dropped"
    assert dropped.workloads["chat"].candidates[3].why == "skipped, as asked"
    decided = out(without(played, 1, since=3), _1="skipped, as asked").judge()
    assert words(decided)[1] == "better"
    never = out(without(played, 2), _2="not tried: as seqs 101 it would not start").judge()
    assert words(never)[2] == "dropped"
    assert "1 dropped" in never.sentence or never.winner is not None


def test_a_block_waits_for_nobody_who_left() -> None:
    played = play(plan_of(3, blocks=3), QUIET, leaving=False).until(2)
    half = without(played, 2, since=1)
    assert half.judge().blocks == (0,)
    assert out(half, _2="skipped, as asked").judge().blocks == (0, 1)


def test_each_workload_has_its_own_verdict_and_part_of_the_error() -> None:
    plan = plan_of(3, workloads=("chat", "prefix"))
    truth = replace(QUIET, effects={("chat", 1): 0.08, ("prefix", 1): -0.08, ("chat", 2): 0.05})
    found = play(plan, truth, state="done").judge()
    assert words(found)[1] == "better"
    assert words(found, "prefix")[1] == "worse"
    assert found.winner == 2
    assert found.workloads["chat"].rules.workloads == 2
    assert "seqs 101 is better than the default: +" in found.sentence
    assert "total tok/s in chat; " in found.sentence


def test_it_stays_until_every_workload_has_decided() -> None:
    plan = plan_of(2, workloads=("chat", "prefix"))
    truth = Truth({1: 0.1, 2: 0.1}, launch_sd=0.004)
    played = play(plan, truth, leaving=False)
    noisy = played.with_runs(
        lambda each: (
            replace(
                each, metrics={"total_tok_per_s": 20_000 * (1 + 0.05 * ((each.block * 7 + each.candidate * 3) % 5))}
            )
            if each.workload == "prefix"
            else each
        )
    )
    found = noisy.until(3).judge()
    assert words(found)[1] == "better"
    assert words(found, "prefix")[1] == "undecided"
    assert 1 not in found.leaves


def test_a_workload_that_decides_nothing_is_not_judged() -> None:
    plan = plan_of(2, workloads=("chat", "prefix"), metric={"prefix": "output_tok_per_s"})
    found = play(plan, replace(QUIET, effects={("prefix", 1): 0.1})).judge()
    assert list(found.workloads) == ["prefix"]
    assert found.winner == 1
    assert found.sentence.startswith("seqs 100 is better than the default: +")
    assert "output tok/s; decided after block 2" in found.sentence


def joining(block: int = 1, note: bool = True) -> Played:
    """Candidate 4 joins three others, launched last in `block`."""
    plan = plan_of(3, blocks=5)
    played = play(plan, Truth({4: 0.08}, launch_sd=0.006), seed=4, leaving=False).until(block + 1)
    added = asdict(Candidate(4, "seqs 512", {"max-num-seqs": 512}))
    raw = {**played.session.raw, **({ADDED: {"4": block}} if note else {})}
    played = replace(played, session=replace(played.session, candidates=[*played.session.candidates, added], raw=raw))
    truth = Truth({4: 0.08}, launch_sd=0.002)
    position = len(raw["blocks"][block])
    raw["blocks"][block].append({"block": block, "position": position, "candidate": 4, "slot": 0})
    add_launch(played, truth, (block, 4, 0), position, 4)
    for later in range(block + 1, plan.decide.blocks):
        add_block(played, truth, later, {1, 2, 3, 4}, 4)
    return played


@pytest.mark.parametrize("note", [True, False])
def test_who_joins_is_judged_from_the_block_it_joined(note: bool) -> None:
    """With bars for one candidate more from then on; looks before stay as they were."""
    played = joining(note=note)
    found = played.judge().workloads["chat"]
    rules = found.rules
    assert [look.bar for look in found.looks] == [
        None,
        *(bars(replace(rules, candidates=4))[n] for n in range(len(found.looks) - 1)),
    ]
    late = joining(block=2, note=note)
    looks = late.judge().workloads["chat"].looks
    assert looks[1].bar == bars(rules)[0]
    assert looks[2].bar == bars(replace(rules, candidates=4))[1]
    assert 4 not in looks[1].verdicts
    assert words(late.judge())[4] == "better"
    assert any(each.startswith("added while it ran: seqs 512 (block 3)") for each in late.judge().notes)


def test_a_launch_set_aside_is_told_with_both_results() -> None:
    truth = replace(QUIET, launch_sd=0.004, wrong={(1, 2, 0): -0.2})
    found = play(plan_of(5, blocks=3), truth, leaving=False, kept=False).judge()
    (note,) = [each for each in found.notes if "set aside" in each]
    assert note.startswith("block 2: the launch of seqs 101 (total tok/s 16,")
    assert "; seqs 101 without it " in note
    assert ", with it −" in note


def test_a_launch_of_the_default_set_aside_is_told_by_whom_it_changes_most() -> None:
    truth = replace(QUIET, launch_sd=0.004, wrong={(1, 0, 0): -0.2})
    found = play(plan_of(5, blocks=3), truth, leaving=False, kept=False).judge()
    (note,) = [each for each in found.notes if "set aside" in each]
    assert note.startswith("block 2: the launch of the default (total tok/s 16,")
    assert " without it " in note


def test_one_of_two_launches_makes_a_candidate_wait() -> None:
    truth = replace(QUIET, launch_sd=0.004, wrong={(1, 2, 0): -0.2})
    found = play(plan_of(5, blocks=3), truth, leaving=False).until(2).judge()
    assert found.workloads["chat"].candidates[2].why.startswith("of two launches one is an outlier")
    assert any("it waits" in note and "seqs 101" in note for note in found.notes)


def test_unequal_noise_is_named_and_meets_strict_bars() -> None:
    truth = Truth(launch_sd=0.002, run_sd=0.001, noisier={3: 12.0})
    found = play(plan_of(8), truth, leaving=False, kept=False).judge()
    (note,) = [each for each in found.notes if "unequal noise" in each]
    assert note.startswith("unequal noise: seqs 102 (")
    assert "strict bars hold" in note
    assert found.workloads["chat"].looks[-1].unequal == (3,)


@pytest.mark.parametrize(("drift", "word"), [(0.02, "rose"), (-0.02, "fell")])
def test_drift_is_one_sentence(drift: float, word: str) -> None:
    found = play(plan_of(6), Truth(launch_sd=0.002, drift=drift), leaving=False, kept=False).judge()
    (note,) = [each for each in found.notes if each.startswith("drift: ")]
    assert note.startswith(f"drift: total tok/s {word} by ")
    assert "from block 1 to block 4" in note
    assert found.workloads["chat"].noise.drift == note
    steady = play(plan_of(6), Truth(launch_sd=0.004), leaving=False, kept=False, seed=2).judge()
    assert steady.workloads["chat"].noise.drift is None


def test_the_noise_is_split_into_runs_and_launches() -> None:
    truth = Truth(launch_sd=0.01, run_sd=0.006)
    noise = play(plan_of(20, blocks=6), truth, 2, leaving=False, kept=False).judge().workloads["chat"].noise
    assert noise.run_sd == pytest.approx(0.006, rel=0.12)
    assert noise.launch_sd == pytest.approx(0.01, rel=0.15)
    assert noise.value_sd == pytest.approx((0.01**2 + 0.006**2 / 2) ** 0.5, rel=0.15)
    assert noise.df > 90


def calibration(blocks: int = 5, truth: Truth = QUIET, state: str = "done") -> Judgement:
    plan = plan_of(1, blocks=blocks)
    played = play(plan, truth, leaving=False, state=state)
    deciding = replace(
        session_deciding(played.session, plan),
        calibration=True,
        rules={"chat": replace(session_deciding(played.session, plan).rules["chat"], decide_all=True)},
    )
    raw = {**played.session.raw, KEY: deciding_json(deciding)}
    return replace(played, session=replace(played.session, raw=raw)).judge()


def test_the_default_against_itself_tells_of_the_noise() -> None:
    found = calibration()
    assert words(found) == {1: "equivalent"}
    assert found.sentence.startswith("The default against itself: equivalent, ")
    assert "total tok/s after 5 blocks; noise of a launch 0." in found.sentence
    assert found.leaves == {}
    assert found.winner is None
    prior = prior_of(found.workloads["chat"].looks[-1].noise)
    assert prior is not None
    assert prior.df == 4


def test_a_calibration_has_no_winner_even_by_chance() -> None:
    found = calibration(truth=replace(QUIET, effects={1: 0.1}), state="running")
    assert found.winner is None
    assert found.sentence.startswith("So far, the default against itself: better, as happens by chance in 5 of 100")


def test_a_calibration_of_one_block_says_that_it_is_one() -> None:
    assert calibration(1).sentence == "The default against itself: one block cannot tell an effect from noise."


def test_a_prior_makes_a_small_session_surer_and_is_told() -> None:
    truth = Truth({1: 0.02}, launch_sd=0.004, run_sd=0.002)
    plain = play(plan_of(1), truth, leaving=False).judge()
    told = play(plan_of(1), truth, leaving=False, prior={"chat": Prior(0.0045, 20)}).judge()
    assert told.workloads["chat"].noise.df > plain.workloads["chat"].noise.df
    assert "the noise takes in what A/A session 12 found" in told.notes


def test_one_candidate_is_told_by_itself() -> None:
    found = play(plan_of(1, blocks=2), Truth({1: 0.01}, launch_sd=0.01), seed=5, state="done").judge()
    assert found.sentence.startswith("seqs 100 is not shown to beat the default: undecided, ")
    assert found.sentence.endswith("(more than 2 blocks).")
    near = play(plan_of(1, blocks=2), Truth({1: 0.01}, launch_sd=0.01), seed=7, state="done").judge()
    assert near.sentence.endswith(" blocks would decide it).")
    assert "(a session of about " in near.sentence


def test_one_candidate_that_surely_loses_is_called_worse() -> None:
    found = play(plan_of(1, blocks=4), Truth({1: -0.2}, launch_sd=0.002), seed=5, state="done").judge()
    assert found.sentence.startswith("seqs 100 is worse than the default: −18 % ")


def test_how_many_blocks_are_left_is_told_while_it_runs() -> None:
    found = play(plan_of(4, blocks=6), Truth({1: 0.03, 2: 0.03}, launch_sd=0.008), seed=2).until(3).judge()
    assert found.sentence.startswith("So far, ") or found.winner is not None
    mores = [each.found.more_blocks for each in found.workloads["chat"].candidates.values() if each.found]
    if any(mores) and found.winner is None:
        assert "more block" in found.sentence


@pytest.mark.parametrize("workloads", [("chat",), ("chat", "prefix")])
def test_what_decides_is_kept_and_read_back(workloads: tuple[str, ...]) -> None:
    plan = plan_of(4, workloads=workloads, limits=("p99_ttft_ms <= 500", "chat.error_rate == 0"))
    deciding = deciding_of(plan, candidates(plan)[0], {"chat": Prior(0.005, 8)}, "A/A session 3")
    assert deciding_from_json(deciding_json(deciding)) == deciding
    assert deciding.bars["chat"] == bars(deciding.rules["chat"])
    assert deciding.rules["chat"].workloads == len(workloads)
    assert deciding.rules["chat"].candidates == 4
    assert [limit.metric for limit in deciding.limits] == ["p99_ttft_ms", "error_rate"]


def test_what_decides_does_not_change_with_the_plan() -> None:
    played = play(plan_of(2), QUIET)
    other: Plan = replace(played.plan, decide=replace(played.plan.decide, smallest_effect=0.2))
    assert session_deciding(played.session, other).rules["chat"].smallest_effect == 0.02
    bare = replace(played.session, raw={})
    assert session_deciding(bare, other).rules["chat"].smallest_effect == 0.2


def test_other_bars_than_those_kept_are_told() -> None:
    played = play(plan_of(2), QUIET)
    kept = deepcopy(played.session.raw)
    kept[KEY]["bars"]["chat"][0] += 0.1
    found = replace(played, session=replace(played.session, raw=kept)).judge()
    assert any("bars of this version" in note for note in found.notes)
    assert not any("bars of this version" in note for note in played.judge().notes)


def test_what_names_no_candidate_of_the_session_is_left_out() -> None:
    played = play(plan_of(2), QUIET)
    strange = [replace(each, candidate=99) for each in played.runs if each.candidate == 1]
    assert replace(played, runs=[*played.runs, *strange]).judge() == played.judge()
