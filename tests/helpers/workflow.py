"""The steps of a workflow of GitHub Actions, to run them here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path


def workflow(path: Path) -> dict[str, Any]:
    """Returns a workflow."""
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


def commands(path: Path, job: str) -> dict[str, str]:
    """Returns the commands of the steps of a job by their names."""
    steps = workflow(path)["jobs"][job]["steps"]
    return {step["name"]: step["run"] for step in steps if "run" in step}
