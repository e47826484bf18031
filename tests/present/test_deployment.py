"""Recommended settings as configuration files."""

from __future__ import annotations

from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.present.sections.advice import manifests


def test_settings_are_printed_as_configuration() -> None:
    made = manifests(str(Setting(None, 921.6)))
    assert made["environment"] == "export GOGC=off\nexport GOMEMLIMIT=922MiB"
    assert '  - name: GOMEMLIMIT\n    value: "922MiB"' in made["kubernetes"]
    assert made["systemd"].startswith("[Service]\nEnvironment=GOGC=off")
