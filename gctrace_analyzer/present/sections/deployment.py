"""A setting as text to paste: environment, Dockerfile, Kubernetes, systemd."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gctrace_analyzer.advise.prediction.model import Setting


GIB = 1024.0


def environment(setting: Setting, *, shown: bool = False) -> list[str]:
    """Returns the setting as environment variables.

    For people (`shown`), a limit of whole GiB is written in GiB, any other in MiB.
    """
    lines = [f"GOGC={'off' if setting.gogc is None else f'{setting.gogc:.0f}'}"]
    if setting.limit:
        whole = shown and setting.limit % GIB == 0
        size = f"{setting.limit / GIB:.0f}GiB" if whole else f"{setting.limit:.0f}MiB"
        lines.append(f"GOMEMLIMIT={size}")
    return lines


def manifests(setting: Setting) -> dict[str, str]:
    """Returns the setting to paste, for each kind of deployment."""
    lines = environment(setting)
    pairs = [line.split("=") for line in lines]
    return {
        "environment": "\n".join(f"export {line}" for line in lines),
        "dockerfile": "\n".join(f"ENV {line}" for line in lines),
        "kubernetes": "env:\n"
        + "\n".join(f'  - name: {name}\n    value: "{value}"' for name, value in pairs),
        "systemd": "[Service]\n" + "\n".join(f"Environment={line}" for line in lines),
    }
