"""The registry of rules: each rule's id, name, texts and function, by id and by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gctrace_analyzer.analysis.rules.finding import Evidence, Finding, page_of
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Facts = TypeVar("Facts")
"""What a rule looks at: `ProcessFacts`, `MemoryFacts`, `DeathFacts` or `OverallFacts`."""


@frozen
class Rule(Generic[Facts]):
    """A rule: when it matches, what that means and what to do.

    Attributes:
        id: `GC001` to `GC046`; never changes.
        name: what reports print, such as `limit-thrash`.
        meaning: the consequence for the program, in one sentence.
        condition_template: the condition, with `{t.gc_cpu_warn:.0%}` for the threshold of that
            name.
        advice: what to do, unless the evidence has better advice for its input.
        needs_template: the figures, observations or witness without which it is silent.
        contradicted_by: what would show that it is wrong, and where to look for that.
        source: the runtime source, issue, document or measurement that the rule is based on.
        explained_by: ids of the rules that cause this one when they match as well.
        function: returns the matches.
    """

    id: str
    name: str
    meaning: str
    condition_template: str
    advice: str
    needs_template: str
    contradicted_by: str
    source: str
    explained_by: tuple[str, ...]
    function: Callable[[Facts], Iterable[Evidence]]

    def condition(self, thresholds: Thresholds = DEFAULT) -> str:
        """Returns when the rule matches, with the numbers of `thresholds`."""
        return _filled(self.condition_template, thresholds)

    def needs(self, thresholds: Thresholds = DEFAULT) -> str:
        """Returns what the rule needs, with the numbers of `thresholds`."""
        return _filled(self.needs_template, thresholds)

    @property
    def page(self) -> str:
        """Where the rule is described: the path of the page in the repository, and its anchor."""
        return page_of(self.id, self.name)

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Returns the findings of this rule."""
        for evidence in self.function(facts):
            yield Finding(
                id=self.id,
                name=self.name,
                severity=evidence.severity,
                evidence=evidence.text,
                advice=evidence.advice or self.advice,
                source=self.source,
                figures=evidence.figures,
                process=evidence.process,
                start_s=evidence.start_s,
                end_s=evidence.end_s,
                examples=evidence.examples,
                at=evidence.at,
                headline=evidence.headline or self.meaning,
                explained_by=self.explained_by
                if evidence.explained_by is None
                else evidence.explained_by,
            )


def _filled(template: str, thresholds: Thresholds) -> str:
    # Reports write "10 %", Python's format "10%".
    return re.sub(r"(\d)%", r"\1 %", template.format(t=thresholds))


RULES: dict[str, Rule[Any]] = {}
"""Every rule by its id. Importing the package `rules` registers all of them."""


def rule(
    rule_id: str,
    name: str,
    *,
    meaning: str,
    condition: str,
    advice: str,
    needs: str,
    contradicted_by: str,
    source: str,
    explained_by: tuple[str, ...] = (),
) -> Callable[[Callable[[Facts], Iterable[Evidence]]], Rule[Facts]]:
    """Registers the decorated function as a rule; the arguments are described at `Rule`."""

    def register(function: Callable[[Facts], Iterable[Evidence]]) -> Rule[Facts]:
        if rule_id in RULES:
            message = f"{rule_id} is registered already, as {RULES[rule_id].name}"
            raise ValueError(message)
        registered = Rule(
            id=rule_id,
            name=name,
            meaning=meaning,
            condition_template=condition,
            advice=advice,
            needs_template=needs,
            contradicted_by=contradicted_by,
            source=source,
            explained_by=explained_by,
            function=function,
        )
        RULES[rule_id] = registered
        return registered

    return register


def find_rule(text: str) -> Rule[Any] | None:
    """Returns the rule with this id or name, in upper or lower case; None if there is none."""
    by_id = RULES.get(text.upper())
    return by_id or next((each for each in RULES.values() if each.name == text.lower()), None)
