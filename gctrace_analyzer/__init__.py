"""What the Go garbage collector did to your service, from GODEBUG=gctrace=1 logs.

>>> import gctrace_analyzer as gca
>>> run = gca.read("samples/steady-go1.26.log")
>>> run.summary().cycles
33
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gctrace_analyzer.api import (
        add_metrics,
        compare,
        cycles,
        from_frame,
        overlay,
        read,
        read_prometheus,
        side_by_side,
    )
    from gctrace_analyzer.comparison import Comparison
    from gctrace_analyzer.errors import (
        BadSettingError,
        FleetStoppedError,
        GctraceError,
        GctraceWarning,
        MissingColumnsError,
        MissingExtraError,
        MissingInputError,
        NoDataError,
        ProgramError,
        UnreadableInputError,
        UnwritableOutputError,
    )
    from gctrace_analyzer.fleets.fleet import fleet
    from gctrace_analyzer.fleets.fleet_answers import FleetAnswers, fleet_answers
    from gctrace_analyzer.run import Run
    from gctrace_analyzer.trials.experiment import measure

__version__ = "0.1.0"

__all__ = [
    "BadSettingError",
    "Comparison",
    "FleetAnswers",
    "FleetStoppedError",
    "GctraceError",
    "GctraceWarning",
    "MissingColumnsError",
    "MissingExtraError",
    "MissingInputError",
    "NoDataError",
    "ProgramError",
    "Run",
    "UnreadableInputError",
    "UnwritableOutputError",
    "add_metrics",
    "compare",
    "cycles",
    "fleet",
    "fleet_answers",
    "from_frame",
    "measure",
    "overlay",
    "read",
    "read_prometheus",
    "side_by_side",
]

_HOMES = {
    "Run": "run",
    "Comparison": "comparison",
    "fleet": "fleets.fleet",
    "measure": "trials.experiment",
    **dict.fromkeys(("FleetAnswers", "fleet_answers"), "fleets.fleet_answers"),
}
_METHODS = ("recommend", "whatif", "summary", "findings", "check")
_ELSEWHERE = {name: f" Use read(path).{name}()." for name in _METHODS}
_ELSEWHERE["explain"] = " Use the command `gctrace-analyze explain`."
"""Names that users look for here, and where to find them."""

_MODULES = ("schema", "testing")


def __getattr__(name: str) -> Any:
    # A name is loaded when it is first used, so that importing the package loads no frame
    # library.
    if name in _MODULES:
        return import_module(f"gctrace_analyzer.{name}")
    if name not in __all__:
        from gctrace_analyzer.errors import no_attribute

        raise no_attribute(__name__, name, __dir__(), _ELSEWHERE.get(name, ""))
    home = _HOMES.get(name) or ("errors" if name.endswith(("Error", "Warning")) else "api")
    return getattr(import_module(f"gctrace_analyzer.{home}"), name)


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]
