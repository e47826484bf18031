"""How changes of settings are named."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gctrace_analyzer.analysis.settings.naming import changes
from gctrace_analyzer.analysis.settings.regimes import Regime

GOGC_100 = Regime(
    0, 1, 9, 0.0, 5.0, 9, 100.0, 95.0, 105.0, None, None, None, 4, "gogc", "inferred", None, 0.0
)


@pytest.mark.parametrize(
    ("later", "text"),
    [
        ({"gogc_pct": 200.0, "gogc_pct_low": 195.0, "gogc_pct_high": 204.0}, "GOGC=200"),
        ({"gogc_pct": 125.0, "gogc_pct_low": 121.2, "gogc_pct_high": 130.0}, "GOGC=121–130"),
        ({"gogc_pct": 139.0, "gogc_pct_low": 138.0, "gogc_pct_high": 140.0}, "GOGC=138–140"),
        ({"procs": 2}, "GOMAXPROCS=2"),
        (
            {"gogc_pct": 200.0, "gogc_pct_low": 190.0, "gogc_pct_high": 201.0, "procs": 2},
            "GOGC=200, GOMAXPROCS=2",
        ),
        (
            {
                "gogc_pct": math.inf,
                "gogc_pct_high": math.inf,
                "memory_limit_mib": 64.0,
                "memory_limit_source": "stated",
                "set_by": "memory-limit",
            },
            "GOMEMLIMIT=64 MiB, GOGC=off",
        ),
    ],
)
def test_all_settings_that_change_at_one_moment_are_named(
    later: dict[str, float | str], text: str
) -> None:
    after = replace(GOGC_100, first_gc=10, last_gc=20, start_s=5.0, **later)  # type: ignore[arg-type]
    assert [*changes((GOGC_100, after))] == [(after, text)]
