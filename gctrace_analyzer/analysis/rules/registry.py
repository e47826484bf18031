"""The registry of rules: each rule's id, name, texts and function, by id and by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, fields
from typing import Any, Generic, TypeVar

from gctrace_analyzer.analysis.rules.finding import Evidence, Finding, page_of
from gctrace_analyzer.errors import nearest
from gctrace_analyzer.frozen import frozen

Facts = TypeVar("Facts")
"""What a rule looks at: `ProcessFacts`, `MemoryFacts`, `DeathFacts` or `OverallFacts`."""


@frozen
class RuleTexts:
    """The texts about a rule. As `@rule(…)`, it registers the function that it decorates.

    Attributes:
        id: `GC001` to `GC048`; never changes.
        name: what reports print, such as `limit-thrash`.
        meaning: the consequence for the program, in one sentence.
        condition: when the rule matches, with `{t.gc_cpu_warn:.0%}` for the threshold of that
            name (see `filled`).
        advice: what to do, unless the evidence has better advice for its input.
        needs: the figures, observations or evidence that the rule requires, with thresholds.
        contradicted_by: what would prove the finding wrong, and where to look for it.
        source: the runtime source, issue, document or measurement that the rule is based on.
        explained_by: ids of the rules that cause this one when they match as well.
    """

    id: str
    name: str
    meaning: str
    condition: str
    advice: str
    needs: str
    contradicted_by: str
    source: str
    explained_by: tuple[str, ...] = ()

    def __call__(self, function: Callable[[Facts], Iterable[Evidence]]) -> Rule[Facts]:
        """Registers the function as a rule."""
        if self.id in RULES:
            message = f"{self.id} is registered already, as {RULES[self.id].name}"
            raise ValueError(message)
        texts = {text.name: getattr(self, text.name) for text in fields(self)}
        registered = RULES[self.id] = Rule(**texts, function=function)
        return registered

    @property
    def page(self) -> str:
        """The path of the page that describes the rule, with its anchor."""
        return page_of(self.id, self.name)


@frozen
class Rule(RuleTexts, Generic[Facts]):
    """A rule: its texts, and the function that returns its matches."""

    function: Callable[[Facts], Iterable[Evidence]] = field(kw_only=True)

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Returns the findings of this rule."""
        for evidence in self.function(facts):
            own = {known.name: getattr(evidence, known.name) for known in fields(evidence)}
            own["advice"] = own["advice"] or self.advice
            own["headline"] = own["headline"] or self.meaning
            if evidence.explained_by is None:
                own["explained_by"] = self.explained_by
            yield Finding(**own, id=self.id, name=self.name, source=self.source)


RULES: dict[str, Rule[Any]] = {}
"""Every rule by its id. Importing the package `rules` registers all of them."""


rule = RuleTexts


def find_rule(text: str) -> Rule[Any] | None:
    """Returns the rule with this id or name, however it is written; None if there is none."""
    name = "-".join(text.lower().split())
    by_id = RULES.get(text.upper())
    return by_id or next((rule for rule in RULES.values() if rule.name == name), None)


def nearest_name(text: str, names: Iterable[str]) -> str | None:
    """Returns the name most similar to a mistyped one; for an id there is none."""
    return None if re.fullmatch(r"(?i)gc-?\d+", text) else nearest(text, names)
