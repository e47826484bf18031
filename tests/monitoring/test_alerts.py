"""The rules for Prometheus: on recordings of sick and of healthy programs, and in a real server."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest
import yaml

from gctrace_analyzer.analysis.metrics.live_from_goal import LIMIT_MOVES, TRIGGER
from gctrace_analyzer.analysis.rules.registry import RULES
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.timeline.thrashing import CALM_TIMES
from gctrace_analyzer.cli import main
from gctrace_analyzer.ingest.metrics.samples import NO_LIMIT
from gctrace_analyzer.prometheus.queries import QUERIES, written
from tests.conftest import ROOT
from tests.helpers.prometheus import binary, wait_until
from tests.helpers.scrapes import (
    GROWTH,
    HEALTHY,
    LIMIT,
    LONG_PAUSES,
    PAUSES,
    SICK,
    THRASH,
    TIGHT,
    Scrapes,
    of_corpus,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FIRING = 'ALERTS{alertstate="firing"}'
LONGEST_MIN, SHORT_MIN = 40, 20
MIB = 1 << 20


FILE = (ROOT / "docs/examples/rules.yml").read_text()
ALL_RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(FILE)["groups"] for rule in group["rules"]
]
RECORDS = {rule["record"]: rule["expr"] for rule in ALL_RULES if "record" in rule}
ALERTS = {
    f"{rule['alert']} {rule['labels']['severity']}": rule
    for rule in ALL_RULES
    if "alert" in rule
}


def test_each_alert_has_the_text_of_its_finding_and_the_commands_that_explain_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for alert in ALERTS.values():
        rule, texts = RULES[alert["labels"]["finding"]], alert["annotations"]
        assert texts["summary"].endswith(rule.meaning)
        assert texts["description"].endswith(rule.advice)
        page, _, anchor = texts["runbook"].partition("#")
        assert f"## {rule.id} {rule.name}" in (ROOT / page).read_text()
        assert anchor == f"{rule.id} {rule.name}".lower().replace(" ", "-")
        assert main(texts["explain"].split()[1:]) == 0
        assert rule.name in capsys.readouterr().out
        assert texts["command"].startswith("gctrace-analyze prometheus {{ $externalURL }}")


T = DEFAULT
_RUNS = T.server_min_per_s
_UNKNOWN_LIMIT = (_RUNS, LIMIT_MOVES, T.thrash_limited_share)
_GROWS = (
    3600 * T.alert_hours_to_limit, 3600, T.growth_min_share, 3600, T.growth_min_mib * MIB,
    T.growth_steady,
)  # fmt: skip
THRESHOLDS = {
    THRASH: (
        *(T.server_thrash_cycle_share, _RUNS, T.server_at_limit_share),
        *(T.metrics_thrash_room_unknown, *_UNKNOWN_LIMIT),
        *(0, T.server_at_limit_share, T.gc_cpu_bad, CALM_TIMES * T.metrics_thrash_room),
        *(T.server_thrash_gc_cpu_share, T.server_at_limit_share),
    ),
    TIGHT: (
        *(T.server_near_cycle_share, _RUNS, T.server_at_limit_share),
        *(T.server_near_cycle_share, *_UNKNOWN_LIMIT, T.fleet_limit_share),
    ),
    "GoGCHighCPU warning": (T.gc_cpu_warn,),
    "GoGCHighCPU critical": (T.gc_cpu_bad,),
    "GoGCMarkAssists warning": (T.assist_warn_cpu_share, T.assist_warn),
    GROWTH: (*_GROWS, *_GROWS, 1800),
    PAUSES: (T.stw_single_ms / 1000, T.stw_bad_ms / 1000, _RUNS),
}
"""The numbers in the condition of each alert, in their order."""


@pytest.mark.parametrize("alert", ALERTS)
def test_thresholds_are_those_of_the_findings(alert: str) -> None:
    numbers = re.findall(r"(?<=[<>*] )\d[\d.]*|\d[\d.]*(?= \*)", ALERTS[alert]["expr"])
    assert [float(number) for number in numbers] == pytest.approx(THRESHOLDS[alert])


def test_figures_are_those_that_a_fleet_is_asked_for() -> None:
    rate = {name: written(query, "", "5m") for name, (query, _) in QUERIES.items()}
    per_cycle = f"{rate['alloc_mib_per_s']} / {rate['gc_per_s']}"
    for record, query in {
        "go_gc_cycles:rate5m": rate["gc_per_s"],
        "go_gc_pause_seconds:mean5m": f"{rate['stw_share']} / {rate['gc_per_s']}",
        "go_memstats_alloc_bytes:rate5m": rate["alloc_mib_per_s"],
        "go_gc_room:ratio5m": f"{per_cycle} / {rate['heap_goal_mib']}",
        "go_gc_cpu:share5m": f"({rate['gc_cores']}) / {rate['cores']}",
        "go_gc_assist_cpu:share5m": f"{rate['assist_cores']} / {rate['cores']}",
        "go_gc_limiter:changes5m": rate["limiter_changes"],
        "go_gc_memory_limit_bytes": f"go_gc_gomemlimit_bytes < {NO_LIMIT:.3g}",
        "go_gc_memory_of_limit:ratio5m": f"({rate['go_memory_mib']}) / "
        f"(go_gc_gomemlimit_bytes < {NO_LIMIT:.3g})",
    }.items():
        assert RECORDS[f"instance:{record}"] == query
    live = RECORDS["instance:go_gc_heap_live_bytes"]
    assert live.count(f"go_memstats_next_gc_bytes - {per_cycle} / {TRIGGER}") == 2


def percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


NUMBERS = {
    "GoGCLimitThrash": [percent(DEFAULT.server_thrash_cycle_share)],
    "GoGCMemoryLimitTight": [
        percent(DEFAULT.server_near_cycle_share), percent(DEFAULT.fleet_limit_share),
    ],
    "GoGCHighCPU": [percent(DEFAULT.gc_cpu_warn), percent(DEFAULT.gc_cpu_bad)],
    "GoGCMarkAssists": [percent(DEFAULT.assist_warn_cpu_share), percent(DEFAULT.assist_warn)],
    "GoGCHeapReachesLimit": [f"{DEFAULT.alert_hours_to_limit:g} hours"],
    "GoGCLongPauses": [f"{DEFAULT.stw_single_ms:g} ms", f"{DEFAULT.stw_bad_ms:g} ms"],
}  # fmt: skip


@pytest.mark.parametrize("alert", ALERTS)
def test_the_page_about_alerts_has_their_numbers(alert: str) -> None:
    name = alert.split()[0]
    page = (ROOT / "docs/tasks/ci-alerts-dashboard.md").read_text()
    (row,) = (line for line in page.splitlines() if line.startswith(f"| `{name}`"))
    finding = RULES[ALERTS[alert]["labels"]["finding"]]
    assert finding.page.removeprefix("docs/") in row
    assert f"{within_min(alert)} min" in row
    assert all(number in row for number in NUMBERS[name])
    assert f"# {finding.id} {finding.name}. " in FILE


def test_recorded_figures_are_all_used() -> None:
    text = "".join(rule["expr"] for rule in ALL_RULES)
    shown = (ROOT / "docs/examples/dashboard.json").read_text()
    for record, expression in RECORDS.items():
        if record not in text:
            assert expression.split("[")[0] in shown, f"nothing uses {record}"


def test_promtool_accepts_the_rules() -> None:
    promtool = binary("promtool", "prometheus")
    command = [promtool, "check", "rules", "docs/examples/rules.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def run_rules(
    folder: Path, recordings: Iterable[Scrapes], *expected: tuple[str, float, list[str]]
) -> None:
    """Lets `promtool test rules` evaluate queries on recordings.

    Args:
        folder: where its files are written.
        recordings: what was scraped.
        expected: queries, the minute in which each is evaluated, and the labels of the results,
            all of which are 1.
    """
    promtool = binary("promtool", "prometheus")
    (folder / "rules.yml").write_text(FILE)
    tests = [
        {
            "expr": query,
            "eval_time": f"{round(60 * minute)}s",
            "exp_samples": [{"labels": labels, "value": 1} for labels in results],
        }
        for query, minute, results in expected
    ]
    series = [row for recording in recordings for row in recording.test_series()]
    document = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "15s", "input_series": series, "promql_expr_test": tests}],
    }
    # JSON is YAML.
    (folder / "test.yml").write_text(json.dumps(document))
    command = [promtool, "test", "rules", str(folder / "test.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[:4000]


def within_min(alert: str) -> int:
    """The minutes after which an alert fires, as the comment above it says."""
    name, severity = alert.split()
    pattern = (
        rf"Fires within(?:\s|#)+(\d+)(?:\s|#)+minutes\.\s+- alert: {name}\n(.*?)annotations"
    )
    alerts = re.findall(pattern, FILE, re.DOTALL)
    return next(int(minutes) for minutes, rest in alerts if f"severity: {severity}\n" in rest)


def firing(alert: str) -> str:
    name, severity = alert.split()
    return f'count(ALERTS{{alertname="{name}",severity="{severity}",alertstate="firing"}})'


def ever(alerts: Iterable[str]) -> list[str]:
    """The results of `EVER`."""
    pairs = (alert.split() for alert in alerts)
    return [f'{{alertname="{name}", severity="{severity}"}}' for name, severity in pairs]


EVER = f"group by (alertname, severity) (last_over_time({FIRING}[6h]))"


@pytest.mark.parametrize("name", SICK)
def test_alerts_of_a_sick_program_fire_in_time_and_no_others(name: str, tmp_path: Path) -> None:
    (recording,) = of_corpus(name)
    checks: list[tuple[str, float, list[str]]] = [
        (firing(alert), within_min(alert), ["{}"]) for alert in SICK[name]
    ]
    if recording.minutes < SHORT_MIN:
        recording = recording.lasting(LONGEST_MIN)
    checks.append((EVER, recording.minutes, ever(SICK[name])))
    run_rules(tmp_path, [recording], *checks)


def test_one_scrape_in_a_minute_is_enough(tmp_path: Path) -> None:
    (recording,) = of_corpus("alerts/thrashing")
    check = (firing(THRASH), within_min(THRASH), ["{}"])
    run_rules(tmp_path, [recording.thinned(4)], check)


def test_growth_into_the_limit_of_a_container_fires(tmp_path: Path) -> None:
    (recording,) = of_corpus("alerts/growing")
    unlimited = recording.without(LIMIT)
    inside = unlimited.in_container(512 * MIB)
    run_rules(tmp_path, [inside], (EVER, recording.minutes, ever([GROWTH])))
    run_rules(tmp_path, [unlimited], (EVER, recording.minutes, []))
    roomy = unlimited.in_container(4096 * MIB)
    run_rules(tmp_path, [roomy], (EVER, recording.minutes, []))


def test_a_low_gogc_under_a_roomy_limit_is_not_thrashing(tmp_path: Path) -> None:
    (recording,) = of_corpus("alerts/burning")
    check = f'ALERTS{{alertname=~"{THRASH.split()[0]}|{TIGHT.split()[0]}"}}'
    run_rules(tmp_path, [recording.with_limit(1024 * MIB)], (check, recording.minutes, []))


def test_ten_healthy_hours_are_silent(tmp_path: Path) -> None:
    recordings = [one for pattern in HEALTHY for one in of_corpus(pattern)]
    longest = max(one.minutes for one in recordings)
    run_rules(tmp_path, recordings, (EVER, longest, []))
    assert sum(one.minutes for one in recordings) >= 10 * 60


def test_programs_with_long_pauses_fire_that_alert_alone(tmp_path: Path) -> None:
    for pattern in LONG_PAUSES:
        for recording in of_corpus(pattern):
            lasting = recording.lasting(60)
            run_rules(tmp_path, [lasting], (EVER, lasting.minutes, ever([PAUSES])))


def test_healthy_programs_stay_silent_if_their_state_lasts(tmp_path: Path) -> None:
    recordings = [one.lasting(60) for pattern in HEALTHY for one in of_corpus(pattern)]
    run_rules(tmp_path, recordings, (EVER, 60, []))


def asked(url: str, what: str) -> Any:
    with urlopen(f"{url}/api/v1/{what}", timeout=10) as answer:
        return json.load(answer)["data"]


def states(url: str) -> dict[str, set[str]]:
    """The alerts of each job that are pending or firing."""
    shown: dict[str, set[str]] = {}
    for alert in asked(url, "alerts")["alerts"]:
        labels = alert["labels"]
        alerts = shown.setdefault(labels["job"], set())
        alerts.add(f"{labels['alertname']} {labels['severity']}")
    return shown


def test_a_real_server_evaluates_the_rules_without_an_error(backfilled: str) -> None:
    def evaluated() -> bool:
        groups = asked(backfilled, "rules")["groups"]
        return all(rule["health"] != "unknown" for group in groups for rule in group["rules"])

    wait_until(evaluated, "the rules are evaluated")
    groups = asked(backfilled, "rules")["groups"]
    errors = [rule.get("lastError") for group in groups for rule in group["rules"]]
    assert len(errors) == len(ALL_RULES)
    assert not any(errors)


def test_the_command_of_an_alert_explains_it(
    backfilled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wait_until(lambda: THRASH in states(backfilled)["thrashing-all"], "the alert is pending")
    alert = next(
        alert
        for alert in asked(backfilled, "alerts")["alerts"]
        if alert["labels"]["job"] == "thrashing-all"
        and f"{alert['labels']['alertname']} {alert['labels']['severity']}" == THRASH
    )
    texts = alert["annotations"]
    assert "GC takes 1" in texts["description"]
    assert "GOMEMLIMIT is 69MiB." in texts["description"]
    assert main(shlex.split(texts["command"])[1:]) == 0
    assert f"limit-thrash  {alert['labels']['finding']}" in capsys.readouterr().out
