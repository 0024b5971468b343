"""A folder of files as a report."""

import json

from tests.tuning.imported.results import BENCH, a_result, by_label, report_on
from tuning.document import as_markdown, as_text
from tuning.imported.analysis import analyse
from tuning.imported.finding import find
from tuning.imported.reading import read_file
from tuning.imported.records import ImportReport, Refused
from tuning.imported.report import parts
from tuning.imported.report_json import to_json

SWEEP = BENCH.parents[1] / "cpu-vllm-0.32.0" / "sweep"


def recorded(pattern: str, **options: object) -> ImportReport:
    files = [read_file(path)[0] for path in find(map(str, sorted(BENCH.glob(pattern)))).files]
    return analyse([file for file in files if file is not None], **options)  # type: ignore[arg-type]


def test_recorded_launches_by_their_names() -> None:
    found = by_label(recorded("restart-*[0-3].json", names="restart-{configuration}{launch}-{run}"))
    assert {label: (each.counted, len(each.units)) for label, each in found.items() if "same" not in label} == {
        "A": (8, 2),
        "B": (4, 1),
    }
    total = found["A"].figures["total_tok_per_s"]
    assert (total.units, total.basis) == (2, "launches")
    assert 27_200 < total.mean < 27_300
    assert found["restart-A1-same1"].counted == 0


def test_a_launch_may_not_be_counted_by_its_runs() -> None:
    """Eight runs of two launches have one degree of freedom, not seven."""
    (figure,) = by_label(recorded("restart-A?-[0-3].json", names="restart-{configuration}{launch}-{run}")).values()
    total = figure.figures["total_tok_per_s"]
    assert total.low is not None
    spread = (max(total.values) - min(total.values)) / 2
    assert total.mean - total.low > 12 * spread * 0.99


def test_what_a_sweep_repeats_is_counted_once() -> None:
    runs = [a_result(20 * n, run_number=n, max_num_seqs=4) for n in range(3)]
    folder = "out/first/SERVE--max_num_seqs=4"
    report = report_on(
        {
            f"{folder}/SLA--x.json": runs,
            **{f"{folder}/run={n}.json": [run] for n, run in enumerate(runs)},
            f"{folder}/summary.json": runs,
            f"{folder}/warmup.json": [a_result(-20, run_number=-1, num_prompts=4)],
            "copy/run=0.json": [runs[0]],
        }
    )
    (configuration,) = by_label(report).values()
    assert configuration.counted == 3
    assert report.repeated == 1
    assert "1 warm-up run left out" in report.notes
    assert {run.place.path for run in configuration.runs} == {f"{folder}/run={n}.json" for n in range(3)}


def test_a_sweep_that_vllm_0_32_made() -> None:
    """`vllm bench sweep serve --serve-params … --bench-params … --num-runs 2 --warmup-num-prompts 4`."""
    files = [read_file(path)[0] for path in find([str(SWEEP)]).files]
    report = analyse([file for file in files if file is not None])
    found = by_label(report)
    assert {label: (each.counted, len(each.units)) for label, each in found.items()} == {
        "max_num_seqs=4": (2, 1),
        "max_num_seqs=8": (2, 1),
    }
    assert report.repeated == 0
    assert report.notes == ("2 warm-up runs left out",)
    assert report.loads[0].label.startswith("short, 12 prompts, 32 tokens in and 8 out")
    assert "2 runs against 2, on one launch each" in report.loads[0].comparisons[0].text
    assert report.told_by == ("serve",)


def test_the_servers_of_a_sweep_are_launches() -> None:
    files = {
        f"out/{day}/SERVE--seqs={seqs}/run={n}.json": [a_result(at + 15 * n, run_number=n)]
        for day, begin in (("20261014_090000", 0), ("20261015_090000", 86_400))
        for seqs, at in ((4, begin), (8, begin + 300))
        for n in (0, 1)
    }
    found = by_label(report_on(files))
    assert {label: (each.counted, each.figures["total_tok_per_s"].basis) for label, each in found.items()} == {
        "seqs=4": (4, "launches"),
        "seqs=8": (4, "launches"),
    }


def test_the_text_says_what_single_runs_cannot() -> None:
    text = as_text(parts(report_on({"a.json": [a_result(0), a_result(12)], "b.json": [a_result(600)]})))
    assert text.startswith("3 runs in 2 files, 3 of which count: 2 configurations in 1 workload\n")
    assert "runs on one server are not launches" in text
    assert "so this says nothing" in text
    assert "none of this is a randomised comparison" in text
    assert "6,400 ~" in text


def test_every_run_that_does_not_count_is_named_with_its_reason() -> None:
    text = as_text(parts(report_on({"r.jsonl": [a_result(0), a_result(60, completed=90)]})))
    assert "r.jsonl #2: 10 of 100 requests failed" in text


def test_a_pair_gets_sentences_and_more_a_table() -> None:
    files = {f"{name}.json": [a_result(600 * n)] for n, name in enumerate(("base", "x", "y"))}
    text = as_text(parts(report_on(files)))
    assert "Against base:" in text
    assert "total tok/s, mean TTFT ms, mean ITL ms: nothing here shows" in text
    assert "? is a difference without an interval" in text
    assert "x against base:" in as_text(parts(report_on({name: files[name] for name in ("base.json", "x.json")})))


def test_names_of_strangers_change_nothing_on_a_terminal_or_in_markdown() -> None:
    raw = a_result(model_id="evil\x1b[2J\x1b]0;x\x07|<b>\n# x", setup="\u202e[link](http://x)")
    report = report_on({"a\x1b[31m\n\udcff.json": [raw], "b|c.json": [{**raw, "model_id": "\ud800m", "date": None}]})
    for text in (as_text(parts(report)), as_markdown(parts(report, whole=True))):
        assert "\x1b" not in text
        assert "\u202e" not in text
        text.encode()
    lines = as_markdown(parts(report, whole=True)).splitlines()
    assert not [line for line in lines if line.startswith("# x")]
    assert "\\<b\\>" in as_markdown(parts(report, whole=True))
    json.dumps(to_json(report), allow_nan=False).encode()


def test_many_refused_files_are_told_in_few_lines_and_in_json_all() -> None:
    refused = [Refused(f"{n}.json", "is empty") for n in range(500)]
    report = analyse([], refused)
    assert len(as_text(parts(report)).splitlines()) < 30
    assert "and 480 more" in as_text(parts(report))
    assert len(to_json(report)["refused"]) == 500


def test_json_holds_every_metric_with_its_interval() -> None:
    document = to_json(report_on({"a.json": [a_result(0), a_result(60, speed=1.01)]}), with_raw=True)
    (workload,) = document["workloads"]
    (configuration,) = workload["configurations"]
    metric = configuration["metrics"]["p99_ttft_ms"]
    assert metric["low"] < metric["mean"] < metric["high"]
    assert metric["basis"] == "stretches"
    assert configuration["runs"][0]["raw"]["completed"] == 100


def test_appended_runs_of_which_nothing_tells_the_configuration_are_said_to_be_taken_for_one() -> None:
    text = as_text(parts(report_on({"all.jsonl": [a_result(0), a_result(20)]})))
    assert "Nothing here tells configurations apart, so runs of one model and workload are taken for one" in text
    assert "Nothing here tells" not in as_text(parts(report_on({"one.json": [a_result(0)]})))


def test_files_told_apart_by_their_names_alone_are_said_how_to_name_launches() -> None:
    assert "--names PATTERN has them read so" in as_text(parts(recorded("restart-*[0-3].json")))
    named = recorded("restart-*[0-3].json", names="restart-{configuration}{launch}-{run}")
    assert "--names PATTERN" not in as_text(parts(named))
