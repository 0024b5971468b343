from dataclasses import replace
from typing import Any

from tests.tuning.checks.recorded import one, recorded
from tuning.checks.acceptance import findings, rejects
from tuning.checks.client import saturated
from tuning.checks.finding import RunFacts


def client(**metrics: Any) -> RunFacts:
    return recorded(metrics={**recorded().metrics, **metrics})


def test_the_recorded_client_kept_up() -> None:
    facts = recorded()
    assert facts.metrics["client_cpu_perc"] == 14.5932
    assert saturated(facts) is None


def test_a_full_core_rejects() -> None:
    found = one(saturated(client(client_cpu_perc=97.0)))
    assert "97 % of a core" in found.reason
    assert (found.numbers["client_cpu_perc"], found.numbers["threshold_cpu_perc"]) == (97, 90)
    assert rejects(findings(client(client_cpu_perc=97.0))) == found.reason
    assert saturated(client(client_cpu_perc=94.8, client_lag_p99_ms=None)) is not None  # measured, in saturation


def test_a_late_event_loop_rejects() -> None:
    found = one(saturated(client(client_lag_p99_ms=120.0)))
    assert "late by 120 ms" in found.reason
    assert found.numbers["threshold_lag_ms"] == 5 * (recorded().metrics["median_itl_ms"] or 0.0)
    assert rejects(findings(client(client_lag_p99_ms=120.0))) == found.reason
    assert saturated(client(client_lag_p99_ms=120.0, median_itl_ms=40.0)) is None


def test_a_client_that_was_not_measured_is_a_note() -> None:
    unknown = client(client_cpu_perc=None, client_lag_p99_ms=None)
    note = one(saturated(replace(unknown, outcome=replace(unknown.outcome, via="command"))))
    assert not note.rejects
    assert "was not measured" in note.reason
