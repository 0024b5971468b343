from tests.tuning.checks.recorded import ENGINE_PID, Change, Gpu, held, one, recorded, with_gpus
from tuning.checks.acceptance import findings, rejects
from tuning.checks.finding import RunFacts
from tuning.checks.neighbours import came_or_went, stayed, unlisted_memory

TRAINING = 77


def beside(first: int, last: int, gib: float = 3.0, grows: float = 0.0) -> Change:
    """Our engine, and another process in the samples from `first` to before `last`."""

    def change(at: int, gpu: Gpu) -> None:
        held()(at, gpu)
        if first <= at < last:
            used = gib + grows * (at >= 9)
            gpu["processes"].append({"pid": TRAINING, "used_gib": used, "name": "python train.py"})
            gpu["mem_used_gib"] += used

    return change


def test_alone_on_the_gpu() -> None:
    facts = with_gpus(held())
    assert (came_or_went(facts), stayed(facts), unlisted_memory(facts)) == (None, None, None)
    assert (came_or_went(recorded()), stayed(recorded()), unlisted_memory(recorded())) == (None, None, None)


def test_a_process_that_comes_or_goes_rejects() -> None:
    came = one(came_or_went(with_gpus(beside(7, 99))))
    assert came.reason == (
        "another process came onto the GPU meanwhile: pid 77 (python train.py) on GPU 0 with 3.00 GiB"
    )
    assert came.numbers["seen_from"] == "2026-11-30T11:39:08.575Z"
    assert rejects(findings(with_gpus(beside(7, 99)))) == came.reason
    for_a_second = one(came_or_went(with_gpus(beside(7, 8))))
    assert for_a_second.numbers["seen_in"] == 1
    assert "left the GPU" in one(came_or_went(with_gpus(beside(0, 9)))).reason


def test_a_neighbour_whose_memory_moves_rejects() -> None:
    found = one(came_or_went(with_gpus(beside(0, 99, grows=0.5))))
    assert "moved by 0.50 GiB" in found.reason
    assert found.numbers["moved_gib"] > found.numbers["threshold_gib"]
    assert rejects(findings(with_gpus(beside(0, 99, grows=0.5)))) == found.reason


def test_a_neighbour_that_holds_still_is_a_note() -> None:
    facts = with_gpus(beside(0, 99))
    assert came_or_went(facts) is None
    assert unlisted_memory(facts) is None
    note = one(stayed(facts))
    assert not note.rejects
    assert note.numbers["held_gib"] == 3.0
    assert rejects(findings(facts)) is None
    assert note in findings(facts)


def test_our_own_processes_may_come_and_grow() -> None:
    def second_rank(at: int, gpu: Gpu) -> None:
        held(100.0 + at)(at, gpu)
        if at > 3:
            gpu["processes"].append({"pid": 1401, "used_gib": 1.0})

    assert came_or_went(with_gpus(second_rank)) is None


def test_with_pids_of_the_host_the_largest_is_ours() -> None:
    def of_the_host(at: int, gpu: Gpu) -> None:
        beside(7, 99)(at, gpu)
        for process in gpu["processes"]:
            process["pid"] += 90_000

    assert one(came_or_went(with_gpus(of_the_host))).numbers["pid"] == 90_000 + TRAINING


def test_a_list_that_was_not_read_is_no_process_that_left() -> None:
    def unread(at: int, gpu: Gpu) -> None:
        beside(0, 99)(at, gpu)
        if at in (4, 5):
            gpu["processes"] = []

    assert came_or_went(with_gpus(unread)) is None


def test_a_gpu_that_the_server_does_not_use_is_not_judged() -> None:
    facts = with_gpus(held())
    for at, sample in enumerate(facts.samples):
        other: Gpu = {**sample.raw["gpus"][0], "index": 1}
        beside(7, 99)(at, other)
        sample.raw["gpus"].append(other)
    assert came_or_went(facts) is None


def test_memory_that_no_process_explains_rejects_where_it_moves() -> None:
    def hidden(at: int, gpu: Gpu) -> None:
        held()(at, gpu)
        gpu["mem_used_gib"] += 0.6 * (6 <= at < 12)

    found = one(unlisted_memory(with_gpus(hidden)))
    assert "memory of GPU 0 that no process explains moved by 0.60 GiB" in found.reason
    assert found.numbers["at"][0] == "2026-11-30T11:39:07.508Z"
    assert rejects(findings(with_gpus(hidden))) == found.reason


def test_a_single_odd_reading_is_an_allocation_between_two_calls() -> None:
    def once(at: int, gpu: Gpu) -> None:
        held()(at, gpu)
        gpu["mem_used_gib"] += 0.6 * (at == 6)

    assert unlisted_memory(with_gpus(once)) is None


def nobody_listed(moved_gib: float, measured: bool = True) -> RunFacts:
    def change(at: int, gpu: Gpu) -> None:
        gpu["processes"] = []
        gpu["mem_used_gib"] += moved_gib * (at >= 6)

    return with_gpus(change, recorded(measured=measured))


def test_where_nobody_is_listed_the_device_itself_is_held_to_more() -> None:
    found = one(unlisted_memory(nobody_listed(2.0)))
    assert "NVML lists no process" in found.reason
    assert unlisted_memory(nobody_listed(0.5)) is None
    assert unlisted_memory(nobody_listed(1.4, measured=False)) is None  # what an H200's first warm-up took
    assert came_or_went(nobody_listed(2.0)) is None


def test_the_engine_is_the_process_of_the_recording() -> None:
    listed = {process["pid"] for sample in recorded().samples for process in sample.raw["gpus"][0]["processes"]}
    assert listed == {ENGINE_PID}
