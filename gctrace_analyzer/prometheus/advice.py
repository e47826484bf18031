"""What the samples of one process say, in three sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.errors import GctraceError
from gctrace_analyzer.present.sections.advice import as_text, setting_of
from gctrace_analyzer.present.services import Advised
from gctrace_analyzer.prometheus.read import record, run_of
from gctrace_analyzer.prometheus.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from gctrace_analyzer.api import ProgramFacts
    from gctrace_analyzer.prometheus.read import Question
    from gctrace_analyzer.prometheus.samples import Progress


def advised(
    asked: Question,
    progress: Callable[[Progress], None] | None = None,
    **facts: Unpack[ProgramFacts],
) -> Advised:
    """Returns the recommendation for the only process of a question.

    A process whose samples cannot be used gets a sentence that says why.
    """
    name = asked.targets[0].name
    try:
        with Recording(asked.name) as answers:
            record(answers, asked, progress)
            run = run_of(answers, **facts)
    except GctraceError as err:
        first = str(err).partition("\n")[0]
        return Advised(name, "no recommendation", "", f"Its samples cannot be used: {first}")
    problems = [each for each in run.findings().to_dicts() if each["severity"] != "ok"]
    headline = problems[0]["name"] if problems else "no problem found"
    if not run.advice.is_available:
        return Advised(name, headline, "", f"No recommendation: {run.advice.baseline.refused}.")
    best = run.recommend().row(0, named=True)
    settings = "no change" if best["now"] else as_text(setting_of(best))
    return Advised(name, headline, settings, best["why"] or "")
