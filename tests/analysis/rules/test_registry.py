"""The registry: every rule once, complete, and with texts that agree with the thresholds."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from string import Formatter
from typing import TYPE_CHECKING, Any

import pytest

from gctrace_analyzer.analysis.rules import diagnose
from gctrace_analyzer.analysis.rules.registry import RULES, Rule, find_rule, rule
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds, filled
from gctrace_analyzer.present.document import Heading, Sentences
from gctrace_analyzer.present.explain import explain_name
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = ROOT / "gctrace_analyzer" / "analysis" / "rules"
FIELDS = {field.name for field in fields(Thresholds)}


def mentioned(each: Rule[Any]) -> set[str]:
    """Returns the thresholds that the condition of a rule mentions."""
    names = (name for _, name, _, _ in Formatter().parse(each.condition) if name)
    return {re.split(r"[.\[]", name)[1] for name in names}


def changed(name: str) -> Thresholds:
    value: Any = getattr(DEFAULT, name)
    other = tuple(2 * part for part in value) if isinstance(value, tuple) else 2 * value + 1
    values: dict[str, Any] = {name: other}
    return replace(DEFAULT, **values)


MENTIONS = [
    (rule_id, name) for rule_id in sorted(RULES) for name in sorted(mentioned(RULES[rule_id]))
]


def test_every_id_is_registered() -> None:
    # Withdrawn: every report shows idle marking, the room of the heap and the allocation rate.
    withdrawn = {31, 34, 35}
    assert sorted(RULES) == [
        f"GC{number:03}" for number in range(1, 49) if number not in withdrawn
    ]
    assert all(each.id == rule_id for rule_id, each in RULES.items())


def test_every_rule_is_checked_exactly_once() -> None:
    ids = [each.id for each in diagnose.ALL_RULES]
    assert sorted(ids) == sorted(RULES)
    assert len({each.function for each in RULES.values()}) == len(RULES)


def test_names_are_unique() -> None:
    assert len({each.name for each in RULES.values()}) == len(RULES)


@pytest.mark.parametrize("rule_id", sorted(RULES))
def test_a_rule_has_all_its_texts_and_its_causes_are_other_rules(rule_id: str) -> None:
    each = RULES[rule_id]
    assert all((each.meaning, filled(each.condition), each.advice, each.source))
    # What it needs and what would contradict it are noun phrases: `explain` ends them.
    assert all(
        text and not text.endswith(".") for text in (filled(each.needs), each.contradicted_by)
    )
    for text in (each.meaning, filled(each.condition), each.advice):
        assert text[0].isupper() or text[0] == "("
        assert text.endswith(".")
    assert set(each.explained_by) <= set(RULES) - {rule_id}


@pytest.mark.parametrize("rule_id", sorted(RULES))
def test_the_text_of_a_rule_names_only_thresholds_that_exist(rule_id: str) -> None:
    assert mentioned(RULES[rule_id]) <= FIELDS
    assert "{" not in filled(RULES[rule_id].condition + RULES[rule_id].needs)


@pytest.mark.parametrize(("rule_id", "name"), MENTIONS)
def test_another_threshold_gives_another_text(rule_id: str, name: str) -> None:
    each = RULES[rule_id]
    assert filled(each.condition, changed(name)) != filled(each.condition)


NO_RULES = ("__init__", "registry", "finding", "diagnose", "headline_levels")
MODULES = [path for path in sorted(PACKAGE.glob("*.py")) if path.stem not in NO_RULES]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_every_threshold_that_a_module_uses_is_in_the_text_of_one_of_its_rules(
    path: Path,
) -> None:
    used = set(re.findall(r"\b(?:t|thresholds)\.(\w+)", path.read_text())) & FIELDS
    module = f"gctrace_analyzer.analysis.rules.{path.stem}"
    own = [each for each in RULES.values() if each.function.__module__ == module]
    assert own
    assert used <= set().union(*map(mentioned, own))


def test_an_id_cannot_be_registered_twice() -> None:
    register = rule(
        "GC001",
        "again",
        meaning="Again.",
        condition="Again.",
        advice="Again.",
        needs="nothing",
        contradicted_by="nothing",
        source="test",
    )
    with pytest.raises(ValueError, match="GC001 is registered already, as high-gc-cpu"):
        register(lambda facts: ())


@pytest.mark.parametrize("text", ["GC016", "gc016", "limit-thrash", "Limit-Thrash"])
def test_a_rule_is_found_by_its_id_and_by_its_name(text: str) -> None:
    found = find_rule(text)
    assert found is not None
    assert found.id == "GC016"


def test_an_unknown_rule_is_not_found() -> None:
    assert find_rule("limit-trash") is None


def test_explaining_by_name_is_explaining_by_id() -> None:
    assert explain_name("limit-thrash") == explain_name("GC016") is not None
    title, parts = explain_name("assist-pressure") or ()
    assert title == Heading("GC005 assist-pressure")
    assert isinstance(parts, Sentences)
    assert [row.label for row in parts.rows] == [
        "meaning",
        "what to do",
        "reported if",
        "",
        "needs",
        "disproved by",
        "caused by",
        "source",
    ]
    assert parts.rows[-1].text.startswith("golang/go#40225")


def test_the_page_of_findings_keeps_the_spelling_of_go_names() -> None:
    """Sentences begin with a capital letter, and names such as GOGC stay as they are."""
    texts = " ".join(each.meaning for each in RULES.values())
    assert "GOMAXPROCS" in texts
    assert not re.search(r"\b(gogc|gomaxprocs|gomemlimit|cpu|Gomaxprocs)\b", texts)
