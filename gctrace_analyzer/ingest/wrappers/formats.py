"""Defines the log formats that wrap a line in a text prefix, each once.

A pattern describes the text before the message. Its groups have the names of the columns they
fill: `at` (a timestamp), `epoch_s` or `monotonic_s` or `monotonic_us`, `host ident log_pid unit
container container_id pod namespace stream`, and `tag` (CRI: `P` for a partial line).
Formats are tried in this order: if two patterns match a line, the more specific one comes first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from gctrace_analyzer.ingest.gctrace.patterns import HEADS, MODERN_HEAD

_ISO = (
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?"
    r"(?: ?(?:Z|UTC|(?:[CEW]ES?|[EP][SD]|M[SD]|CD|JS|KS|AE[SD]|NZ[SD]|SG|HK)T\b|MSK\b|"
    r"[+-]\d\d:?\d\d))?"
)
LETTER = "[A-Za-zÀ-ɏЀ-ӿ]"
"""A letter of the languages that write months and weekdays with an alphabet."""
MONTH = rf"(?:{LETTER}{{3,6}}|\d{{1,2}}[月월])"
WEEKDAY = rf"(?:{LETTER}{{2,4}}|[一-鿿가-힣])\.?"
"""Names of months and weekdays as the C library abbreviates them."""
_SHORT = rf"{MONTH}\.? +\d{{1,2}} (?:\d{{4}} )?\d\d:\d\d:\d\d(?:[.,]\d+)?"
_FULL = (
    rf"{WEEKDAY} \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? (?:[A-Z]{{2,5}}|"
    r"[+-]\d\d(?::?\d\d)?)"
)
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_HALF_DAY = (
    r"(?:\d{1,2}/\d{1,2}/\d{4},?|(?:[A-Z][a-z]{2}, )?[A-Z][a-z]{2} +\d{1,2}(?:,? \d{4})?,?) "
    r"\d{1,2}:\d\d:\d\d(?:\.\d+)? (?:[AP]M|[ap]m)"
)
_DATED = (
    rf"\d{{1,2}}[./]\d{{1,2}}[./]\d{{4}},? {_CLOCK}|"
    rf"\d{{4}}\.\d\d\.\d\d {_CLOCK}|"
    rf"\d{{1,2}} [A-Z][a-z]{{2}} \d{{4}} {_CLOCK}|"
    rf"\d{{1,2}}-[A-Z][a-z]{{2}}-\d{{4}} {_CLOCK}|"
    rf"[A-Z][a-z]{{2}}, \d{{1,2}} [A-Z][a-z]{{2}} \d{{4}} {_CLOCK}"
    r"(?: (?:[A-Z]{2,5}|[+-]\d{4}))?|"
    rf"[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} +\d{{1,2}} {_CLOCK} (?:[A-Z]{{2,5}} )?\d{{4}}"
)
"""Other dates. Dates with slashes are readable if one of the numbers cannot be a month."""
_KIBANA = r"[A-Z][a-z]{2} \d{1,2}, \d{4} @ \d\d:\d\d:\d\d(?:\.\d+)?"
# Seconds, milliseconds, microseconds or nanoseconds since 1970, of the years 2001 to 2286.
_EPOCH = r"(?:\d{19}|\d{16}|\d{13}|\d{10})(?:\.\d{1,9})?"
# One or two digits and a colon are the hour of a time, as in glog's prefix after a timestamp.
_NAME = r"(?:\d{3}|\d{0,2}[^\s\[\]:|\d])[^\s\[\]:|]*"
_IDENT = rf"(?P<ident>{_NAME})(?: ?\[(?P<log_pid>\d+)\])?: ?"
_PRI = r"(?:<\d{1,3}>)?"
# Linux prints the caller's thread or CPU if built to; newer dmesg aligns it: `[   T123] `.
_CALLER = r"(?: ?\[ *[CT]\d+ *\])?"
_PRINTK = rf"\[ *(?P<monotonic_s>\d+\.\d{{3,9}})(?: *<[ \d.]*>)? *\]{_CALLER} "
_LEVEL = r"(?:emerg|alert|crit|err|error|warn|warning|notice|info|debug)"
# OpenWrt's logread prints facility and level in the place of the host.
_FACILITY = r"(?:kern|user|mail|daemon|auth(?:priv)?|syslog|cron|local[0-7])"
_HOST = rf"(?:{_FACILITY}\.{_LEVEL}|(?P<host>[^\s\[\]|]*[^\s\[\]:|]))"
_SEVERITY = r"\[?(?:[DIWEFNAT]|TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\]?:?"
RECORD = f"(?:{'|'.join(head for head, _ in HEADS)})"
"""Beginning of the runtime's lines."""
# Names to which Kubernetes appends a random text, or the number in a stateful set.
_POD = r"(?P<pod>[a-z0-9][a-z0-9.-]*-[a-z0-9]{1,10})"
_NAMESPACE = r"(?P<namespace>[a-z0-9-]+)"
_ANY_CONTAINER = r"(?P<container>[a-z0-9][a-z0-9-]*)"
# No name that begins with `in`, to exclude `kube-proxy invoked oom-killer`, and not the `gc` of
# a record that directly follows the name of a pod.
_CONTAINER = r"(?P<container>(?:[a-fhj-z0-9]|i[a-mo-z0-9]|g[abd-z0-9-]|gc[a-z0-9-])[a-z0-9-]*)"
_NO_NAME = (
    r"fatal error:|runtime:|panic:|(?:memory|memory\+swap|swap|kmem): usage|oom-kill:|Mem-Info:|"
    r"CPU: \d|CPU \d+:|RequestId:|"
    r"\w*(?:Alloc|Sys|Idle|Inuse|Released|Objects|NextGC|NumGC|LastGC): *\d|"
    r"(?:Mallocs|Frees|Lookups|PauseTotalNs|NumForcedGC|GCCPUFraction): *\d|"
    r"(?:alloc|sys|mallocs|frees|lookups|(?:total|heap|stack|other|gc|next|num)-[a-z-]+): \d"
)
"""Beginnings of messages that look like the name of a program and a colon."""


@dataclass(frozen=True)
class Wrapper:
    """One log format.

    Attributes:
        name: what users call it.
        pattern: describes the text before the message.
        message: describes how the message must begin, for a prefix that could be any text. Such
            a format is used only where most records have it.
        before_name: describes the text before the names of host and program, for a prefix that
            ends with them. Text that starts a message (`NO_NAME`) is kept.
    """

    name: str
    pattern: str
    message: str = ""
    before_name: str = ""

    @cached_property
    def regex(self) -> str:
        """The pattern, anchored, as a regular expression for Polars."""
        return f"^(?:{ascii_only(self.pattern)}){ascii_only(self.message)}"

    @cached_property
    def cutting(self) -> str:
        """The pattern with the prefix as the group `wrapping`."""
        return f"^(?P<wrapping>{ascii_only(self.pattern)}){ascii_only(self.message)}"

    @cached_property
    def unless(self) -> str:
        """A regular expression for Polars: lines that match it do not have this prefix."""
        return f"^(?:{ascii_only(self.before_name)}(?:\\S+ )?(?:{_NO_NAME}))"

    @cached_property
    def _compiled_unless(self) -> re.Pattern[str]:
        return re.compile(self.unless)

    def matches(self, text: str) -> bool:
        """Returns whether a line has this prefix."""
        if not self.compiled.match(text):
            return False
        return not (self.before_name and self._compiled_unless.match(text))

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The regular expression for Python, which compiles it faster."""
        return re.compile(self.regex)


_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": r" \t"}


def ascii_only(pattern: str) -> str:
    r"""Returns the pattern with ASCII classes, because Unicode ones are slow to compile."""
    pieces, inside, at = [], False, 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            letter = pattern[at + 1]
            if letter in _CLASSES:
                pieces.append(_CLASSES[letter] if inside else f"[{_CLASSES[letter]}]")
            else:
                pieces.append(r"[^ \t]" if letter == "S" else char + letter)
            at += 2
            continue
        if char == "[" and not inside:
            inside = True
        elif char == "]" and inside:
            inside = False
        pieces.append(char)
        at += 1
    return "".join(pieces)


WRAPPERS = (
    Wrapper("CRI", rf"(?P<at>{_ISO}) (?P<stream>stdout|stderr) (?P<tag>[PF])(?::\S*)? ?"),
    Wrapper("GitLab CI", rf"(?P<at>{_ISO}) \d\d[OE](?:[+ ]|$)"),
    Wrapper(
        "kubectl logs --prefix",
        rf"\[(?:pod/)?(?P<pod>[a-z0-9][^/\s\]]*)/(?P<container>[^/\s\]]+)\] (?:(?P<at>{_ISO}) )?",
    ),
    Wrapper(
        "syslog RFC 5424",
        rf"(?:\d+ )?<\d{{1,3}}>1 (?P<at>{_ISO}|-) (?P<host>\S+) (?P<ident>\S+) "
        rf"(?P<log_pid>\S+) \S+ "
        # Heroku's drains leave out the structured data.
        r'(?:(?:-|(?:\[(?:[^\]"\\]|"(?:[^"\\]|\\.)*"|\\.)*\])+)(?: \ufeff?|$))?',
    ),
    Wrapper(
        "Fluent Bit",
        r"\[\d+\] (?P<ident>[^\s:]+): \[\[?(?P<epoch_s>\d{9,10}\.\d{1,9}), (?:\{[^{}]*\}\], )?"
        r'\{(?:[^"]|"[^"]*"=>"[^"]*", )*"(?:log|message|MESSAGE)"=>"',
    ),
    # A record that lost its line end is not the name of a job.
    Wrapper("GitHub Actions", rf"[^\t>]+\t[^\t]+\t\ufeff?(?P<at>{_ISO}) "),
    Wrapper(
        "Papertrail",
        rf"\d+\t(?P<at>{_ISO})\t{_ISO}\t\d+\t(?P<host>[^\t]*)\t[^\t]*\t[^\t]*\t[^\t]*\t"
        r"(?P<ident>[^\t]*)\t",
    ),
    Wrapper("aws logs", r"EVENTS\t(?P<epoch_s>\d{13})\t"),
    Wrapper(
        "journalctl -o short-full",
        rf"(?P<at>{_FULL}) {_HOST} {_IDENT}",
        before_name=f"{_FULL} ",
    ),
    Wrapper("Heroku", rf"(?P<at>{_ISO}) (?P<stream>app|heroku)\[(?P<container>[\w.-]+)\]: "),
    Wrapper("logcli", rf"(?P<at>{_ISO})\s+\{{(?P<labels>[^{{}}=]*=[^{{}}]*)\}}\s+"),
    Wrapper(
        "aws logs tail", rf"(?P<at>{_ISO}) (?P<stream>[^\s:/\[]+(?:/[^\s/]+)*/[^\s/]*[\]\w]) "
    ),
    Wrapper(
        "fluentd",
        r"(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [+-]\d{4}) (?P<ident>[\w.*-]+): ",
    ),
    # Python's logging, which journald's format would read as a host and a program.
    Wrapper("timestamp", rf"\[?(?P<at>{_ISO})\]? {_SEVERITY}[ \t]+"),
    Wrapper(
        "journalctl -o short-iso",
        rf"{_PRI}(?P<at>{_ISO}) {_HOST} {_IDENT}",
        before_name=f"{_PRI}{_ISO} ",
    ),
    # Before syslog, which would read PM as the host name.
    Wrapper("timestamp", rf"\[?(?P<at>{_HALF_DAY})\]?[ \t]+"),
    Wrapper(
        "syslog", rf"{_PRI}(?P<at>{_SHORT}) {_HOST} {_IDENT}", before_name=f"{_PRI}{_SHORT} "
    ),
    Wrapper("syslog", rf"{_PRI}(?P<at>{_SHORT}) {_IDENT}", before_name=f"{_PRI}{_SHORT} "),
    Wrapper(
        "journalctl -o short-unix", rf"(?P<epoch_s>\d{{9,10}}\.\d{{3,6}}) {_HOST} {_IDENT}"
    ),
    Wrapper(
        "journalctl -o short-monotonic",
        # `short-delta` adds the time since the previous message; the first has blanks instead.
        rf"\[ *(?P<monotonic_s>\d+\.\d{{6}})(?: *<[ \d.]*>)? *\] {_HOST} {_IDENT}",
    ),
    Wrapper("dmesg -x", rf"(?:kern|user|daemon|syslog|auth) *: *{_LEVEL} *: *(?:{_PRINTK})?"),
    Wrapper("Talos dmesg", rf"(?:kern|user|daemon|syslog): *{_LEVEL}: \[(?P<at>{_ISO})\]: "),
    Wrapper("/dev/kmsg", r"\d+,\d+,(?P<monotonic_us>\d+),[-c+][^;]*;"),
    # Output of a virtual machine's kernel as it shuts down, in the log of its host.
    Wrapper(
        "vmware.log",
        rf"(?P<at>{_ISO})(?:\|.*?| [A-Z][a-z]\(\d+\)\+? \S+ - )Guest: {_PRI}(?:{_PRINTK})?",
    ),
    Wrapper(
        "dmesg -T",
        rf"\[(?P<at>{WEEKDAY} {MONTH}\.? +\d+ \d\d:\d\d:\d\d \d{{4}})(?: *<[ \d.]*>)?\]"
        rf"{_CALLER} ",
    ),
    # No machine runs for 30 years, so these are seconds since 1970.
    Wrapper("timestamp", r"\[(?P<epoch_s>1\d{9}\.\d{1,9})\](?:[ \t]+|: )"),
    Wrapper("dmesg", rf"{_PRI}{_PRINTK}"),
    Wrapper("dmesg -H", rf"{_PRI}\[(?: *[+<] *\d+\.\d+>?|{MONTH} ?\d+ \d\d:\d\d)\] "),
    Wrapper(
        "docker service logs",
        r"(?P<container>[A-Za-z0-9][\w.-]*\.\d+\.[a-z0-9]{10,25})@(?P<host>[\w.-]+) +\| ?",
    ),
    Wrapper(
        "docker compose",
        # foreman adds the time of day, and pm2 the number of the process.
        r"(?:\d\d:\d\d:\d\d )?(?P<container>(?:\d+\|)?[A-Za-z0-9][\w.-]*) +\| ?"
        rf"(?:(?P<at>{_ISO}) )?",
    ),
    Wrapper(
        "kail",
        rf"{_NAMESPACE}/(?P<pod>[a-z0-9][a-z0-9.-]*)\[{_ANY_CONTAINER}\]: (?:(?P<at>{_ISO}) )?",
    ),
    Wrapper(
        "Go log",
        # log.SetPrefix, or a level; gin has a dash.
        r"(?:\[?[A-Za-z][\w.-]{0,30}\]?:?[ \t]+)?\[?"
        r"(?P<at>\d{4}/\d\d/\d\d (?:- )?\d\d:\d\d:\d\d(?:\.\d+)?)\]?[ \t]+",
    ),
    Wrapper(
        "glog",
        r"[IWEF](?P<at>(?:\d\d)?\d{4} \d\d:\d\d:\d\d\.\d+) +(?P<log_pid>\d+) [^\s\]]+:\d+\]? +",
    ),
    Wrapper(
        "logfmt",
        rf'(?:[\w.]+=(?:"[^"]*"|[^ "]*) )*?(?:time|ts|t|timestamp)="?(?P<at>{_ISO}|{_EPOCH})"? '
        r'(?:(?:[\w.]+=(?:"[^"]*"|[^ "]*) )*?msg="?)?',
    ),
    Wrapper(
        "logfmt",
        r'(?:[\w.]+=(?:"[^"]*"|[^ "]*) )*?msg="?',
        RECORD,
    ),
    Wrapper("CSV export", rf'"(?P<at>{_ISO}|{_KIBANA})"[,;\t] ?"?'),
    # A comma needs a quote after it, because a comma alone may begin a fraction of a second.
    Wrapper("CSV export", rf'(?P<at>{_ISO})(?:,"|;"?)'),
    Wrapper("table", rf"\| *(?P<at>{_ISO}) *\| *"),
    Wrapper("timestamp", rf"(?:{_SEVERITY}[ \t]+)?\[?(?P<at>{_ISO})\]?(?:\||[ \t]+|: )"),
    Wrapper("svlogd", rf"\[?(?P<at>\d{{4}}-\d\d-\d\d_{_CLOCK})\]? "),
    Wrapper("timestamp", rf"\[?(?P<at>{_DATED})\]?(?:[ \t]+|: )"),
    Wrapper("timestamp", rf"\[?(?P<at>{_SHORT})\]?(?:[ \t]+|: )"),
    Wrapper(
        "timestamp",
        r"\[(?P<at>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?:\.\d+)? [+-]\d{4})\][ \t]+",
    ),
    Wrapper("TAI64N", r"(?P<at>@4[0-9a-f]{15}(?:[0-9a-f]{8})?)[ \t]+"),
    Wrapper(
        "timestamp",
        # Seconds, with a fraction or without, milliseconds, microseconds or nanoseconds
        r"\[?(?P<epoch_s>1\d{9}(?:\.\d{1,9}|\d{3}|\d{6}|\d{9})?)\]?(?:[ \t]+|: )",
    ),
    Wrapper("quoted", r"(?:[ \t]*(?:>|#+|\*|;|--?|`{1,3})[ \t]+|`{1,3}|\t[ \t]*|[ \t]{2,})"),
    # Events in a comment need not have happened.
    Wrapper("quoted", r"[ \t]*//+[ \t]+", RECORD),
    Wrapper("kernel log", r"kernel: (?:\[ *(?P<monotonic_s>\d+\.\d{6})\] )?"),
    Wrapper("syslog", rf"{_HOST} (?P<ident>[^\s\[\]:|]+) ?\[(?P<log_pid>\d+)\]: "),
    Wrapper("syslog", rf"{_HOST} (?P<ident>kernel): "),
    Wrapper("syslog", r"(?P<ident>[\w.@/-]+) ?\[(?P<log_pid>\d+)\]: "),
    Wrapper("kubetail", rf"\[{_POD}(?: {_ANY_CONTAINER})?\] (?:(?P<at>{_ISO}) )?", RECORD),
    Wrapper(
        "grep",
        # Rotated files belong to the same program.
        r"(?P<ident>[^\s:]*\.(?:log|txt|out|err))(?:[.-]\d+)?(?:\.gz)?:(?:\d+:)?",
        rf"(?:{RECORD}|{_ISO}|\d{{4}}/\d\d/\d\d )",
    ),
    Wrapper(
        "host",
        # A name with a digit: a word alone, such as `error`, may be any text.
        r"(?P<host>[A-Za-z][A-Za-z.-]*\d[\w.-]*|\d+\.\d+\.\d+\.\d+): ",
        # Not all lines of the runtime: `scvg-1: GC forced` is one itself.
        MODERN_HEAD,
    ),
    Wrapper("pod name", rf"{_POD} (?:(?P<at>{_ISO}) )?", RECORD),
    # k9s and `podman logs --names --timestamps`.
    Wrapper("name", rf"(?P<container>[A-Za-z0-9][\w.-]*) (?P<at>{_ISO}) ", RECORD),
    Wrapper("stern", rf"{_POD} {_ANY_CONTAINER} (?:(?P<at>{_ISO}) )?", RECORD),
    Wrapper("stern -A", rf"{_NAMESPACE} {_POD} {_ANY_CONTAINER} (?:(?P<at>{_ISO}) )?", RECORD),
    Wrapper(
        "stern",
        rf"(?P<pod>[a-z0-9][a-z0-9.-]*-[a-z0-9]{{4,10}}) {_CONTAINER} (?:(?P<at>{_ISO}) )?",
    ),
    Wrapper(
        "stern -A",
        # Pod names of deployments and stateful sets only, not any three words.
        rf"{_NAMESPACE} "
        r"(?P<pod>[a-z0-9][a-z0-9.-]*-(?:[a-z0-9]{6,10}-[a-z0-9]{5}|\d{1,3})) "
        rf"{_CONTAINER} ",
    ),
)
"""The formats that wrap a line in a text prefix, specific ones before general ones."""
