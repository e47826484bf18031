"""Lines as log collectors and loggers wrap them, by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

WRAPPERS: dict[str, Callable[[str], str]] = {
    "journald": "Feb 03 10:00:00 web-1 api[4242]: {}".format,
    "syslog": "<11>Feb  3 10:00:00 web-1 api[4242]: {}".format,
    "RFC 5424": "<11>1 2026-02-03T10:00:00.005Z web-1 api 4242 ID47 - {}".format,
    "CRI": "2026-02-03T11:00:00.005000123+01:00 stderr F {}".format,
    "kubectl": "[pod/api-7d9f-abcde/api] {}".format,
    "compose": "api-1  | {}".format,
    "Go log": "2026/02/03 10:00:00.005000 {}".format,
    "quoted": "> {}".format,
    "docker": lambda line: json.dumps({"log": line + "\n", "stream": "stderr"}),
    "slog": lambda line: json.dumps({"time": "2026-02-03T11:00:00Z", "msg": line}),
}
