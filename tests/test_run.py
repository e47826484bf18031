"""What Python users hold: how a run shows, documents and exports itself."""

from __future__ import annotations

import inspect
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pandas as pd
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.cli.main import main
from tests.conftest import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

LOG = str(SAMPLES / "leak-into-limit-go1.24.log")


def test_help_says_what_each_table_has() -> None:
    for name in schema.LOG_TABLES:
        assert schema.ABOUT[name] in (inspect.getdoc(vars(gca.Run)[name]) or ""), name


def test_help_says_what_each_plot_shows() -> None:
    plots = type(gca.read(LOG).plot)
    for name in get_args(schema.PlotName):
        assert (inspect.getdoc(vars(plots)[name]) or "").startswith("Returns the plot "), name


def test_help_shows_a_signature_that_can_be_read() -> None:
    assert len(str(inspect.signature(gca.Run))) < 200


def test_a_table_cannot_be_replaced() -> None:
    run = gca.read(LOG)
    with pytest.raises(AttributeError, match="no setter"):
        run.cycles = run.cycles.head()


def test_metrics_are_the_cycles_with_derived_columns() -> None:
    run = gca.read(LOG)
    assert run.metrics.equals(gca.add_metrics(run.cycles), null_equal=True)


@pytest.mark.parametrize("suffix", ["json", "md"])
def test_a_run_exports_what_the_command_line_writes(suffix: str, tmp_path: Path) -> None:
    run, path = gca.read(LOG), tmp_path / f"report.{suffix}"
    assert main([LOG, "-o", str(path)]) == 0
    text = run.to_json() if suffix == "json" else run.to_markdown()
    assert path.read_text().startswith(text)


def test_a_run_exports_a_page_with_its_figures() -> None:
    run = gca.read(LOG)
    page = run.to_html(theme="dark")
    assert page.startswith("<!doctype html>")
    assert "GOMEMLIMIT" in page
    assert json.loads(run.to_json())["summary"]["cycles"] == len(run.cycles)


def test_figures_print_as_the_report_at_a_prompt_too() -> None:
    figures = gca.read(LOG).summary()
    assert repr(figures) == str(figures)


def test_numbers_and_durations_of_numpy_and_pandas_are_taken() -> None:
    run = gca.read(LOG)
    untyped: Any = run
    assert untyped.whatif(gogc=np.int64(50))["gogc"].to_list() == [50]
    assert untyped.whatif(memory_limit=np.float32(512))["memory_limit_mib"].to_list() == [512]
    assert run.windows(pd.Timedelta("1s")).equals(run.windows("1s"))
    part = run.between(timedelta(seconds=1), pd.Timedelta("2s"))
    assert part.cycles.equals(run.between("1s", "2s").cycles)


def test_sides_can_be_named_as_the_documentation_names_them() -> None:
    assert repr(gca.compare(before=LOG, after=LOG)) == repr(gca.compare(LOG, LOG))


def test_completion_offers_what_users_call() -> None:
    names = dir(gca.read("samples/steady-go1.26.log"))
    assert {"cycles", "findings", "plot", "to_html"} <= {*names}
    assert not {"analysis", "with_notes"} & {*names}
