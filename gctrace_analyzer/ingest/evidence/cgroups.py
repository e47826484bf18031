"""Finds the unit, container and pod in the path of a control group."""

from __future__ import annotations

import re

_UNIT = re.compile(r"(?<![^/])[^/]+\.(?:service|scope|slice)(?=/|$)")
_CONTAINER = re.compile(r"(?:^|[-/:])([0-9a-f]{64})(?=\.scope|/|$)")
_POD = re.compile(
    r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})"
)
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")


def unit(path: str | None) -> str | None:
    """Returns the innermost systemd unit of a path."""
    names = units(path)
    return names[-1] if names else None


def units(path: str | None) -> list[str]:
    """Returns every systemd unit of a path, the innermost last."""
    return [_plain(name) for name in _UNIT.findall(path or "")]


def container_id(path: str | None) -> str | None:
    """Returns the container id: 64 hexadecimal digits for docker, containerd and CRI-O."""
    ids = _CONTAINER.findall(path or "")
    return ids[-1] if ids else None


def pod_uid(path: str | None) -> str | None:
    """Returns the uid of a Kubernetes pod; systemd slices have `_` instead of `-`."""
    match = _POD.search(path or "")
    return match[1].replace("_", "-") if match else None


def short_name(path: str) -> str:
    """Returns how to call a control group in a sentence: a path of Kubernetes fills three lines."""
    last = path.rstrip("/").rpartition("/")[2]
    container, uid = container_id(last), pod_uid(path)
    pod = f"pod {uid}"
    if container is not None:
        return f"container {container[:12]}" + (f" in {pod}" if uid else "")
    return pod if pod_uid(last) else path


def _plain(name: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name)
