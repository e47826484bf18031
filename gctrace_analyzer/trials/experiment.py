"""`measure`: runs sides in rounds until they are decided, and compares them."""

from __future__ import annotations

import math
import os
import random
import shutil
import time
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Unpack

from gctrace_analyzer.advise.expectation import expectation
from gctrace_analyzer.advise.policy import recommend
from gctrace_analyzer.advise.whatif import PRESENT, GogcValues, Present, SizeValues
from gctrace_analyzer.analysis.settings.known import CommonFacts, given_settings
from gctrace_analyzer.errors import BadSettingError, NoDataError, ProgramError
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.format import duration
from gctrace_analyzer.trials.measurements import MANIFEST, Measurements
from gctrace_analyzer.trials.plan import NOW, Trial, plan_of, setting_label, trials_of
from gctrace_analyzer.trials.trial import run_trial
from gctrace_analyzer.units import gomemlimit_mib

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gctrace_analyzer.advise.prediction.model import Setting
    from gctrace_analyzer.advise.prediction.outcome import Predictor
    from gctrace_analyzer.analysis.compare.rounds import SettingValue, TrialRun
    from gctrace_analyzer.comparison import Comparison
    from gctrace_analyzer.trials.plan import Plan, Words


class Facts(CommonFacts, total=False):
    """The facts about the program, as `read` takes them."""

    gogc_now: str | float | None
    memory_limit_now: str | float | None
    ballast_now: str | float | None


MOST_ROUNDS = 20
"""Default maximum of rounds."""

_MOST_FAILURES = 2
"""Failed runs of one side after which no more are made."""

_FEW_REPEATS = 3
"""Repeats of disturbed runs before checking whether they help."""


class NoChangeError(NoDataError):
    """There is nothing to compare: no other setting is recommended, and none was given.

    Attributes:
        gogc: values of GOGC to try.
    """

    def __init__(
        self, program: str, reason: str, gogc: Sequence[float], *, is_refused: bool
    ) -> None:
        values = ", ".join(f"{value:g}" for value in gogc)
        what = "nothing could be predicted" if is_refused else "no other setting is recommended"
        problem = f"{what}. {reason[:1].upper()}{reason[1:].rstrip('.')}"
        super().__init__(program, problem, f"Try some: gogc=[{values}].")
        self.gogc = tuple(gogc)


@frozen
class Progress:
    """Progress of a measurement.

    Attributes:
        round: the number of the round; 0 is the warm-up.
        most: the largest number of rounds.
        is_fixed: whether all of these rounds are made in any case.
        side: the running side; empty: the round has ended.
        left_s: the estimated remaining time; None if unknown.
        folder: the folder of the logs.
        is_repeat: whether the run repeats one that other work disturbed.
        may_be_server: whether the first run may be a server, which does not end by itself: it takes
            long, or listens on a port.
        port: its port; None if unknown.
    """

    round: int
    most: int
    side: str
    left_s: float | None
    folder: Path
    is_fixed: bool = False
    is_repeat: bool = False
    may_be_server: bool = False
    port: int | None = None


def measure(
    command: Words | None = None,
    *,
    gogc: GogcValues | Present = PRESENT,
    memory_limit: SizeValues | Present = PRESENT,
    sides: Mapping[str, Words] | None = None,
    runs: int | None = None,
    serve_for: str | float | None = None,
    ready: str | None = None,
    load: Words | None = None,
    metric: Mapping[str, str] | None = None,
    metric_up: Mapping[str, str] | None = None,
    decides: str | None = None,
    stdin: str | os.PathLike[str] | None = None,
    timeout: str | float = "10m",
    logs: str | os.PathLike[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
    **facts: Unpack[Facts],
) -> Comparison:
    """Runs a program under several settings in turn, and compares the measured costs.

    The runs are made in rounds, each in random order, after one round that only warms up. Without
    settings, the present environment is compared with the recommendation from its first run; the
    prediction is made before the other runs.

    Args:
        command: the program and its arguments.
        gogc: the values of GOGC to try; the first is the baseline. None or "off" means off.
        memory_limit: the memory limits to try, in every combination with `gogc`.
        sides: commands by name, instead of one command under several settings.
        runs: the number of rounds. By default, rounds are made until one side is better, or both
            are within 2 %, but at most 20.
        serve_for: how long a server is measured, such as "30s"; then it is stopped.
        ready: the URL that answers when a server is ready, or a regular expression that its output
            matches then.
        load: the command that sends requests to the server.
        metric: figures in the output of the program or its load, as regular expressions by name;
            less is better.
        metric_up: the same for figures of which more is better.
        decides: the name of the figure that decides; by default the first of `metric`, or else
            of `metric_up`.
        stdin: the file that the program reads; by default it has no input.
        timeout: how long a run, or its load, may take.
        logs: the folder for the logs of all runs; by default a new one in the current folder. Runs
            already in it count, and further ones are added. Without a command they are only read,
            unless `runs` asks for more.
        progress: is called before each run and after each round.
        facts: facts about the program, as in `read`. If the program sets GOGC, the limit or a
            ballast itself, `gogc_now`, `memory_limit_now` and `ballast_now` state the present
            values.

    Raises:
        ProgramError: the program cannot be started, or fails under every setting.
        NoDataError: no other setting is recommended, and none was given.
        BadSettingError: an argument is not valid.
    """
    if runs is not None and runs < 1:
        raise BadSettingError("runs", str(runs), "a whole number, 1 or more")
    limit = os.environ.get("GOMEMLIMIT")
    # Sides that do not set these use the values of the environment.
    known: Any = {
        "gogc": os.environ.get("GOGC"),
        "memory_limit": None if not limit else gomemlimit_mib(limit) or "off",
        **{name.removesuffix("_now"): value for name, value in facts.items()},
    }
    given_settings(**known)
    if command is None and not sides:
        if logs is None:
            raise BadSettingError("command", "", "the program to measure")
        kept = Measurements.opened(Path(logs))
        if runs is None:
            return kept.comparison()
    else:
        figures = ({**(metric or {})}, {**(metric_up or {})})
        plan = plan_of(serve_for, ready, load, *figures, stdin, timeout, decides)
        trials = trials_of(command, gogc, memory_limit, sides)
        kept = _kept(logs, trials, plan, known)
    try:
        return _Experiment(kept, runs, progress or (lambda _: None)).comparison()
    except (ProgramError, NoDataError):
        files = [path for path in kept.folder.iterdir() if path.name != MANIFEST]
        if logs is None and not any(path.stat().st_size for path in files):
            shutil.rmtree(kept.folder)
        raise


def _kept(
    logs: str | os.PathLike[str] | None,
    trials: Sequence[Trial],
    plan: Plan,
    facts: Mapping[str, Any],
) -> Measurements:
    """Returns the measurements of a folder, without runs if it is new."""
    if logs is not None and (Path(logs) / MANIFEST).exists():
        kept = Measurements.opened(Path(logs))
        if any(run.round for run in kept.runs):
            kept.require_same(trials, plan)
            return kept
    if logs is not None:
        folder = Path(logs)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as err:
            raise BadSettingError("logs", str(logs), f"a folder ({err.strerror})") from err
        return Measurements(folder, trials, plan, facts)
    for number in count(1):
        with suppress(FileExistsError):
            folder = Path(f"measured-{number}")
            folder.mkdir()
            break
    return Measurements(folder, trials, plan, facts)


class _Experiment:
    """Makes the runs that are still missing."""

    def __init__(
        self, kept: Measurements, rounds: int | None, say: Callable[[Progress], None]
    ) -> None:
        self._kept, self._say = kept, say
        self._random = random.Random()
        # An interval for a fixed number of rounds is not valid for rounds that are added later.
        kept.fixed = rounds is not None and not any(run.round for run in kept.runs)
        kept.most = rounds or MOST_ROUNDS
        self._until_decided = rounds is None
        # By whether they are measured: a warm-up may take longer or shorter.
        self._took_s: dict[bool, list[float]] = {True: [], False: []}
        self._repeats = self._repeats_in_vain = 0

    def comparison(self) -> Comparison:
        """Makes the runs, and returns the sides compared."""
        self._warm_up()
        for number in range(self._kept.measurement.rounds + 1, self._kept.most + 1):
            if self._until_decided and self._kept.measurement.is_decided:
                break
            self._round(number)
            self._promise()
        return self._kept.comparison()

    def _warm_up(self) -> None:
        kept = self._kept
        self._warm_up_side(kept.trials[0])
        if kept.trials[0].label == NOW and len(kept.trials) == 1:
            self._add_advised()
        self._promise()
        for trial in kept.trials[1:]:
            self._warm_up_side(trial)
        if not any(self._can_run(trial) for trial in kept.trials[1:]):
            self._refuse(kept.trials[1:])

    def _warm_up_side(self, trial: Trial) -> None:
        known = [run for run in self._kept.runs if run.side == trial.label and run.warm_up]
        run = known[0] if known else self._make(trial, 0)
        if trial is self._kept.trials[0] and run.error is not None:
            self._refuse([trial])
        missing = None if run.error else self._kept.plan.missing(run.figures)
        if missing is not None:
            raise BadSettingError(
                "metric",
                f"{missing.name}={missing.pattern}",
                "an expression that matches the output of a run, which is in "
                + ", ".join(
                    map(str, sorted(self._kept.folder.glob(f"{Path(run.log).stem}.*")))
                ),
            )

    def _refuse(self, trials: Sequence[Trial]) -> None:
        """Ends the measurement, because there is nothing to compare.

        Raises:
            ProgramError: always.
        """
        failed = {run.side: run for run in self._kept.runs if run.error is not None}
        run = next(failed[trial.label] for trial in trials if trial.label in failed)
        problem, _, output = (run.error or "").partition("\n")
        where = "" if run.side == NOW else f" with {run.side}"
        raise ProgramError(Path(trials[0].words[0]).name, f"{problem}{where}", output=output)

    def _add_advised(self) -> None:
        """Adds the setting recommended from the baseline's first run as a side.

        Raises:
            NoChangeError: no other setting is recommended.
            NoDataError: no GC cycle ran.
        """
        kept = self._kept
        warm_up = kept.runs[0]
        first_run = kept.read(warm_up)
        if first_run.cycles.is_empty():
            ran = "" if warm_up.wall_s is None else f" in {duration(warm_up.wall_s)}"
            raise NoDataError.no_gctrace(kept.trials[0].words[0], ran)
        baseline = first_run.advice.baseline
        cause = baseline.other_cause
        is_disturbed = warm_up.disturbed and cause is not None and cause.is_long_pauses
        if is_disturbed:
            # Its pauses prove nothing: the rounds decide.
            baseline = replace(baseline, other_cause=None)
        first = recommend(baseline).row(0, named=True)
        if first["now"] or baseline.refused:
            present = baseline.now.gogc or 100.0
            reason = baseline.refused or first["why"] or "the present setting is the best"
            if baseline.refused and (wall_s := warm_up.wall_s) is not None:
                reason = f"{baseline.refused.rstrip('.')}; the run took {duration(wall_s)}"
            if is_disturbed:
                reason = f"{reason}. {_other_work(warm_up)}"
            raise NoChangeError(
                kept.trials[0].words[0],
                str(reason),
                (present, 2 * present),
                is_refused=baseline.refused is not None,
            )
        gogc, limit = first["gogc"], first["memory_limit_mib"]
        same_limit = limit == baseline.now.limit
        mib: SettingValue = None if same_limit else "off" if limit is None else float(limit)
        percent: SettingValue = "off" if gogc is None else float(gogc)
        words = kept.trials[0].words
        kept.trials.append(Trial(setting_label(percent, mib), words, percent, mib))

    def _promise(self) -> None:
        """Predicts every side from the baseline alone: from its first run that allows it.

        The first of all warms up, before the other sides run, but may be unlike the others.
        """
        first, *others = self._kept.trials
        known = self._kept.promises.values()
        if any(trial.words != first.words for trial in others) or any(row for row, _ in known):
            return
        last = [own for own in self._kept.runs if own.side == first.label and not own.error][
            -1:
        ]
        run = self._kept.read(last[0]) if last else None
        if run is None or run.is_empty:
            return
        baseline = run.advice.baseline
        for trial in others:
            self._kept.promises[trial.label] = expectation(baseline, _setting(trial, baseline))
        self._kept.save()

    def _can_run(self, trial: Trial) -> bool:
        last = [run for run in self._kept.runs if run.side == trial.label][-_MOST_FAILURES:]
        failures = sum(run.error is not None for run in last)
        return failures < _MOST_FAILURES and not (last and last[-1].warm_up and failures)

    def _round(self, number: int) -> None:
        trials = [trial for trial in self._kept.trials if self._can_run(trial)]
        self._random.shuffle(trials)
        made = {run.side for run in self._kept.runs if run.round == number}
        for trial in trials:
            if trial.label not in made:
                self._make(trial, number)
        self._tell(number, "")

    def _tell(self, number: int, side: str, **more: Any) -> None:
        kept = self._kept
        left = None
        if took_s := self._took_s[True] or self._took_s[False]:
            made = sum(run.round == number for run in kept.runs)
            left = fmean(took_s) * ((kept.most - number + 1) * len(kept.trials) - made)
        fixed = not self._until_decided
        self._say(Progress(number, kept.most, side, left, kept.folder, fixed, **more))

    def _make(self, trial: Trial, number: int) -> TrialRun:
        """Runs a side, once more if other work disturbed it, and keeps the quieter run."""
        kept = self._kept
        self._tell(number, trial.label)
        begin = time.monotonic()
        run = run_trial(
            trial,
            kept.plan,
            number,
            kept.log(trial, number),
            lambda port: self._tell(number, trial.label, may_be_server=not number, port=port),
        )
        helps = self._repeats < _FEW_REPEATS or 2 * self._repeats_in_vain < self._repeats
        if number and run.disturbed and run.error is None and helps:
            self._tell(number, trial.label, is_repeat=True)
            again = run_trial(trial, kept.plan, number, kept.log(trial, number, again=True))
            self._repeats += 1
            self._repeats_in_vain += again.disturbed
            run, other = sorted((run, again), key=_disturbance)
            for path in kept.folder.glob(f"{Path(other.log).stem}.*"):
                path.unlink()
        self._took_s[number > 0].append(time.monotonic() - begin)
        kept.runs.append(run)
        kept.save()
        return run


def _disturbance(run: TrialRun) -> float:
    foreign = run.foreign_cpus
    return math.inf if run.error is not None or foreign is None else foreign


def _other_work(run: TrialRun) -> str:
    return (
        f"Pauses were long, because other work took {run.foreign_cpus or 0.0:.1f} of "
        f"{os.cpu_count() or 1} CPUs meanwhile: measure on a quiet machine to be sure"
    )


def _setting(trial: Trial, baseline: Predictor) -> Setting:
    """Returns the setting of a side; values that it does not set are as in the baseline."""
    now = baseline.now
    if trial.gogc is not None:
        now = replace(now, gogc=None if isinstance(trial.gogc, str) else trial.gogc)
    if (limit := trial.memory_limit_mib) is not None:
        now = replace(now, limit=None if isinstance(limit, str) else limit)
    return now
