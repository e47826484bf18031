"""What to measure: sides with their settings and commands, and how each run is made."""

from __future__ import annotations

import os
import re
import shlex
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gctrace_analyzer.advise.whatif import PRESENT, parse_settings
from gctrace_analyzer.analysis.compare.rounds import CPU, RSS, WALL, OutsideMetric, SettingValue
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.program import with_gctrace
from gctrace_analyzer.units import duration_s, size_as_set

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gctrace_analyzer.advise.whatif import GogcValues, Present, SizeValues

    Words: TypeAlias = str | Sequence[str]

NOW = "now"
"""The name of the side with the unchanged environment."""

_NUMBER = re.compile(r"([-+]?\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?)\s*(ns|us|µs|ms|s|m|h|k|M|G)?")
_TIME = re.compile(r"(?:[^=]*=)?(\d+(?:\.\d*)?)(ms|s|m|h)")
_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}
_TIMES = {"k": 1e3, "M": 1e6, "G": 1e9}


@frozen
class OutputMetric:
    """A figure in the output of the program or its load.

    Attributes:
        name: its name.
        pattern: its first group, or else the whole match, is the figure; the last match counts.
        up: whether more is better.
    """

    name: str
    pattern: str
    up: bool = False

    def value(self, texts: Sequence[str]) -> tuple[float, str] | None:
        """Returns the figure and its unit, durations in milliseconds; None if there is none.

        >>> OutputMetric("p99", r"99% in (.*)").value(["99% in 0.25 secs"])
        (250.0, 'ms')
        """
        matches = [match for text in texts for match in re.finditer(self.pattern, text, re.M)]
        if not matches:
            return None
        last = matches[-1]
        number = _NUMBER.search(last[1] if last.re.groups else last[0])
        if number is None:
            return None
        unit, value = number[2] or "", float(number[1].replace(",", ""))
        is_time = unit in _MS
        return (value * _MS[unit], "ms") if is_time else (value * _TIMES.get(unit, 1.0), "")


@frozen
class Trial:
    """A side: a command and its settings.

    Attributes:
        label: its name.
        words: the program and its arguments.
        gogc: GOGC; None: as in the environment.
        memory_limit_mib: GOMEMLIMIT; None: as in the environment.
    """

    label: str
    words: Sequence[str]
    gogc: SettingValue = None
    memory_limit_mib: SettingValue = None

    @property
    def environment(self) -> dict[str, str]:
        """The variables to add to the environment."""
        values = {"GODEBUG": with_gctrace(os.environ.get("GODEBUG", ""))}
        if self.gogc is not None:
            values["GOGC"] = f"{self.gogc:g}" if isinstance(self.gogc, float) else self.gogc
        if (limit := self.memory_limit_mib) is not None:
            values["GOMEMLIMIT"] = limit if isinstance(limit, str) else size_as_set(limit)
        return values

    @property
    def given_s(self) -> set[float]:
        """The times in its arguments in seconds, such as in `-d 2s`."""
        times = (_TIME.fullmatch(word) for word in self.words[1:])
        return {float(time[1]) * _MS[time[2]] / 1000 for time in times if time}


@frozen
class Plan:
    """How each run is made.

    Attributes:
        serve_for_s: how long a server is measured; None: until its load or the server ends.
        ready: the URL that answers, or the pattern in the output, once the server is ready.
        load: the command that generates the load.
        metrics: the figures in the output.
        stdin: the file that the program reads.
        timeout_s: how long a run or its load may take.
    """

    serve_for_s: float | None = None
    ready: str | None = None
    load: Sequence[str] = ()
    metrics: Sequence[OutputMetric] = ()
    stdin: str = os.devnull
    timeout_s: float = 600.0

    @property
    def is_server(self) -> bool:
        """Whether the program runs until it is stopped."""
        return bool(self.load) or self.serve_for_s is not None

    @property
    def measured(self) -> tuple[OutsideMetric, ...]:
        """The measured metrics; the first one decides."""
        usual = (CPU, RSS, WALL) if self.is_server else (WALL, CPU, RSS)
        named = {metric.name: metric for metric in usual}
        own = [
            named.get(metric.name) or OutsideMetric(metric.name, "", metric.up)
            for metric in self.metrics
        ]
        return tuple(dict.fromkeys((*own, *usual)))

    def missing(self, figures: Mapping[str, float]) -> OutputMetric | None:
        """Returns a metric that the output of a run lacks; None if it has all."""
        missing = (one for one in self.metrics if one.pattern and one.name not in figures)
        return next(missing, None)

    def figures(self, texts: Sequence[str]) -> Mapping[str, tuple[float, str]]:
        """Returns the figures in the output of a run, with their units."""
        values = {metric.name: metric.value(texts) for metric in self.metrics if metric.pattern}
        return {name: value for name, value in values.items() if value is not None}


def plan_of(
    serve_for: str | float | None,
    ready: str | None,
    load: Words | None,
    metric: Mapping[str, str],
    metric_up: Mapping[str, str],
    stdin: str | os.PathLike[str] | None,
    timeout: str | float,
    decides: str | None = None,
) -> Plan:
    """Returns how each run is made, from the arguments of `measure`.

    Raises:
        BadSettingError: an argument is not valid.
    """
    if load is not None and ready is None:
        raise BadSettingError(
            "load",
            shlex.join(_words(load)),
            "also when the server is ready: a URL that answers then",
        )
    if stdin is not None and not Path(stdin).is_file():
        raise BadSettingError("stdin", str(stdin), "an existing file")
    metrics = [
        OutputMetric(name, _pattern(argument, text), argument == "metric_up")
        for argument, named in (("metric", metric), ("metric_up", metric_up))
        for name, text in named.items()
    ]
    if decides is not None:
        if decides not in (names := [one.name for one in metrics]):
            raise BadSettingError.unknown("decides", decides, names)
        metrics.sort(key=lambda one: one.name != decides)
    if ready is not None and "://" not in ready:
        _pattern("ready", ready)
    return Plan(
        None if serve_for is None else duration_s(serve_for, argument="serve_for"),
        ready,
        () if load is None else _words(load),
        metrics,
        os.devnull if stdin is None else str(Path(stdin).absolute()),
        duration_s(timeout, argument="timeout"),
    )


def _pattern(argument: str, text: str) -> str:
    try:
        re.compile(text)
    except re.error as err:
        raise BadSettingError(argument, text, f"a regular expression ({err})") from err
    return text


def _words(command: Words) -> list[str]:
    words = (
        shlex.split(command) if isinstance(command, str) else [os.fspath(w) for w in command]
    )
    if not words:
        raise BadSettingError("command", "", "a program and its arguments")
    return words


def trials_of(
    command: Words | None,
    gogc: GogcValues | Present,
    memory_limit: SizeValues | Present,
    sides: Mapping[str, Words] | None,
) -> list[Trial]:
    """Returns the sides; without settings, only the present environment."""
    if sides:
        if command is not None or gogc is not PRESENT or memory_limit is not PRESENT:
            raise BadSettingError(
                "sides", ", ".join(sides), "sides, or a command with settings"
            )
        if len(sides) < 2:
            raise BadSettingError("sides", ", ".join(sides), "two or more sides")
        return [Trial(name, tuple(_words(own))) for name, own in sides.items()]
    assert command is not None
    words = tuple(_words(command))
    settings = product(_values(gogc, "gogc"), _values(memory_limit, "memory_limit"))
    trials = [Trial(setting_label(*pair) or NOW, words, *pair) for pair in settings]
    if len(trials) == 1 and trials[0].label != NOW:
        # A single setting is compared with the unchanged environment.
        trials.insert(0, Trial(NOW, words))
    return trials


def _values(values: Any, name: Any) -> list[SettingValue]:
    if values is PRESENT:
        return [None]
    numbers = parse_settings(values, None, name)
    return ["off" if number is None else float(number) for number in dict.fromkeys(numbers)]


def setting_label(gogc: SettingValue, memory_limit_mib: SettingValue) -> str:
    """Returns the name of a setting, as it is set: `GOGC=200 GOMEMLIMIT=1GiB`."""
    parts = []
    if gogc is not None:
        parts.append(f"GOGC={gogc if isinstance(gogc, str) else f'{gogc:g}'}")
    if isinstance(memory_limit_mib, str):
        parts.append(f"GOMEMLIMIT={memory_limit_mib}")
    elif memory_limit_mib is not None:
        parts.append(f"GOMEMLIMIT={size_as_set(memory_limit_mib)}")
    return " ".join(parts)
