"""Lines as log collectors and loggers wrap them, by name."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
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

PREFIXES = {
    "AppVeyor": "[00:11:{s:02}] ",
    "Jenkins": "00:11:{s:02}  ",
    "Jenkins with dates": "[2023-01-01T00:11:{s:02}.123Z] ",
    "GitLab": "2024-05-22T12:35:{s:02}.107123Z 01E ",
    "TeamCity": "[12:34:{s:02}]W:\t [Step 1/1] ",
    "GitHub": "2024-01-01T00:00:{s:02}.1234567Z ",
    "Fly": "2022-01-01T00:00:{s:02}Z app[3287110f] lhr [info]",
    "DigitalOcean": "[api] [2022-01-01 00:00:{s:02}] ",
    "Render": "Jan 1 12:00:{s:02} AM  ",
    "logcat": "01-01 12:00:{s:02}.123  1234  1250 E GoLog   : ",
    "pm2": "0|api      | ",
    "Drone": "[app:{s}] ",
    "ts": "Jan 01 12:00:{s:02} ",
    "ts -i": "00:00:{s:02} ",
    "ts %.s": "16409952{s:02}.123456 ",
    "date": "Mon Jan  1 12:00:{s:02} UTC 2024: ",
    "klog": "I0101 12:00:{s:02}.123456       1 main.go:42] ",
    "zerolog": "2024-01-01T12:00:{s:02}Z INF ",
    "logrus": "INFO[00{s:02}] ",
    "geth": "INFO [01-01|12:00:{s:02}.123] ",
    "swarm": "api.1.abcdefghij0123456789klmno@node1    | ",
    "grep": "api.log:{s}:",
    "cat -n": "     {s}\t",
    "diff": "+",
    "Lambda": "2024-01-01T12:00:{s:02}.123Z\t",
    "aws logs tail": "2024-01-01T12:00:{s:02}.123000+00:00 2024/01/01/[$LATEST]abcdef0123456789 ",
    "Heroku": "2024-01-01T12:00:{s:02}.123456+00:00 app[web.1]: ",
    "Cloud Foundry": "   2024-01-01T12:00:{s:02}.12+0000 [APP/PROC/WEB/0] ERR ",
    "Nomad": "    2024-01-01T12:00:{s:02}.123Z [INFO]  client: ",
    "foreman": "12:00:{s:02} api.1  | ",
    "k9s": "api 2024-01-01T12:00:{s:02}.123456789Z ",
    "stern": "api-7d9f5c6b8-x2x4z › api ",
    "kubetail": "[api-7d9f5c6b8-x2x4z] ",
    "rsyslog": "2024-01-01T12:00:{s:02}.123456+00:00 host1 api[123]: ",
    "svlogd": "2024-01-01_12:00:{s:02}.12345 ",
}
"""What CI systems, platforms and tools write before each line; `s` is a number."""

COLLECTORS = {
    "bare": "{line}",
    "docker compose": "api-1  | {line}",
    "kubectl logs --prefix": "[pod/api-7d9f8b6c5d-x2x4z/api] {line}",
    "CRI": "{at:%Y-%m-%dT%H:%M:%S.%f}123Z stderr F {line}",
    "kubectl logs --timestamps": "{at:%Y-%m-%dT%H:%M:%S.%f}123Z {line}",
    "journalctl -o short-iso": "{at:%Y-%m-%dT%H:%M:%S}+0000 web-1 server[4242]: {line}",
    "journalctl -o short": "{at:%b %d %H:%M:%S} web-1 server[4242]: {line}",
    "syslog RFC 3164": "<30>{at:%b %d %H:%M:%S} web-1 server[4242]: {line}",
    "syslog RFC 5424": "<30>1 {at:%Y-%m-%dT%H:%M:%S.%f}Z web-1 server 4242 - - {line}",
    "Go's log package": "{at:%Y/%m/%d %H:%M:%S} {line}",
    "klog": "I{at:%m%d %H:%M:%S.%f}    4242 main.go:57] {line}",
    "logcli": '{at:%Y-%m-%dT%H:%M:%SZ} {{app="api", pod="api-7d9f8b6c5d-x2x4z"}} {line}',
    "CloudWatch export": "{at:%Y-%m-%dT%H:%M:%S.000Z} {line}",
    "Fluent Bit": '[{number}] kube.api: [[{at:%s}.000000000, {{}}], {{"log"=>"{line}"}}]',
    "docker json-file": '{{"log":"{html}\\n","stream":"stderr",'
    '"time":"{at:%Y-%m-%dT%H:%M:%S.%f}Z"}}',
    "zap": '{{"level":"info","ts":{at:%s}.{at:%f},"caller":"main.go:57","msg":"{json}"}}',
    "zerolog": '{{"level":"info","time":"{at:%Y-%m-%dT%H:%M:%SZ}","message":"{json}"}}',
    "journalctl -o json": '{{"__CURSOR":"s=0a;i={number:x}","__REALTIME_TIMESTAMP":"{at:%s%f}",'
    '"__MONOTONIC_TIMESTAMP":"{number}000","_BOOT_ID":"0123456789abcdef0123456789abcdef",'
    '"_HOSTNAME":"web-1","_PID":"4242","_COMM":"server","_EXE":"/usr/bin/server","PRIORITY":"6",'
    '"_SYSTEMD_UNIT":"server.service","_TRANSPORT":"stdout","MESSAGE":"{json}"}}',
}
"""What log collectors make of a line; `json` and `html` are its escaped text, `at` is its time."""

_BEGIN = datetime(2026, 2, 3, tzinfo=UTC)


def collected(line: str, collector: str, number: int) -> str:
    """Returns the line as a log collector writes it; each line is 40 ms later than the one before."""
    text = json.dumps(line)[1:-1]
    return COLLECTORS[collector].format(
        line=line,
        at=_BEGIN + timedelta(milliseconds=40 * number),
        number=number,
        json=text,
        html=text.replace(">", "\\u003e"),
    )
