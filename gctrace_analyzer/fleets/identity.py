"""The name of an input without secrets, and the service, pod or host that its path names."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from gctrace_analyzer.analysis.fleet.service_names import REPLICA_SUFFIX
from gctrace_analyzer.errors import BadSettingError

IDENTITY = (
    "service", "cluster", "region", "namespace", "pod", "container", "host", "unit",
)  # fmt: skip
"""The names that a pattern for paths may contain."""

_URL = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>)\]]+")
_SIGNED = re.compile(
    r"x-(amz|goog)-|^(sig|signature|se|sp|sv|sr|st|spr|token|key|expires|awsaccesskeyid|"
    r"googleaccessid|policy|key-pair-id)$|token|secret|password|credential|api.?key",
    re.IGNORECASE,
)
_RANDOM = "[bcdf-hj-np-tv-xz2-9]"
_PODS = (
    re.compile(
        r"(?:^|/)(?P<namespace>[^/_]+)_(?P<pod>[^/_]+)_[0-9a-f-]{32,36}/"
        r"(?P<container>[^/]+)/\d+\.log[^/]*$"
    ),
    re.compile(
        r"(?:^|/)(?P<pod>[^/_]+)_(?P<namespace>[^/_]+)_(?P<container>[^/]+)-[0-9a-f]{64}\.log[^/]*$"
    ),
    re.compile(
        rf"(?:^|/)(?P<pod>[^/]+-{_RANDOM}{{6,10}}-{_RANDOM}{{5}})/(?:[^/]+/)*(?P<container>[^/.]+)[^/]*$"
    ),
)
"""Paths in /var/log/pods and /var/log/containers of a Kubernetes node, and in folders named after a
pod of a Deployment."""

_COMPRESSED = r"(?:\.(?:gz|zst|xz|bz2))?"
_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_KEY")


def is_url(text: str) -> bool:
    """Returns whether `text` is a URL and not a local path."""
    return "://" in text


def public(url: str) -> str:
    """Returns a URL without user, password and query.

    The query without its signature may distinguish files, so a short digest of it is kept.

    >>> public("https://me:pw@logs.example/a.log?X-Amz-Signature=00ff")
    'https://logs.example/a.log'
    >>> public("logs/a.log")
    'logs/a.log'
    """
    if not is_url(url):
        return url
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    pairs = [pair for pair in parse_qsl(parts.query) if not _SIGNED.search(pair[0])]
    digest = hashlib.sha256(repr(sorted(pairs)).encode()).hexdigest()[:8]
    return f"{parts.scheme}://{host}{parts.path}" + (f"?{digest}" if pairs else "")


def without_secrets(text: str, url: str = "") -> str:
    """Returns a message without secrets: URLs are shortened, and credentials become `***`."""
    parts = urlsplit(url) if is_url(url) else None
    secrets = [parts.query, parts.netloc.rpartition("@")[0]] if parts else []
    if parts:
        secrets += [value for _, value in parse_qsl(parts.query)]
        secrets += [parts.password or ""]
    secrets += [os.environ.get(name, "") for name in _SECRETS]
    clean = _URL.sub(lambda match: public(match[0]), text)
    for secret in sorted(
        filter(lambda secret: len(secret) > 3, secrets), key=len, reverse=True
    ):
        clean = clean.replace(secret, "***")
    return clean


def pattern(text: str) -> re.Pattern[str]:
    """Returns a regular expression for a pattern such as `{service}/{pod}.log`.

    The pattern is matched against the end of a path. `*` stands for anything within one folder
    or name. A suffix such as `.gz` may follow.

    Raises:
        BadSettingError: the pattern has an unknown name, or the same one twice.
    """
    names: list[str] = []
    regex = ""
    for literal, star, name in re.findall(r"([^{}*]+)|(\*+)|\{(\w+)\}", text):
        if name:
            names.append(name)
        regex += re.escape(literal) or ("[^/]*" if star else f"(?P<{name}>[^/]+?)")
    wrong = [name for name in names if name not in IDENTITY or names.count(name) > 1]
    if wrong or not names or text.count("{") != len(names) or text.count("}") != len(names):
        raise BadSettingError(
            "id",
            text,
            "a pattern for paths such as '{service}/{pod}.log', with " + ", ".join(IDENTITY),
        )
    return re.compile(rf"(?:^|/){regex}{_COMPRESSED}$")


def identity(name: str, by: re.Pattern[str] | None) -> dict[str, str]:
    """Returns the identity that the path of an input gives; empty if it does not match.

    Without a pattern, only paths of Kubernetes pods are understood.

    >>> identity("logs/api/api-7d9f.log.gz", pattern("{service}/{pod}.log"))
    {'service': 'api', 'pod': 'api-7d9f'}
    >>> identity("prod_api-x2k9v_8f2d8a34-53d1-4bb5-8f0e-000000000001/app/0.log", None)
    {'namespace': 'prod', 'pod': 'api-x2k9v', 'container': 'app'}
    """
    known = (by,) if by else _PODS
    matches = (path.search(name.partition("?")[0]) for path in known)
    return next((match.groupdict() for match in matches if match), {})


def service_of(row: Mapping[str, object]) -> str | None:
    """Returns the service according to the log prefix; None if the prefix does not name it.

    It is the pod without the suffix that Kubernetes adds, with the container if its name differs
    (pods of several services may have it); else the unit or program.

    >>> service_of({"pod": "api-6d4cf56db6-x2k9v"}), service_of({"unit": "api.service"})
    ('api', 'api')
    >>> service_of({"pod": "api-0", "container": "api"})
    'api'
    >>> service_of({"pod": "db-0", "container": "app"})
    'db/app'
    """
    container, unit, ident = (row.get(name) for name in ("container", "unit", "ident"))
    pod = re.sub(REPLICA_SUFFIX, "", str(row.get("pod") or ""))
    if container and not re.fullmatch(r"[0-9a-f]{12,64}", str(container)):
        return f"{pod}/{container}" if pod not in ("", container) else str(container)
    if unit:
        return str(unit).removesuffix(".service")
    return str(ident or pod) or None
