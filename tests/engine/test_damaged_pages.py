"""Pages damaged at random: each is a sample or one clear line, and no number that comes of it is infinite or none."""

import json
import math
import random

import pytest

from engine.records import EngineError, GpuReading
from engine.samples.sample_record import to_record
from engine.samples.snapshot import snapshot_json
from engine.samples.window import Window
from engine.scrape.histograms import mean, percentile
from engine.scrape.metric_names import HISTOGRAMS
from engine.scrape.metrics import parse_metrics
from engine.scrape.metrics_page import PageReader
from tests.engine.observed import METRICS
from tests.served_pages import ABSURD

NO_GPU = GpuReading(at="2026-11-30T10:00:00.000Z", clock=0.0)
PIECES = (*'0123456789.eE+-"\\{}=, \n#NaInf_:éx\x1b\t\r', *ABSURD, 'engine="1",', "")


def damaged(text: str, dice: random.Random) -> str:
    page = list(text)
    for _ in range(dice.choice((0, 1, 5, 50, 500))):
        at = dice.randrange(len(page))
        page[at] = dice.choice(PIECES) + dice.choice(("", page[at]))
        if dice.random() < 0.1:
            del page[at : at + dice.randrange(200)]
    return "".join(page)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_pages_break_nothing(seed: int) -> None:
    dice = random.Random(seed)
    reader, window, before = PageReader(), Window(60), None
    refused: list[str] = []
    for second in range(6):
        at = f"2026-11-30T10:00:{second:02}.000Z"
        try:
            sample = parse_metrics(damaged(dice.choice(METRICS).read_text(), dice), at, float(second), reader)
        except EngineError as error:
            refused.append(str(error))
            continue
        record = to_record(sample, NO_GPU)
        json.dumps(record.raw, allow_nan=False)
        json.dumps(snapshot_json(sample, NO_GPU, previous=before), allow_nan=False)
        window.add(record)
        before = sample
    assert all(line.isprintable() for line in refused)
    numbers = [window.rate(lambda sample: sample.generation_tokens), window.total("requests_finished")]
    for name in HISTOGRAMS:
        came = window.histogram(name)
        spread = (percentile(came, perc) for perc in (50, 99))
        numbers += [mean(came), *(one.value for one in spread if one is not None)]
    assert all(number is None or math.isfinite(number) for number in numbers)
