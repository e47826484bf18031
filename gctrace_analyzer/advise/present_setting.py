"""The setting that predictions start from, as it is stated or as the heap goals show it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.analysis.settings.search import DEFAULT_GOGC

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.settings.known import Settings
    from gctrace_analyzer.analysis.settings.regimes import Regime


def given_setting(settings: Settings) -> Setting:
    """Returns the setting as far as it was given or found; GOGC is None if it is unknown."""
    gogc = settings.value("gogc")
    return Setting(
        float(gogc) if isinstance(gogc, int | float) else None,
        settings.value("memory_limit_mib"),
        float(settings.value("ballast_mib") or 0.0),
    )


def present_setting(regime: Regime, settings: Settings) -> Setting:
    """Returns the setting of a regime; a GOGC that a limit hides is the default, if it can be."""
    gogc, limit = regime.gogc_pct, regime.memory_limit_mib
    if gogc is None:
        gogc = DEFAULT_GOGC if (regime.gogc_pct_low or 0.0) <= DEFAULT_GOGC else math.inf
    return Setting(
        None if math.isinf(gogc) else max(gogc, 1.0),
        None if limit is None or math.isinf(limit) else limit,
        float(settings.value("ballast_mib") or 0.0),
    )
