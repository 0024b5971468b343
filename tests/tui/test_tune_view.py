"""What Tune says, without a screen: form, cost, rows and lines."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from store.database import open_reader
from tests.tui import tune_session
from tests.tui.tune_session import session_in
from tui.metric_text import effect_text, metric_value, next_metric, ratio
from tui.tune import plot_view, tune_lines, tune_table
from tui.tune.grid_text import dimensions_of, parse_points, settings_of
from tui.tune.plan_form import PlanForm, form_of, plan_of
from tui.tune.plan_preview import Basis, budget_line, cost_text, left_out, measured_basis, preview
from tui.tune.tune_source import read_view
from tui.tune.tune_view import TuneView, launch_name, serve_line
from tui.widgets.workload_form import form_values, workload_of
from tuning.figures import duration_text
from tuning.plans.demo import demo_plan
from tuning.records import RUN_METRICS, Candidate, Effect, Plan, PlanError, Summary


@pytest.fixture
def model(tmp_path: Path) -> str:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["X"], "model_type": "llama"}')
    (folder / "model.safetensors").write_bytes(b"\0" * 16)
    return str(folder)


@pytest.fixture
def base(model: str) -> Plan:
    return demo_plan(model, None)


@pytest.fixture
def running(tmp_path: Path) -> TuneView:
    number = session_in(tmp_path, finished=False)
    with open_reader(tmp_path / "llmtune.db") as reader:
        return read_view(reader, reader.session(number), lambda _: True, tune_session.stamp(2600))


# the form


def test_the_form_of_a_plan_says_that_plan(base: Plan) -> None:
    assert plan_of(form_of(base), base) == base
    gridded = replace(base, explicit_candidates=(), grid={"max-num-seqs": (4, 8), "kv-cache-dtype": ("auto", "fp8")})
    assert plan_of(form_of(gridded), base) == gridded


def test_default_in_a_dimension_leaves_the_flag_out(base: Plan) -> None:
    form = replace(form_of(base), grid="max-num-batched-tokens: default 2048, 8192\nmax-num-seqs: default 64")
    plan = plan_of(form, base)
    assert plan.grid == {}
    assert len(plan.explicit_candidates) == 5  # 3 x 2, less the one that leaves both out: the baseline
    assert {"max-num-seqs": 64} in plan.explicit_candidates
    assert form_of(plan).grid.splitlines() == [
        "max-num-batched-tokens: default 2048 8192",
        "max-num-seqs: default 64",
    ]


def test_candidates_that_are_no_product_have_a_line_each(base: Plan) -> None:
    assert dimensions_of(base.explicit_candidates) is None
    assert form_of(base).grid.splitlines()[0] == "+ max-num-batched-tokens=256"


def test_every_mistake_of_the_form_is_a_line_of_its_own(base: Plan) -> None:
    form = PlanForm(grid="max-num-seqs 64\n--a: 1\na: 2\n+ x", blocks="two", hours="-1", baseline="vllm bench")
    with pytest.raises(PlanError) as found:
        plan_of(form, base)
    lines = str(found.value).splitlines()
    for begin in ("baseline", "grid line 1", "grid line 3", "grid line 4", "model", "workloads", "blocks", "hours"):
        assert sum(line.startswith(begin) for line in lines) == 1, (begin, lines)


def test_a_pasted_serve_line_becomes_the_baseline(base: Plan) -> None:
    line = "HF_HOME=/hf vllm serve org/other --served-model-name m --port 9000 --max-model-len 4096 --enforce-eager"
    plan = plan_of(replace(form_of(base), baseline=line, model="", served_name=""), base)
    assert (plan.model, plan.served_name) == ("org/other", "m")
    assert plan.server == {"max-model-len": 4096, "enforce-eager": True}
    assert plan.server_env["HF_HOME"] == "/hf"


def test_values_get_their_types() -> None:
    grid, single = parse_points("a: 1 0.90 true word\n# comment\n+ --max_num_seqs=4 b='x y'")
    assert grid == {"a": (1, 0.9, True, "word")}
    assert single == ({"max-num-seqs": 4, "b": "x y"},)
    with pytest.raises(PlanError, match="flag=value"):
        settings_of("max-num-seqs 4")


def test_the_workload_form_keeps_what_it_does_not_show(base: Plan) -> None:
    workload = replace(base.workloads[1], goodput=("ttft:500",))
    assert workload_of(form_values(workload), workload) == workload


@pytest.mark.parametrize(
    ("field", "value", "line"),
    [
        ("requests", "0", "requests: '0'"),
        ("dataset", "share", "dataset: 'share'"),
        ("dataset", "sharegpt", "path: sharegpt needs"),
        ("shape", "width=3", "shape: prefix_repetition has no width"),
        ("rate", "fast", "rate: 'fast'"),
    ],
)
def test_a_wrong_workload_says_what_is_wrong(base: Plan, field: str, value: str, line: str) -> None:
    with pytest.raises(PlanError, match="^" + line.replace("(", r"\(")):
        workload_of({**form_values(base.workloads[1]), field: value}, base.workloads[1])


# the cost


def test_the_preview_counts_launches_runs_hours_and_money(base: Plan) -> None:
    form = replace(form_of(base), grid="max-num-seqs: 4 8\nmax-num-batched-tokens: 2 256", price="3.60", blocks="2")
    found = preview(form, base, Basis(60.0, 10.0, "as in session 7"))
    assert found.mistakes == ()
    assert found.estimate is not None
    assert [len(found.candidates), len(found.skipped)] == [3, 2]  # fewer batched tokens than sequences
    launches = found.estimate.launches
    runs = launches * sum(one.warmup + one.repeats for one in base.workloads)
    assert found.estimate.runs == runs
    assert found.estimate.money == pytest.approx((launches * 60 + runs * 10) / 1000)
    assert f"{launches} launches · {runs} runs" in cost_text(found)
    assert "2 left out" in cost_text(found)
    assert "vLLM refuses it" in left_out(found.skipped[0])


def test_more_than_the_budget_is_said(base: Plan) -> None:
    found = preview(replace(form_of(base), hours="0.01"), base, Basis())
    assert "budget of 0.01 h" in (budget_line(found) or "")
    assert budget_line(preview(form_of(base), base, Basis())) is None


def test_what_is_wrong_with_the_whole_plan_is_shown(base: Plan, tmp_path: Path) -> None:
    found = preview(replace(form_of(base), model=str(tmp_path / "nowhere"), metric="speed"), base, Basis())
    assert found.plan is None
    assert any("nowhere" in line for line in found.mistakes)
    assert any("speed" in line for line in found.mistakes)


def test_seconds_come_from_the_last_session(tmp_path: Path) -> None:
    number = session_in(tmp_path)
    with open_reader(tmp_path / "llmtune.db") as reader:
        basis = measured_basis(number, reader.launches(number), reader.runs(number))
    assert basis == Basis(60.0, 30.0, f"as in session {number}")
    assert "guess" in measured_basis(1, [], []).source


# rows and lines


def cells(view: TuneView, workload: str = "chat", metric: str = "total_tok_per_s") -> list[list[str]]:
    return [[cell.plain for cell in row.cells] for row in tune_table.table(view, workload, metric, 80).rows]


def test_the_rows_of_a_running_session(running: TuneView) -> None:
    baseline, better, worse, failed = cells(running)
    assert baseline[:2] == ["default", "default"]
    assert baseline[2] == "3"
    assert baseline[-1] == "baseline"
    assert better[:3] == ["2048", "0.90", "2"]
    assert better[4].startswith("+")
    assert worse[-1] == "▶ measuring"
    assert worse[4].startswith("−")
    assert failed[2:] == ["–", "–", "", "·", "! no start"]
    assert running.run is not None
    assert tune_lines.now_line(running) == "run 2 of 2 chat on [8192, 0.90]"


def test_another_workload_and_another_metric(running: TuneView) -> None:
    assert cells(running, "pre[/x]fix")[2][2] == "1"
    assert cells(running, metric="p99_ttft_ms")[0][3].endswith(" ms")
    titles = [column.title for column in tune_table.columns(running, "chat", "p99_ttft_ms", wide=False)]
    assert titles == ["batched", "util", "n", "p99 TTFT", "vs default", "limits", "verdict"]
    assert "lower is better, does not decide" in tune_table.table_title(running, "chat", "p99_ttft_ms")


def test_the_session_line_fits_the_smallest_terminal(running: TuneView) -> None:
    line = tune_lines.session_line(running, 78)
    assert len(line) <= 78
    long = replace(running, result=replace(running.result, launches_planned=1200, seconds_left=33700.0))
    assert len(tune_lines.session_line(long, 78)) <= 78
    assert tune_lines.session_line(long, 78).endswith("left")
    assert "▶ running" in line
    assert "block 2 of 2" in line


def test_a_session_without_its_keeper_says_so(running: TuneView) -> None:
    gone = replace(running, keeper_alive=False)
    assert "interrupted" in tune_lines.session_line(gone, 78)
    assert "R resumes" in tune_lines.now_line(gone)
    assert cells(gone)[2][-1] == "· 1 rejected"


def test_what_a_person_skipped_is_dropped_not_failed(running: TuneView) -> None:
    assert cells(replace(running, dropped=frozenset({1})))[1][-1] == "– dropped"


def test_nothing_waits_in_a_session_that_is_over(running: TuneView) -> None:
    one = replace(running.result.results[1], summaries={}, effects={}, failures=(), rejected=2)
    apart = replace(running, launch=None, foregone=(), dropped=frozenset())
    assert tune_table.state_text(apart, one).plain == "· waiting, 2 rejected"
    over = replace(apart, session=replace(running.session, state="done"))
    assert tune_table.state_text(over, one).plain == "· not measured, 2 rejected"


def test_what_would_start_and_what_was_not_tried_are_lines(running: TuneView) -> None:
    offered = replace(running, offers=((3, {"max-num-seqs": 128}),), foregone=((1, "not tried: it would fail as x"),))
    lines = tune_lines.failure_lines(offered)
    assert any(line.endswith("may start as max-num-seqs=128 (a on its row adds that)") for line in lines)
    assert any("not tried: it would fail as x" in line for line in lines)
    assert cells(offered)[1][-1] == "– not tried"


def test_a_failure_has_room_for_its_remedy(running: TuneView) -> None:
    why = "the server ended with status 1 before it was ready: It is too small. Lower --max-model-len to 464."
    line = tune_lines.failure_lines(replace(running, failures=((1, why),)))[0]
    assert line.endswith("did not start: It is too small. Lower --max-model-len to 464.")


def test_failures_and_cost_are_lines(running: TuneView) -> None:
    failed, rejected = tune_lines.failure_lines(running)
    assert failed.startswith("[16384, 0.98] did not start: out of memory")
    assert rejected == "rejected runs (the events say why): [8192, 0.90] 1"
    assert "spent" in tune_lines.cost_line(running)
    assert "$" in tune_lines.cost_line(running)
    assert 0.5 < tune_lines.progress(running) < 1.0


def test_the_whole_serve_line(running: TuneView) -> None:
    assert running.plan is not None
    line = serve_line(running.plan, running.candidates[1])
    assert line.startswith("vllm serve 'org/Model-[/bold]-7B'")
    for words in ("--max-model-len 4096", "--max-num-batched-tokens 2048", "--gpu-memory-utilization 0.9"):
        assert words in line


def test_nothing_that_moves_a_terminal_is_left(running: TuneView) -> None:
    said = [
        tune_lines.session_line(running, 200),
        *tune_lines.failure_lines(running),
        *itertools.chain(*cells(running)),
    ]
    assert all(words.isprintable() for words in said)


# plots


def test_a_plot_has_the_default_first_and_a_series_for_each_combination(running: TuneView) -> None:
    found = plot_view.plot(running, "chat", "total_tok_per_s", "max-num-batched-tokens")
    assert [label for _, label in found.axes.x_ticks] == ["default", "2048", "8192", "16384"]
    assert [words.split(" ", 1)[1] for words in found.legend] == ["default", "util 0.90", "util 0.98"]
    marked = [point for one in found.series if one.marks for point in one.points]
    assert len(marked) == 3  # the one that did not start has no point
    intervals = [one for one in found.series if not one.marks]
    assert len(intervals) == 3


def test_a_plot_against_the_candidates(running: TuneView) -> None:
    assert plot_view.parameters(running)[-1] == plot_view.LAUNCHES
    found = plot_view.plot(running, "chat", "mean_ttft_ms", plot_view.LAUNCHES)
    assert [text for _, text in found.axes.x_ticks] == ["default", "2048 · 0.9", "8192 · 0.9", "16384 · 0.98"]
    assert found.legend == ()  # names what does not fit under its point
    assert "(ms)" in found.axes.y_label


def test_an_interval_that_dwarfs_the_means_is_cut_and_told(running: TuneView) -> None:
    results = tuple(
        replace(one, summaries={"total_tok_per_s": Summary(2, 4, mean, 1.0, mean / 6, 6 * mean)})
        for one, mean in zip(running.result.results[:2], (13_000.0, 12_600.0), strict=True)
    )
    view = replace(running, result=replace(running.result, results=results))
    for parameter in ("max-num-batched-tokens", plot_view.LAUNCHES):
        found = plot_view.plot(view, "chat", "total_tok_per_s", parameter)
        assert found.axes.y_limits is not None
        low, high = found.axes.y_limits
        assert 10_000 < low < 12_600
        assert 13_000 < high < 16_000
        assert found.note.endswith("beyond the picture: intervals to 2,100 and 78,000")


# words


def test_a_launch_is_named_so_that_nobody_must_guess_the_flag(running: TuneView) -> None:
    assert launch_name(running, 2) == "[8192, 0.90]"
    first = running.result.results[2]
    alone = replace(first, candidate=Candidate(9, "util 0.98", {"gpu-memory-utilization": 0.98}))
    view = replace(running, result=replace(running.result, results=(*running.result.results, alone)))
    assert launch_name(view, 9) == "util 0.98"


def test_numbers_have_units_and_absent_is_a_dash() -> None:
    assert metric_value("p99_ttft_ms", 1012.4) == "1,012 ms"
    assert metric_value("mean_itl_ms", 9.812) == "9.81 ms"
    assert metric_value("error_rate", 0.015) == "1.5 %"
    assert metric_value("total_tok_per_s", None) == metric_value("kv_peak_perc", float("nan")) == "–"
    assert effect_text(Effect(2, 0.0141, -0.003, 0.0311)) == "+1.4 % [−0.3, +3.1]"
    assert effect_text(Effect(1, -0.29, None, None)) == "−29 %"
    assert ratio(-0.0001) == "+0.0 %"
    assert [duration_text(s) for s in (40, 2280, 7500)] == ["40 s", "38 min", "2 h 05 min"]
    assert next_metric(RUN_METRICS[-1]) == RUN_METRICS[0]


# what limited the runs


def test_what_limited_a_candidates_runs_is_said_beside_it(running: TuneView) -> None:
    kv = "KV-bound: KV above 95 % for all 7 s. Raise gpu-memory-utilization (now 0.9)."
    seqs = "Sequence-bound: at max-num-seqs for all 7 s."
    one = next(each for each in running.result.results if each.candidate.index == 1)

    def line(*said: str) -> str:
        changed = replace(one, limited_by=said)
        results = tuple(changed if each is one else each for each in running.result.results)
        view = replace(running, result=replace(running.result, results=results))
        return tune_lines.limited_line(view, one.workload, 1)

    name = launch_name(running, 1)
    assert line() == ""
    assert line(kv, kv) == f"{name}: {kv}"
    assert line(kv, seqs, kv) == (
        f"{name}: KV-bound in 2 of 3 runs: KV above 95 % for all 7 s. Raise gpu-memory-utilization (now 0.9)."
    )
    assert "\x1b" not in line("KV-bound: \x1b[31m")
