"""Detects the format of an input by its first bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from gctrace_analyzer import core
from gctrace_analyzer.errors import BadSettingError, NoDataError
from gctrace_analyzer.ingest import json_values
from gctrace_analyzer.ingest.evidence import words
from gctrace_analyzer.ingest.evidence.message import STATED
from gctrace_analyzer.ingest.memstats import csv
from gctrace_analyzer.ingest.metrics import layouts
from gctrace_analyzer.ingest.wrappers import csv_export, journal
from gctrace_analyzer.units import MIB, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from gctrace_analyzer.ingest.evidence.message import Rows
    from gctrace_analyzer.ingest.sources import SourceFacts

SNIFF_BYTES = 1 << 16

MIXED_BYTES = 6 << 20
"""Bytes. A longer input is of one kind: nobody pastes this much."""

DOCUMENTS = ("metrics", "json", "yaml", "describe", "memstats-csv")
"""Kinds that part of a text may have if it is fenced or its lines have a prefix."""

Kind = Literal[
    "log",
    "json",
    "journal-export",
    "journal-verbose",
    "memstats-csv",
    "pprof",
    "metrics",
    "describe",
    "csv-export",
    "yaml",
]
"""The kinds of input that `read(kind=...)` accepts."""

KINDS = {
    "log": "text with one record per line: gctrace and others, with any log prefix",
    "json": "JSON documents: docker inspect, kubectl get -o json, MemStats, expvar, log "
    "queries",
    "journal-export": "journalctl -o export",
    "journal-verbose": "journalctl -o verbose",
    "memstats-csv": "MemStats as a table",
    "pprof": "a profile of Go: heap, allocs, CPU or goroutines, also with debug=1",
    "metrics": "Go metrics: Prometheus API JSON, Prometheus or OpenMetrics text, promtool output, "
    "VictoriaMetrics export, Grafana CSV, OTLP JSON, Influx line protocol, "
    "JSON of Telegraf, go-metrics, lines of expvar or runtime/metrics JSON",
    "describe": "kubectl describe pod",
    "csv-export": "CSV of a log service, with a log line in one column of each row",
    "yaml": "YAML documents: kubectl get pod -o yaml, gcloud logging read",
}
"""The input formats, by the names that users choose."""

_PPROF = re.compile(
    r"^heap profile: |^# runtime\.MemStats$|\A\s*goroutine profile: total \d", re.MULTILINE
)
_FIRST_OF_PROFILE = re.compile(rb"[\n\x12\x1a\"*2@HPZ`j](?s:.{0,250})[\x01-\x08\x0e-\x1a]")
"""The first bytes of a profile: a field, followed by bytes that text does not have."""


def check_kind(kind: str | None) -> None:
    """Refuses a name that is not a kind of input.

    Raises:
        BadSettingError: there is no such kind.
    """
    if kind is not None and kind not in KINDS:
        raise BadSettingError.unknown("kind", kind, KINDS)


def is_profile(raw: bytes) -> bool:
    """Returns whether an input is a profile in profile.proto, from its first bytes."""
    if not _FIRST_OF_PROFILE.match(raw):
        return False
    from gctrace_analyzer.ingest.profiles import proto

    return proto.is_profile(raw)


def sniff(raw: bytes, text: str) -> str:
    """Returns the kind of an input, from its first bytes, given raw and as text."""
    if journal.EXPORT_FIRST.search(raw[:4096]):
        return "journal-export"
    if is_profile(raw) or _PPROF.search(text[:4096]):
        return "pprof"
    if journal.VERBOSE_FIRST.search(text[:4096]):
        return "journal-verbose"
    if layouts.layout_of(text) is not None:
        return "metrics"
    if words.JSON.match(text) and not _is_json_lines(text, cut=len(raw) >= SNIFF_BYTES):
        return "json"
    if words.JSON_FRAGMENT.match(text):
        return "json"
    if words.YAML.match(text):
        return "yaml"
    if words.may_be_described(text) and _is_described(text):
        return "describe"
    if csv.is_table(text):
        return "memstats-csv"
    return "log" if csv_export.export_of(text) is None else "csv-export"


_CRASH = "a crash of a Go program, without GC cycles"
_ERRORS = re.compile(
    r"\b(?:http: panic serving |(?:panic|fatal error|runtime(?:/cgo)?): (?!sp=))[^\n]{1,120}"
)
_ERRORS_SHOWN = 3

_RECOVERED = "a panic that net/http recovered, after which the program went on"

_WITHOUT_GC = {
    "the access log of a web server": r"\"(?:GET|HEAD|POST|PUT|DELETE) \S{1,999} HTTP/\d",
    "the log of a job that was asked to stop (exit code 143, SIGTERM)": "exit (?:code|status) 143",
    "stacks of goroutines (SIGQUIT, debug=2)": r"^goroutine \d+ \[[a-z][\w ,]*\]:",
}
_REFUSED = "a system call to which the kernel gave no memory (ENOMEM)"
_HINTS = dict.fromkeys(
    _WITHOUT_GC, "No figure of memory or garbage collection was recognised in it."
) | {
    words.OWN: "Read the log, or the dumps, that it was made from.",
    _REFUSED: "Check `ulimit -v`, vm.max_map_count, and the host's overcommit limit "
    "(vm.overcommit_memory; CommitLimit and Committed_AS in /proc/meminfo).",
}
_FOREIGN = (
    (words.OWN, words.OWN_REPORT),
    (
        "the log of a Java VM",
        r"\[(?:Full )?GC (?:\(|\d)|\[gc(?:[ ,*][^\]\n]{0,40})?\](?!\()|GC\(\d+\) |"
        r"G1 Evacuation Pause|DefNew|ParNew|PSYoungGen|java\.lang\.\w+(?:Error|Exception)",
    ),
    (
        "the GC trace of Node.js",
        r"(?:Scavenge|Mark-[Cc]ompact|Mark-sweep) [^\n]*-> [\d.]+ \([\d.]+\) MB",
    ),
    ("Windows' warning of low memory (its commit limit)", r"a low virtual memory condition"),
    ("a crash of Node.js", r"JavaScript heap out of memory"),
    ("a traceback of Python", r"^Traceback \(most recent call last\)|^MemoryError"),
    ("a crash of .NET", r"System\.OutOfMemoryException"),
    ("a crash of a Rust program", r"^memory allocation of \d+ bytes failed"),
    (_RECOVERED, r"http: panic serving "),
    (
        _CRASH,
        r"^[\s>]*(?:panic|fatal error): |"
        r"(?:panic|fatal error): [^\n]*\n(?:[^\n]*\n){0,3}[^\n]*\bgoroutine \d+ \[running|"
        r"\bgoroutine \d+ \[running[^\n]*\n[^\n]*runtime\.throw\(|"
        r"^[\s>]*runtime: goroutine stack exceeds|\bruntime: failed to create new OS thread|"
        r"\bruntime/cgo: pthread_create failed",
    ),
    ("the GC trace of Python", r"gc: (?:collecting generation|done)"),
    *_WITHOUT_GC.items(),
    (_REFUSED, r": cannot allocate memory$"),
    ("an execution trace of Go", r"\Ago 1\.\d\d? trace"),
    ("results of `go test -bench`, without GC cycles", r"^Benchmark\S+\s+\d+\s+[\d.]+ ns/op"),
    ("a description of resources (YAML)", r"\A(?:---\s*)?(?:apiVersion|kind|services): ?"),
    (
        "Prometheus text without line breaks",
        r"[^\n#]# (?:HELP|TYPE) \w+ [^\n]*# (?:HELP|TYPE) \w+ ",
    ),
    ("the compiler's escape analysis", r"(?:escapes|moved) to heap"),
    ("the output of top or ps", r"^ *(?:PID|USER) +(?:USER|PID) .*(?:RES|RSS|%MEM)"),
    ("the output of free or df", r"^ +total +used +free|^Filesystem +(?:Size|1K-blocks) "),
    ("Go source code", r"^package \w+\s*$"),
    ("a web page (HTML)", r"(?i)\A\s*<(?:!doctype html|html)"),
    (
        "a table",
        r"(?:^\|[^\n]*\|[ \t]*\n){2}|^\|[ :|-]*-[ :|-]*\|?\s*$|"
        r"\A(?:[$#>] [^\n]*\n)?(?!INFO|WARN|ERROR|DEBUG)[A-Z]{2,30}(?: [A-Z]{1,30})?"
        r"(?:(?: {2,}+|\t)[A-Z][A-Za-z%()/-]{0,30}+(?: [A-Z%/][A-Z%/()]{0,30}+){0,4}+){2}|"
        r"\A[^\n,;\t:[{]{1,40}([,;\t])(?:[^\n,;\t:[{]{0,40}(?:\1|\n))+(?:[^\n]*\1[^\n]*\n){2}",
    ),
)
"""Outputs that people mistake for the Go runtime's, and how to recognise them."""


def foreign(text: str) -> str | None:
    """Returns what an input without Go data is; None if unknown.

    >>> foreign("[0.5s][info][gc] GC(3) Pause Young (Normal) 24M->4M(256M) 2.1ms")
    'the log of a Java VM'
    """
    matches = (name for name, pattern in _FOREIGN if re.search(pattern, text, re.MULTILINE))
    return next(matches, None)


_NOT_FETCHED = (
    (
        "kubectl",
        r"Error from server(?: \(|: )|Unable to connect to the server|The connection to the serv|"
        r"error: (?:a container name must|You must be logged|the server )|"
        r"unable to retrieve container logs for |failed to try resolving symlinks in path ",
        "`kubectl describe pod NAME` shows why each container last ended, and its memory limit: "
        "save that and read it.\n  The log is `kubectl logs NAME -c CONTAINER`; with --previous, "
        "that of the run before the last restart in this pod, while the node keeps it.",
    ),
    (
        "docker",
        r"Error response from daemon|Error:(?: no container with name| No such)|"
        r"(?:permission denied while trying to|Cannot|failed to) connect to the [Dd]ocker|"
        r"no such service: ",
        "`docker ps -a` lists the containers. `docker inspect NAME`, or the state alone, "
        "`docker inspect -f '{{json .State}}' NAME`, shows how one ended: save and read that.\n"
        "  The log is `docker logs NAME > run.log 2>&1`, unless its logging driver keeps none.",
    ),
    (
        "journalctl",
        r"-- No entries --|No journal files were |Hint: You are currently not seeing",
        "`journalctl -b -1` has the boot before this one, `-u UNIT` what a unit printed.\n"
        "  Messages of the kernel (`-k`) and of others are shown to root and the group "
        "systemd-journal.",
    ),
)
"""Commands that fetch logs, the beginnings of their errors, and how to fix these."""

_KILL_IN_WORDS = re.compile(
    r"(?i)\boom[- _]?kill|(?:kubectl |systemd-)oomd|limit +termination time|lowmemorykiller: kill|"
    # The states of JetsamEvent reports (Apple).
    r"\"reason\" ?: ?\"(?:per-process-limit|vm-pageshortage|highwater)"
)
_RECORDS = (
    "Save what the platform shows of the container or unit that ended (state, exit code, memory "
    "limit), or the log of the kernel or of `journalctl -u systemd-oomd`, and read that."
)
_OF_KILLERS = (
    (
        r"systemd-oomd.*Failed to kill any cgroup",
        "systemd-oomd tried to kill and killed nothing.",
    ),
    (r"lowmemorykiller: Kill", "Android's lmkd killed a process for lack of memory."),
    (
        r"kubectl oomd|LIMIT +TERMINATION TIME",
        "`kubectl oomd` lists pods in which a container ended with exit code 137, which alone "
        "proves no OOM kill. `kubectl describe pod NAME` shows the reason: save and read that.",
    ),
)
"""Lines of killers of processes, and what they mean."""


_MOST_OF_ERROR = 5
"""Lines. A longer text is a program's log, which may contain the same words."""


def unrecognised(facts: SourceFacts, text: str) -> NoDataError:
    """Returns the error for an unrecognised input, from its beginning."""
    first: str | None
    lines, first = facts.lines, facts.first
    for who, begin, hint in _NOT_FETCHED if lines <= _MOST_OF_ERROR else ():
        if re.search(f"^(?:{begin})", text, re.MULTILINE):
            problem = f"this is an error of {who}, which fetched nothing"
            return NoDataError(facts.name, problem, hint, lines=lines, first=first)
    count, seen = "1 line" if lines == 1 else f"{lines:,} lines", foreign(text)
    known = "gctrace output, MemStats, Go metrics or an OOM kill in a form that is read"
    problem = f"{count}, none of them {known}"
    hint = (
        "If it is a Go program, start it with GODEBUG=gctrace=1 and keep its standard error:\n"
        "    GODEBUG=gctrace=1 ./server 2> run.log\n"
        "  If it ran so, this is not its standard error, or GC has not run yet.\n"
        "  Only what tools print is read, not sentences about it."
    )
    if seen in (_CRASH, _RECOVERED):
        errors = list(dict.fromkeys(_ERRORS.findall(text)))[:_ERRORS_SHOWN]
        first = None if errors else first
        hint = "\n  ".join((*map(repr, errors), words.after_crash(text)))
    elif seen in _HINTS:
        hint = _HINTS[seen]
    elif re.search(r"Java VM|Node\.js|Python|\.NET|Rust", seen or ""):
        hint = "It is not of a Go program: no GC setting of Go changes its memory."
    elif _KILL_IN_WORDS.search(text):
        problem = f"{count} with words about an OOM kill, in no form that is read"
        hint = next((said for line, said in _OF_KILLERS if re.search(line, text)), _RECORDS)
    elif consumed := words.CONSUMED.findall(text):
        sizes = ", ".join(f"{name} {size_text(int(size) / MIB)}" for name, size in consumed)
        hint = f"The programs that consumed the most virtual memory: {sizes}."
    if seen is not None:
        looks = f"this looks like {seen}. It has {problem}"
        problem = f"this is {seen}" if seen == words.OWN else looks
    return NoDataError(facts.name, problem, hint, lines=lines, first=first)


_VERSION = re.compile(r"go(?P<version>1\.\d{1,2}(?:\.\d{1,3})?)(?![\w.-])( gctrace)?")
"""Wordings of programs that print runtime.Version() at their start, and headings of pastes."""

_BEFORE_IT = re.compile(r"\b(?:on|with|using|under|runtime)[ :=]{1,2}$")
_HEADING = re.compile(r"(?:^|\n)\W{0,9}$")


def _states_it(version: re.Match[str]) -> bool:
    begin = version.start()
    before = version.string[max(begin - 16, 0) : begin]
    return bool(_BEFORE_IT.search(before) or (version[2] and _HEADING.search(before)))


def add_go_version(rows: Rows, text: str, cycles: Sequence[pl.DataFrame]) -> None:
    """Adds the Go version that a log of one program states, if nothing else states one.

    Args:
        rows: rows of tables, to which the version is added.
        text: the beginning of the log.
        cycles: its cycles.
    """
    named = {
        match["version"]: match.start("version")
        for match in _VERSION.finditer(text)
        if _states_it(match)
    }
    states = rows.setdefault("container_states", [])
    begun = sum(int(frame["gc_num"].eq(1).sum()) for frame in cycles)
    if len(named) == 1 and len(states) < 2 and begun < 2:
        (version, begin), *_ = named.items()
        if not states:
            states.append({"line_no": text.count("\n", 0, begin) + 1, "event": STATED})
        states[0].setdefault("go_version", version)


PROFILES = "/debug/pprof"
"""The path of net/http/pprof."""

_PROFILES_AT = re.compile(
    # A host does not begin inside a word: otherwise the search would take quadratic time.
    rf"(?:(https?)://|(?<![\w.-]))((?:[A-Za-z0-9][\w.-]*|\[[0-9A-Fa-f:]+\])?)"
    rf"(:\d{{1,5}}){PROFILES}"
)
_ANY_HOST = ("", "0.0.0.0", "[::]")
"""Wordings of a server that listens on all addresses."""


def profiles_at(text: str) -> str | None:
    """Returns the address of net/http/pprof, if a log names it.

    >>> profiles_at("listening on :6060/debug/pprof/"), profiles_at("see https://a.b:8443/debug/pprof")
    ('http://localhost:6060/debug/pprof', 'https://a.b:8443/debug/pprof')
    """
    match = _PROFILES_AT.search(text) if PROFILES in text else None
    if match is None:
        return None
    scheme, host, port = match.groups()
    return f"{scheme or 'http'}://{'localhost' if host in _ANY_HOST else host}{port}{PROFILES}"


def may_have_documents(log: bytes) -> bool:
    """Returns whether there may be documents in a log; a quick look."""
    return len(log) <= MIXED_BYTES and core.contains_any(log, words.OF_DOCUMENTS)


def _is_described(text: str) -> bool:
    from gctrace_analyzer.ingest.evidence import kubernetes

    return kubernetes.is_described(text)


_MANY_RECORDS = ('"resourceLogs"', '"logEvents"')
"""Keys of objects with many log records on one line: OTLP, CloudWatch by Firehose."""


_OF_JSON = re.compile(r"^\s*[][{}\"\x1e]")
"""Beginning of a JSON line."""


def _is_json_lines(text: str, *, cut: bool) -> bool:
    """Returns whether each line is a JSON object: most lines, or all that are JSON at all.

    A few may be damaged.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    sample = lines[:20]
    whole = sum(_is_object(line) for line in sample)
    if len(lines) == 1:
        return cut or bool(whole and _has_message(lines[0]))
    if sample and (any(key in sample[0] for key in _MANY_RECORDS) or _is_encoded(sample[0])):
        return False
    # Between lines of gctrace, a program may log JSON that is most of its log.
    is_mixed = whole and _is_object(sample[0]) and not all(map(_OF_JSON.match, lines))
    return whole * 2 >= len(sample) or bool(is_mixed)


def _is_encoded(line: str) -> bool:
    from gctrace_analyzer.ingest.wrappers import encoded

    return encoded.HEAD.search(line) is not None


def _is_object(line: str) -> bool:
    try:
        return isinstance(json_values.loads(line.lstrip("\x1e").rstrip(", ")), dict)
    except ValueError:
        return False


def _has_message(line: str) -> bool:
    value = json_values.loads(line.lstrip("\x1e").rstrip(", "))
    return any(
        isinstance(value.get(key), (str, list)) for key in ("MESSAGE", "log", "msg", "message")
    )
