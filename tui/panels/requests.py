"""What is asked of the server over a window: how long prompts and answers are, how many at once, what one costs."""

import math

from engine.records import Histogram
from engine.samples.sample_record import requests_finished
from engine.samples.window import Window
from engine.scrape.histograms import Percentile, mean, percentile
from tui.format import ABSENT
from tui.panels.gpu_reading import energy_j
from tui.panels.latencies import latency_text
from tui.panels.reading import a_second
from tui.panels.row import MUTED, PLAIN, STRONG, Row, brief, decimals_of, figure, fit, named, per_second, title

SHAPES = (("prompt", "prompt_length"), ("answer", "output_length"), ("a step", "step_tokens"))
NAME_W, VALUE_W = 10, 9


def request_rows(window: Window, answers: bool, width: int, most: float | None = None) -> list[Row]:
    """The panel, `width` cells wide. `most` is max-num-seqs where it is known."""
    found = {name: window.histogram(name) if answers else None for _, name in SHAPES}
    heads = "".join(head.rjust(VALUE_W) for head in ("p50", "p90", "mean"))
    rows: list[Row] = [
        title("requests", width, window.seconds),
        *_load(window, answers, most),
        ((f"{'tokens':<{NAME_W}}", MUTED), (heads, MUTED)),
        *(_shape(label, found[name]) for label, name in SHAPES),
        _steps(found["step_tokens"], window),
        *_cost(window, answers, found["prompt_length"], found["output_length"]),
    ]
    return [fit(row, width) for row in rows]


def _load(window: Window, answers: bool, most: float | None) -> list[Row]:
    ended = window.increase(requests_finished) if answers else None
    a_s = a_second(ended, window)
    samples = window.samples if answers else ()
    running = [one.running for one in samples if one.running is not None and math.isfinite(one.running)]
    at_once = sum(running) / len(running) if running else None
    peak = f"most {brief(max(running, default=None))}" + (f" / {brief(most)}" if most is not None else "")
    return [
        named("ended", per_second(a_s, 9), f"{brief(ended)} in {brief(window.seen())} s"),
        named("at once", figure(at_once, 9, decimals_of(at_once)), peak),
    ]


def _shape(label: str, histogram: Histogram | None) -> Row:
    """Median, p90 and mean of a length."""
    texts = [_tokens(percentile(histogram, perc)) for perc in (50.0, 90.0)]
    return (
        (f"{label:<{NAME_W}}", MUTED),
        (texts[0].rjust(VALUE_W), STRONG),
        (texts[1].rjust(VALUE_W), PLAIN),
        (figure(mean(histogram), VALUE_W), PLAIN),
    )


def _tokens(found: Percentile | None) -> str:
    """The bound of the bucket. They stand at 1, 2, 5, 10 … tokens: where all prompts are alike, a value between two
    bounds would be made up (and often lie beyond the mean)."""
    if found is None:
        return ABSENT
    return f"≤{brief(found.upper)}" if found.upper is not None else f">{brief(found.lower)}"


def _steps(histogram: Histogram | None, window: Window) -> Row:
    a_s = a_second(histogram.count if histogram is not None else None, window)
    return named("steps", per_second(a_s, 9))


def _cost(window: Window, answers: bool, prompt: Histogram | None, output: Histogram | None) -> list[Row]:
    """The mean request that ended: its tokens, its seconds from end to end, its share of the GPUs' energy."""
    e2el = window.histogram("e2el") if answers else None
    asked, told = mean(prompt), mean(output)
    tokens = asked + told if asked is not None and told is not None else None
    joules = energy_j(window) if answers else None
    ended = window.increase(requests_finished) if answers else None
    each = joules / ended if joules is not None and ended else None
    rows = [named("a request", latency_text(mean(e2el)).rstrip(), f"{brief(tokens)} tokens")]
    if any(sample.gpu_energy_j is not None for sample in window.samples):
        rows.append(named("", figure(each, 9, decimals_of(each), " J"), "of GPU energy"))
    return rows
