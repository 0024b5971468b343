"""Workloads, servers and configurations."""

from typing import Any

from tests.tuning.imported.results import a_result, a_run, by_label, report_on
from tuning.imported.configurations import group
from tuning.imported.loads import by_load
from tuning.imported.servers import overlapping, with_stretches


def loads(*changes: dict[str, Any]) -> list[int]:
    return [len(runs) for _, runs in by_load([a_run(a_result(**each)) for each in changes])]


def tokens(prompt: int, answer: int = 128) -> dict[str, Any]:
    return {"total_input_tokens": 100 * prompt, "total_output_tokens": 100 * answer}


def test_what_was_asked_tells_workloads_apart() -> None:
    assert loads({}, {}) == [2]
    assert (
        loads({}, {"num_prompts": 200}, {"request_rate": 10.0}, {"max_concurrency": None}, {"burstiness": 0.5})
        == [1] * 5
    )
    assert loads({"dataset_name": "sharegpt"}, {"dataset_name": "random"}) == [1, 1]


def test_datasets_are_told_apart_by_the_length_of_prompts_and_answers() -> None:
    assert loads(tokens(218), tokens(512)) == [1, 1]
    assert loads(tokens(512), tokens(520), tokens(505)) == [3]
    assert loads(tokens(512, 128), tokens(512, 127), tokens(512, 512)) == [2, 1]


def test_a_run_without_lengths_joins_where_there_is_one_workload() -> None:
    none = {"total_input_tokens": None, "total_output_tokens": None}
    assert loads(tokens(512), none) == [2]
    assert loads(tokens(218), tokens(512), none) == [1, 1, 1]


def test_a_label_says_what_is_known() -> None:
    ((label, _),) = by_load([a_run(a_result(request_rate=10.0, dataset_name="sharegpt"))])
    assert label == (
        "dataset_name sharegpt, 100 prompts, 512 tokens in and 128 out on average, 10 a second, at most 16 at a time"
    )
    ((label, _),) = by_load([a_run({"duration": 1, "completed": 1, "request_throughput": 1})])
    assert label == "prompts of unknown number, all at once"


def stretches(*ends: float, **changes: Any) -> list[int]:
    return [run.stretch for run in with_stretches([a_run(a_result(end, **changes)) for end in ends])]


def test_runs_without_time_for_a_restart_are_one_stretch() -> None:
    assert stretches(0, 12, 62) == [1, 1, 1]
    assert stretches(0, 12, 63) == [1, 1, 2]
    assert stretches(63, 0, 12) == [2, 1, 1]


def test_runs_without_a_date_and_those_at_once_are_each_their_own() -> None:
    assert len(set(stretches(0, 0, 0))) == 3
    assert len(set(stretches(0, 12, date="yesterday"))) == 2
    assert overlapping([a_run(a_result(0)), a_run(a_result(5)), a_run(a_result(100))]) == 2
    assert overlapping([a_run(a_result(0)), a_run(a_result(5, model_id="other"))]) == 0


def labels(*runs: dict[str, Any], apart: bool = False) -> list[tuple[str, int]]:
    found = group([a_run(a_result(**each)) for each in runs], apart)
    return [(label, len(members)) for label, members in found.groups]


def test_only_what_tells_apart_is_in_a_label() -> None:
    assert labels({}, {}) == [("model", 2)]
    assert labels({"model_id": "a/m"}, {"model_id": "b/n"}) == [("m", 1), ("n", 1)]
    assert labels({"model_id": "a/m"}, {"model_id": "b/m"}) == [("a/m", 1), ("b/m", 1)]
    assert labels({"tp": "1", "gpu": "x"}, {"tp": "2", "gpu": "x"}) == [("tp 1", 1), ("tp 2", 1)]
    assert labels({"label": "old"}, {"label": "new"}, {"label": "old"}) == [("old", 2), ("new", 1)]
    assert labels({"backend": "openai"}, {"backend": "openai-chat"}) == [
        ("backend openai", 1),
        ("backend openai-chat", 1),
    ]


def test_a_run_that_lacks_metadata_joins_those_that_all_say_the_same() -> None:
    assert labels({"setup": "x"}, {}) == [("model", 2)]
    assert labels({"setup": "x"}, {}, apart=True) == [("setup x", 1), ("setup not said", 1)]
    assert labels({"setup": "x"}, {"setup": "y"}, {}) == [("setup x", 1), ("setup y", 1), ("setup not said", 1)]
    (note,) = report_on({"a.json": [a_result(0, setup="x"), a_result(60)]}).notes
    assert note.startswith("1 run does not say setup")
    assert "--apart" in note


def test_names_of_files_tell_apart_and_numbers_of_runs_do_not() -> None:
    files = {f"{name}-{n}.json": [a_result(100 * n + at)] for at, name in enumerate(("base", "new")) for n in (1, 2)}
    found = by_label(report_on(files))
    assert {label: each.counted for label, each in found.items()} == {"base": 2, "new": 2}


def test_a_name_without_a_word_is_not_joined_to_one_with() -> None:
    assert set(by_label(report_on({"run-0.json": [a_result(0)], "tuned.json": [a_result(60)]}))) == {
        "unnamed",
        "tuned",
    }


def test_metadata_that_a_person_ignores_tell_nothing_apart() -> None:
    files = {"a.json": [a_result(0, sha="1"), a_result(60, sha="2")]}
    assert len(by_label(report_on(files))) == 2
    assert len(by_label(report_on(files, ignore=["sha"]))) == 1


def test_folders_that_all_share_are_no_part_of_a_label() -> None:
    files = {
        f"r/{folder}/{name}.json": [a_result(at)] for at, (folder, name) in enumerate((("x/y", "a"), ("x/y", "b")))
    }
    other = {"r/z.json": [a_result(0, num_prompts=9)]}
    labels = [each.label for load in report_on({**files, **other}).loads for each in load.configurations]
    assert labels == ["a", "b", "model"]
