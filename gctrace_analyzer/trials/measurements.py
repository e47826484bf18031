"""A folder of measured runs: their logs, the manifest, and their comparison."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gctrace_analyzer import __version__, schema
from gctrace_analyzer.analysis.compare.rounds import Measurement, TrialRun
from gctrace_analyzer.api import from_frame, read
from gctrace_analyzer.comparison import Comparison, side_of
from gctrace_analyzer.errors import BadSettingError, NoDataError, UnreadableInputError
from gctrace_analyzer.files import write_atomically
from gctrace_analyzer.trials.plan import NOW, OutputMetric, Plan, Trial

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gctrace_analyzer.advise.expectation import Expectation
    from gctrace_analyzer.advise.sides import Promised, Side
    from gctrace_analyzer.run import Run

MANIFEST = "manifest.json"


class Measurements:
    """Runs in a folder, each with its logs; the manifest is written after each run.

    Attributes:
        folder: the folder of the runs.
        trials: the sides; the baseline is first.
        plan: how each run is made.
        facts: the facts about the program, as `read` takes them.
        runs: the measured runs.
        promises: the prediction for each side, or why there is none.
        fixed: whether the number of rounds was fixed before the first.
        most: the largest number of rounds.
    """

    def __init__(
        self,
        folder: Path,
        trials: Sequence[Trial],
        plan: Plan,
        facts: Mapping[str, Any],
    ) -> None:
        self.folder, self.plan = folder, plan
        self.trials = list(trials)
        self.facts = {name: value for name, value in facts.items() if value is not None}
        self.runs: list[TrialRun] = []
        self.promises: dict[str, tuple[Expectation, str | None]] = {}
        self.fixed, self.most = False, 0

    @property
    def measurement(self) -> Measurement:
        """The measurements so far, for the sides that can run."""
        sides = [trial.label for trial in self.trials]
        counted = {run.side for run in self.runs if run.error is None}
        times = {name for run in self.runs for name in run.times}
        return Measurement(
            tuple(side for side in sides if side in counted),
            tuple(self.runs),
            tuple(
                replace(metric, unit="ms") if metric.name in times else metric
                for metric in self.plan.measured
            ),
            self.fixed,
            self.most,
            tuple(set.intersection(*(trial.given_s for trial in self.trials))),
        )

    def save(self) -> None:
        """Writes the manifest."""
        document = {
            "made_by": __version__,
            "sides": [asdict(trial) for trial in self.trials],
            "plan": asdict(self.plan),
            "facts": self.facts,
            "fixed": self.fixed,
            "most": self.most,
            "promises": self.promises,
            "runs": [{**run.to_dict(), "figures": dict(run.figures)} for run in self.runs],
        }
        text = json.dumps(document, indent=1, ensure_ascii=False, default=str)
        write_atomically(self.folder / MANIFEST, lambda file: file.write(f"{text}\n".encode()))

    @classmethod
    def opened(cls, folder: Path) -> Measurements:
        """Returns the measurements of a folder.

        Raises:
            UnreadableInputError: the folder has no measurements, or those of another version.
        """
        try:
            known = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            metrics = [OutputMetric(**metric) for metric in known["plan"]["metrics"]]
            plan = replace(Plan(**known["plan"]), metrics=metrics)
            kept = cls(folder, [Trial(**side) for side in known["sides"]], plan, known["facts"])
            kept.runs = [TrialRun(**run) for run in known["runs"]]
            if outside := [run.log for run in kept.runs if Path(run.log).name != run.log]:
                msg = f"{outside[0]!r} is not in the folder"
                raise ValueError(msg)
            kept.promises = known["promises"]
            kept.fixed, kept.most = known["fixed"], known["most"]
        except (OSError, ValueError, KeyError, TypeError) as err:
            problem = f"no {MANIFEST} of measured runs in it ({err})"
            hint = "Give a folder that this version has measured in."
            raise UnreadableInputError(str(folder), problem, hint) from err
        return kept

    def require_same(self, trials: Sequence[Trial], plan: Plan) -> None:
        """Checks that the runs have the same commands, made in the same way.

        Raises:
            BadSettingError: they differ.
        """
        # A recommended setting is a side that nobody asked for.
        known = self.trials[: len(trials)] if trials[0].label == NOW else self.trials
        asked, made = (
            json.dumps([[asdict(trial) for trial in several], asdict(how)])
            for several, how in ((trials, plan), (known, self.plan))
        )
        if asked != made:
            expected = "a new folder: it has runs of other commands, settings or options"
            raise BadSettingError("logs", str(self.folder), expected)

    def log(self, trial: Trial, number: int, *, again: bool = False) -> Path:
        """Returns the log of a run."""
        names = [_file_name(other.label) for other in self.trials]
        name = _file_name(trial.label)
        if names.count(name) > 1:
            name = f"{name}-{self.trials.index(trial) + 1}"
        return self.folder / f"{name}-{number:02}{'-again' if again else ''}.log"

    def read(self, run: TrialRun) -> Run:
        """Returns the run of the garbage collector, without cycles if it did not run."""
        trial = next(trial for trial in self.trials if trial.label == run.side)
        settings = {"gogc": trial.gogc, "memory_limit": trial.memory_limit_mib}
        own = {name: value for name, value in settings.items() if value is not None}
        facts = {**self.facts, **own}
        try:
            return read(self.folder / run.log, **facts)
        except NoDataError:
            return from_frame(schema.empty("cycles"), **facts)

    def comparison(self) -> Comparison:
        """Returns the compared sides.

        Raises:
            NoDataError: fewer than two sides have a run that counts.
        """
        measurement = self.measurement
        sides = [
            side_of(label, [self.read(run) for run in counted], may_be_empty=True)
            for label in measurement.sides
            if (counted := [*measurement.counted(label)])
        ]
        if len(sides) < 2:
            raise NoDataError(
                str(self.folder),
                "fewer than two sides have runs to compare",
                "Measure again with the same folder to continue.",
            )
        return Comparison(sides, measurement=measurement, promised=self._promised)

    @property
    def _promised(self) -> Promised:
        def promised(_: Side, after: Side) -> tuple[Expectation, str | None]:
            expected, reason = self.promises.get(after.label, ({}, None))
            return {name: tuple(ends) for name, ends in expected.items()}, reason

        return promised


def _file_name(label: str) -> str:
    """Returns a side's name as part of a file name.

    >>> _file_name("GOGC=200 GOMEMLIMIT=1GiB")
    'gogc200-gomemlimit1gib'
    """
    return re.sub(r"[^a-z0-9.]+", "-", label.lower().replace("=", "")).strip("-.") or "side"
