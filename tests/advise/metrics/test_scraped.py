"""Predictions from what Prometheus scraped, compared with the run of the predicted setting."""

from __future__ import annotations

from statistics import median, quantiles

from tests.helpers.scraped import forecasts

ENOUGH_SAMPLES = 20


def _errors(figure: str, *, enough: bool) -> list[float]:
    return [
        abs(each.errors[figure])
        for each in forecasts()
        if (each.base.samples >= ENOUGH_SAMPLES) == enough
    ]


def _p90(values: list[float]) -> float:
    return quantiles(values, n=10)[-1]


def test_frequencies_under_another_gogc() -> None:
    errors = _errors("gc_per_s", enough=True)
    assert len(errors) > 50
    assert median(errors) <= 0.15
    assert _p90(errors) <= 0.40


def test_heap_goals_under_another_gogc() -> None:
    errors = _errors("heap_goal_mib", enough=True)
    assert median(errors) <= 0.05
    assert _p90(errors) <= 0.15


def test_few_samples_predict_less_precisely() -> None:
    assert median(_errors("gc_per_s", enough=False)) <= 0.15
    assert median(_errors("heap_goal_mib", enough=False)) <= 0.08


def test_four_of_five_results_lie_in_their_intervals() -> None:
    inside = []
    for each in forecasts():
        gogc = each.target.run["env"]["GOGC"]
        row = each.base.source.whatif(gogc=gogc).row(0, named=True)
        low, high = row["gc_per_s_low"], row["gc_per_s_high"]
        inside.append(low <= each.target.truth["gc_per_s"] <= high)
    assert sum(inside) >= 0.8 * len(inside)
