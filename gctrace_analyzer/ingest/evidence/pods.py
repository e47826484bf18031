"""Reads reports of Kubernetes, programs and people on pods and containers ended for memory.

The kubelet evicts pods when their node runs low on memory, starting with those that use more than
they request, whatever their limits. Formats: pkg/kubelet/eviction/helpers.go and
eviction_manager.go of Kubernetes 1.6 to 1.36. `kubectl get pods` lists reasons, with `-o
go-template` it prints maps, and controllers log the types of k8s.io/api. Dashboards, alerts and
people name the reason OOMKilled as a field, a cell or a part of a sentence, with the names and the
exit code next to it or on the next lines.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import json_values, numbers
from gctrace_analyzer.ingest.evidence import kubernetes
from gctrace_analyzer.ingest.evidence.docker import with_signal
from gctrace_analyzer.ingest.evidence.message import TOOLCHAIN, bare_id, given, size_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from gctrace_analyzer.ingest.evidence.message import Message, Row, Rows

HINT = (
    r"low on resource: memory|its request of |request is | was using|viction manager: must evict|"
    r"viction manager: pod .+ evicted|"
    r"\d/\d+ +(?:Init:)?(?:OOMKilled|Evicted|CrashLoopBackOff|Running +[1-9])|"
    r"xitCode:-?\d+(?:[ ,](?:finishedAt|Signal):|,$)|inishedAt\"?:\s?\"|OOMKilled|"
    r"\"ExitCode\": ?\d|\"Memory\": ?\d|"
    r"Container (?:name|memory|finished at) +\||"
    r"MEMORY\(bytes\)| \d+m +\d+Mi(?: |$)| \d+m +\d+% +\d+Mi "
)

_LOW = re.compile(r"The node was low on resource: memory\.")
_QUANTITY = r"\d{1,20}(?:\.\d{1,9})?[A-Za-z]{0,2}"
_CONTAINER = re.compile(
    rf"Container (?P<name>[\w.-]{{1,253}}) was using (?P<used>{_QUANTITY}), "
    rf"(?:which exceeds its request of|request is) (?P<request>{_QUANTITY})"
)
_OF_EVICTION = re.compile(r"request (?:of|is) | was using")
_RECLAIM = re.compile(
    r"viction manager: must evict pod\(s\) to reclaim(?: (?P<old>\w+)|\".{0,64}?"
    r"resourceName=\"(?P<name>[\w.-]+)\")"
)
_EVICTED = re.compile(
    r"viction manager: pod (?:is evicted successfully\" pod=\"(?P<namespace>[\w.-]+)/"
    r"(?P<pod>[\w.-]+)\"|(?P<old_pod>[a-z0-9.-]+)_(?P<old_namespace>[a-z0-9-]+)\(\S{1,64}\) "
    r"(?:is )?evicted)"
)
_POD_OF_LOG = re.compile(r"\bpod=\"(?P<namespace>[\w.-]+)/(?P<pod>[\w.-]+)\"")

_LISTED = re.compile(
    r"^\s*(?:(?P<namespace>[a-z0-9-]+) +)?(?P<pod>[a-z0-9][a-z0-9.-]*) +\d+/\d+ +"
    r"(?:Init:)?(?P<reason>OOMKilled|Evicted|CrashLoopBackOff|Running(?= +[1-9])) +"
    r"(?P<restarts>\d{1,9})"
    r"(?: \(\S+ ago\))? +(?P<age>\S+)(?: +\S+ +(?P<node>[a-z0-9][\w.-]*))?"
)
_COLUMN_OF_REASONS = re.compile(
    # With `-o custom-columns` and `-o jsonpath`, the columns after the name have any order.
    r"^(?P<pod>[a-z0-9][a-z0-9.-]*)(?:  +|\t)(?:\S+(?:  +|\t))*?(?P<reason>OOMKilled)(?:\s|$)"
)


def read(messages: Sequence[Message]) -> Rows:
    """Returns evictions for memory, and the states of containers that ended."""
    states = _listed(messages) + _printed(messages)
    return {"oom_kills": _evictions(messages), "container_states": states}


_MOST_WRAPPED = 6
"""Lines into which YAML or a terminal wraps the message of an eviction."""


def _unwrapped(messages: Sequence[Message], at: int, between: str) -> Message:
    """Returns a message together with the lines that follow it and name its containers.

    Terminals wrap lines within words, so that nothing is `between` them.
    """
    first, *later = messages[at : at + _MOST_WRAPPED]
    parts = [first.text]
    for line_no, message in enumerate(later, first.line_no + 1):
        is_own = not _LOW.search(message.text) and _OF_EVICTION.search(message.text)
        if message.line_no != line_no or not is_own:
            break
        parts.append(message.text.strip())
    return first._replace(text=between.join(parts))


def _evictions(messages: Sequence[Message]) -> list[Row]:
    """Returns each eviction once, even if several lines report it: event, pod and kubelet."""
    evictions: dict[tuple[object, ...], Row] = {}
    reclaimed = None
    for at, message in enumerate(messages):
        if "evict" not in message.text and "low on" not in message.text:
            continue
        row = None
        if _LOW.search(message.text):
            rows = [_by_message(_unwrapped(messages, at, between)) for between in (" ", "")]
            row = rows["container" in rows[1] and "container" not in rows[0]]
        elif low := _RECLAIM.search(message.text):
            reclaimed = low["name"] or low["old"]
        elif (gone := _EVICTED.search(message.text)) and reclaimed == "memory":
            names = {
                "pod": gone["pod"] or gone["old_pod"],
                "namespace": gone["namespace"] or gone["old_namespace"],
            }
            row = _row(message) | names
        if row:
            key = (row["pod"], row.get("container"), row.get("anon_rss_bytes"))
            known = evictions.setdefault(key, row)
            known |= {name: value for name, value in row.items() if known.get(name) is None}
    # The kubelet's log has no sizes.
    sized = {row["pod"] for row in evictions.values() if row.get("container")}
    return [
        row for row in evictions.values() if row.get("container") or row["pod"] not in sized
    ]


def _row(message: Message) -> Row:
    place = {"pod": message.pod, "namespace": message.namespace}
    return message.place() | place | {"killer": "kubelet", "scope": "global"}


def _by_message(message: Message) -> Row:
    """Returns the eviction whose message names the container that used most."""
    row = _row(message)
    if event := kubernetes.event(message.text):
        row |= given(event.facts())
    if of_log := _POD_OF_LOG.search(message.text):
        row |= of_log.groupdict()
    sizes = [
        (numbers.whole(kubernetes.quantity(each["used"])) or 0, each)
        for each in _CONTAINER.finditer(message.text)
    ]
    if sizes:
        used, most = max(sizes, key=lambda size: size[0])
        row |= {
            "container": most["name"],
            "anon_rss_bytes": used or None,
            "usage_bytes": sum(size for size, _ in sizes) or None,
            "memory_request_bytes": numbers.whole(kubernetes.quantity(most["request"])),
        }
    return row


def _listed(messages: Iterable[Message]) -> list[Row]:
    """Returns the rows of `kubectl get pods` whose status is the end of a container.

    A pod listed several times after its end is returned once; a pod that continues, with its last
    line (`kubectl get pods -w`).
    """
    rows: dict[tuple[object, ...], Row] = {}
    for message in messages:
        if not (match := _LISTED.match(message.text) or _COLUMN_OF_REASONS.match(message.text)):
            continue
        listed = {
            **dict.fromkeys(("namespace", "node", "restarts", "age")),
            **match.groupdict(),
        }
        reason = listed["reason"]
        row: Row = {
            "line_no": message.line_no,
            "logged_at": message.logged_at,
            "pod": listed["pod"],
            "namespace": listed["namespace"],
            "node": listed["node"] if listed["node"] != "<none>" else None,
            "status": _STATUS_OF.get(str(reason), "terminated"),
            "reason": reason,
            "oom_killed": reason == "OOMKilled" or None,
            "restart_count": numbers.whole(listed["restarts"]),
            "restarts_in_s": kubernetes.age_s(listed["age"] or ""),
        }
        key = tuple(listed[name] for name in ("namespace", "pod", "reason", "restarts"))
        if reason in _STATUS_OF:
            of_pod, count = key[:2], row["restart_count"]
            if of_pod not in rows or rows[of_pod].get("restart_count") != count:
                rows[of_pod] = given(row)
        else:
            rows.setdefault(key, given(row))
    return list(rows.values())


_STATUS_OF = {"CrashLoopBackOff": "waiting", "Running": "running"}

_CODE = r"xitCode:(?P<code>-?\d{1,10})"
# Not beyond the code of the next state: each state would be searched from every earlier one.
_MESSAGE = r"(?:(?!xitCode:).){0,4096}?"
_TERMINATED = (
    # fmt prints the keys of a map in order; a message may contain brackets.
    re.compile(
        rf"map\[(?:containerID:(?P<id>\S{{1,200}}) )?e{_CODE} finishedAt:(?P<finished>\S{{1,40}})"
        rf"(?: message:{_MESSAGE})?(?: reason:(?P<reason>\S{{1,200}}))?(?: signal:\d{{1,9}})? "
        r"startedAt:(?P<started>[^\s\]]{1,40})\]"
    ),
    # String() of the type separates its fields by commas, fmt's %+v by blanks.
    re.compile(
        rf"\{{E{_CODE}[ ,]Signal:\d{{1,9}}[ ,]Reason:(?P<reason>[^\s,]{{0,200}})[ ,]"
        rf"(?:Message:{_MESSAGE}[ ,])?StartedAt:(?P<started>[^,a-z]{{0,60}})[ ,]"
        r"FinishedAt:(?P<finished>[^,a-z]{0,60})[ ,](?:ContainerID:(?P<id>[^\s,}]{0,200}),?)?\}"
    ),
)
_TYPE = "ContainerStateTerminated"
_AROUND = 2000
"""Largest distance in characters between a state and the name of its container."""

_NAMES_BEFORE = re.compile(
    r" name:(?P<map>[^\s\]]{1,253}) ready:\w+ "
    r"|ContainerStatus\{Name:(?P<type>[^\s,]{1,253}),"
    r"|\{(?P<bare>[a-z0-9][-a-z0-9]{0,252}) \{(?:nil|&)"
)
_RESTARTS_BEFORE = re.compile(r" ready:\w+ .{0,1000}?restartCount:(\d{1,9}) ")
_NAME_AFTER = re.compile(
    r"\]{1,2} name:(?P<name>[^\s\]]{1,253}) ready:\w+ .{0,1000}?restartCount:(?P<restarts>\d{1,9})"
)
_RESTARTS_AFTER = re.compile(r"(?:,\},Ready:\w+,RestartCount:|\} (?:true|false) )(\d{1,9})[ ,]")
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d{1,9})?(Z| ?[+-]\d\d:?\d\d)(?: \w{1,5})?"
)


def _printed(messages: Iterable[Message]) -> list[Row]:
    """Returns the states of ended containers, each death once."""
    rows: dict[tuple[object, ...], Row] = {}
    for message in messages:
        if "xitCode:" not in message.text:
            continue
        for row in _states(message.text):
            key = (row["container_id"], row["finished_at"], row["exit_code"], row.get("name"))
            rows.setdefault(key, message.about(row) | given(row))
    return list(rows.values())


def _states(text: str) -> Iterator[Row]:
    for pattern in _TERMINATED:
        for match in pattern.finditer(text):
            ended = {
                "exitCode": numbers.whole(match["code"]),
                "reason": match["reason"] or None,
                "startedAt": _iso(match["started"]),
                "finishedAt": _iso(match["finished"]),
            }
            about, is_last = _container(text, match.start(), match.end())
            state = {"terminated": ended}
            row = kubernetes.states({}, state) if is_last else kubernetes.states(state, {})
            yield with_signal({**row, **about, "container_id": bare_id(match["id"])})


def _container(text: str, begin: int, end: int) -> tuple[Row, bool]:
    """Returns name and restarts of the container, and whether the state is its last one."""
    before, after = text[max(begin - _AROUND, 0) : begin], text[end : end + _AROUND]
    is_last = (
        before.endswith("lastState:map[terminated:") or "LastTerminationState:" in before[-120:]
    )
    name = counted = None
    if is_last and (match := _NAME_AFTER.match(after)):
        name, counted = match["name"], match["restarts"]
    elif names := [*_NAMES_BEFORE.finditer(before)]:
        nearest = names[-1]
        name = nearest.group(nearest.lastgroup or 0)
        # Without field names, a state is the last one if the present one has not ended.
        is_last |= nearest.lastgroup == "bare" and before.endswith("{nil nil &" + _TYPE)
        restarts = _RESTARTS_BEFORE.search(before, nearest.start()) or _RESTARTS_AFTER.match(
            after
        )
        counted = restarts[1] if restarts else None
    return {"container": name, "name": name, "restart_count": numbers.whole(counted)}, is_last


def _iso(text: str) -> str | None:
    """Returns a time that Go printed in ISO 8601; None if it has no zone."""
    if not (match := _TIME.match(text)):
        return None
    day, clock, fraction, zone = match.groups()
    return f"{day}T{clock}{(fraction or '')[:7]}{zone.strip()}"


_NAMES_OF_STATES = r"(?:reason|status|state|last state|terminated)"
_ENDED = re.compile(
    r"(?:"
    rf"(?i:\b{_NAMES_OF_STATES})\"?\s{{0,9}}[:=]\s{{0,9}}\\{{0,3}}[\"']?"
    r"(?:Terminated[^\w]{1,3}(?:reason[:=] ?)?)?OOMKilled"
    r"|(?i:terminated|killed|died|exited|restarted|failed)\s{0,9}(?:\(|-|:|,|\bwith\b|\bas\b|"
    r"\bdue to\b|\bbecause of\b|\breason\b|\s){1,3}\s{0,9}[\"']?OOMKilled"
    r"|(?:was|were|been|got|is)\s{1,9}[\"']?OOMKilled"
    r"|[,;|\t(\[]\s{0,9}[\"']?OOMKilled\"?\s{0,9}(?:[,;|\t)\]]|$)"
    r"|\b(?:and|with)\s{1,9}reason\s{1,9}[\"']?OOMKilled"
    r"|OOMKilled\s{0,9}\(exit code \d{1,3}\)"
    r"|OOMKilled\"?\s{0,9}[:=]\s{0,9}\"?[Tt]rue"
    r"|\b(?:[Cc]ontainer|[Pp]od)\s{1,9}\S{1,253}\s{1,9}(?:in namespace \S{1,253} )?OOMKilled"
    r")"
)
_MAY = r"(?:should|would|could|may|might|can)"
_NOT = re.compile(
    r"\b(?:not|isn't|wasn't|never|no longer|no \w+ (?:was|were|is|are)|without)\b.{0,20}OOMKilled|"
    r"OOMKilled.{0,3}\?|"
    r"OOMKilled\"?\s{0,9}[:=]\s{0,9}\"?[Ff]alse|"
    # A rule or a possibility, in the words before or after
    rf"\b(?:{_MAY}|(?:el)?[Ii]f|[Ww]hen(?:ever)?|[Ww]hether|[Uu]nless|until|will|to be)\b"
    r"(?! not|n't)[^.;]{0,60}OOMKilled|"
    rf"OOMKilled\W{{1,3}}(?:{_MAY}|if|whether|unless)\b|"
    r"\b(?:is|are|be|gets?)\s+[\"'`]?OOMKilled\W{1,3}when\b|"
    r"\b(?:[Aa]|[Aa]ny|[Ee]ach|[Ee]very)\s\w{1,20}\s(?:that|which)\s(?:is|gets)\s\W{0,3}OOMKilled|"
    # A sample of kube-state-metrics
    r"=\"OOMKilled\"[^}]*\}\s+0(?:\.0*)?(?:\s|$)"
)
"""Wordings about OOMKilled that do not report a kill."""

_NAME = r"[a-z0-9][a-z0-9.-]{0,252}"
_POD_NAMED = re.compile(
    r"\b[Pp]ods?(?:_?[Nn]ame)?[\"']?\s?[/=: ]\s?\\*[\"']?"
    r"(?!(?:are|is|was|were|gets?|got|has|have|in|of|on|with|and|that|which|for)\b)"
    rf"(?:(?P<namespace>{_NAME})/)?(?P<pod>{_NAME})"
)
_STATE_NAMED = re.compile(rf"^(?P<pod>{_NAME}) \{{\"")
_CONTAINER_NAMED = re.compile(
    rf"\b[Cc]ontainer(?:[_ ]?[Nn]ame)?[\"']?\s{{0,30}}[=:| ]\s?\\*[\"']?(?P<container>{_NAME})"
)
_NAMESPACE = re.compile(rf"\bnamespace[\"']?\s?[=: ]\s?\\*[\"']?(?P<namespace>{_NAME})")
_POD_CELL = re.compile(r"[a-z0-9][a-z0-9-]*-(?:[a-f0-9]{8,10}-[a-z0-9]{5}|\d{1,4})")
_EXIT = re.compile(
    r"(?i)\bexit\s?_?code\"?\s?[:=]?\s?\"?(?P<code>\d{1,3})\b|[,;|\t]\s*(?P<cell>137)\b"
)
_RESTARTS = re.compile(r"(?i)\brestart(?:s|\s?_?count)\"?\s?[:=]\s?\"?(?P<n>\d{1,6})\b")
_AT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)")
_STATE_TIMES = tuple(
    (f"{name}_at", re.compile(rf"(?i)\b{name}(?: ?at)?\"?\s{{0,30}}[:=|]\s?"))
    for name in ("started", "finished")
)
_LIMIT = re.compile(
    r"(?i)\bmemory (?:(?P<named>limit)\W{1,9}|.{0,60}?\b)(?P<limit>\d{1,12}(?:\.\d{1,3})?) ?"
    r"(?P<limit_unit>[KMG])i?B?\b(?(named)| limit\b)"
)
_RUNNING = re.compile(r"(?i)\bRunning\"?\s?[=:]\s?\"?true\b")
_INSPECTED = re.compile(r"\bMemory\"?[:=] ?(?P<limit>[1-9]\d{6,18})(?P<limit_unit>)\b")
"""Values of `docker inspect` in bytes for a container with a limit, or named by its template."""

_WORDS = {
    "terminated", "with", "reason", "is", "was", "has", "in", "killed", "oomkilled", "state",
    "that", "which",
}  # fmt: skip
_PROVES_NAME = re.compile(
    r"(?i)(?<=[\d-])|[^\w\s]|\s*$|\s+(?:"
    + "|".join(sorted(_WORDS))
    + r"|got|exited|died|failed|of|on)\b"
)
"""Text after a name of plain letters that proves it, if only a blank separates it from
`container`."""

_NEXT_LINES, _ROWS = 3, 16
"""Fields of the same state that are on lines of their own, and in rows of a table: name | value."""


def read_words(messages: Sequence[Message], taken: Collection[int]) -> list[Row]:
    """Returns one row per container that was killed.

    Args:
        messages: all messages.
        taken: the numbers of lines that another reader understood.
    """
    rows: dict[tuple[object, ...], Row] = {}
    for at, message in enumerate(messages):
        if "OOMKilled" not in message.text or message.line_no in taken:
            continue
        if (
            # `_printed` reads the states of Kubernetes; Docker's have a flag.
            ("xitCode:" in message.text and "OOMKilled:true" not in message.text)
            or _NOT.search(message.text)
            or not _ENDED.search(message.text)
        ):
            continue
        row = _row_of(message)
        for near in _fields(messages, at):
            row = _facts_of(near.text) | row
        key = tuple(
            row.get(name) for name in ("pod", "container", "logged_at", "restart_count")
        )
        row.setdefault("name", row.get("container"))
        rows.setdefault(key if any(key) else (message.line_no,), with_signal(row))
    return list(rows.values())


def _fields(messages: Sequence[Message], at: int) -> Iterator[Message]:
    """Yields the lines after a reason with more fields, and the text before it up to a comma."""
    line_no = messages[at].line_no
    for near in messages[at + 1 : at + 1 + _ROWS]:
        most = _ROWS if near.text.count("|") == 1 else _NEXT_LINES
        if near.line_no - line_no > most or _ENDED.search(near.text) or _NOT.search(near.text):
            break
        yield near
    for near in reversed(messages[max(at - _NEXT_LINES, 0) : at]):
        if line_no - near.line_no > _NEXT_LINES or not near.text.endswith(","):
            break
        yield near


def _row_of(message: Message) -> Row:
    at = _AT.search(message.text)
    named = {**_cells(message.text), **_facts_of(message.text)}
    # Docker's flag is of any process in a container, and no reason why the container ended.
    reason = None if named.get("status") == "running" else "OOMKilled"
    proven = {"oom_killed": True, "reason": reason}
    is_own = at is not None and named.keys().isdisjoint(name for name, _ in _STATE_TIMES)
    dated = {"logged_at": json_values.iso_utc(at[0])} if at and is_own else {}
    return {**dated, **named, **message.about(named), **proven}


def _facts_of(text: str) -> Row:
    """Returns the names and numbers on a line about a container."""
    row: Row = {}
    for pattern in (_NAMESPACE, _STATE_NAMED, _POD_NAMED, _CONTAINER_NAMED):
        if match := pattern.search(text):
            row |= {
                name: value
                for name, value in match.groupdict().items()
                if value and value not in _WORDS and _is_name(text, *match.span(name))
            }
    if match := _EXIT.search(text):
        row["exit_code"] = numbers.whole(match["code"] or match["cell"])
    if match := _LIMIT.search(text) or _INSPECTED.search(text):
        row["memory_limit_bytes"] = size_bytes(match.groupdict(), "limit")
    if _RUNNING.search(text):
        row["status"] = "running"
    if match := _RESTARTS.search(text):
        row["restart_count"] = numbers.whole(match["n"])
    for of, pattern in _STATE_TIMES:
        if (named := pattern.search(text)) and (at := _AT.search(text, named.end())):
            row[of] = json_values.iso_utc(at[0])
    return row


def _is_name(text: str, begin: int, end: int) -> bool:
    """Returns whether a word is a name; in `container limit 2Gi`, none is."""
    is_set_apart = not text[begin - 1].isspace() or text[: begin - 1].endswith((":", "=", "|"))
    return is_set_apart or _PROVES_NAME.match(text, end) is not None


def _cells(text: str) -> Row:
    """Returns pod, container and restarts of a row of a table without names."""
    cells = [cell.strip(' "') for cell in re.split(r"[,;|\t]| {2,}", text)]
    row: Row = {}
    for before, cell, after in zip(["", *cells], cells, [*cells[1:], ""], strict=False):
        if _POD_CELL.fullmatch(cell) and "pod" not in row:
            row["pod"] = cell
            if after and cell.startswith(after):
                row |= {"container": after, "name": after}
        elif cell in ("Terminated", "OOMKilled") and before.isdigit():
            row.setdefault("restart_count", numbers.whole(before))
    return row


_BUILD = re.compile(rf"/(?P<name>{'|'.join(TOOLCHAIN)}): signal: killed")
_SHELL = re.compile(
    # Message of bash about a job that got a signal; words that start a program are not its name.
    r": line \d{1,9}: {1,9}\d{1,10} Killed {2,99}\(? ?(?:[A-Z]\w{0,40}=\S{0,99} ){0,5}"
    r"(?:(?:srun|time|exec|nohup|mpirun|nice) ){0,2}(?:\S{0,300}/)?(?P<name>[\w.+-]{1,100})(?: |$)"
)
_CHILD_S, _CHILD_LINES = 10.0, 8
"""Largest distance from the end of a child to its platform's report, in seconds or lines."""


def name_child(states: Iterable[Row], messages: Iterable[Message]) -> None:
    """Names the only container or job that was killed after the program that ended with it.

    In a container, only compiler and linker are certain to be such a program; in a job, the shell
    names it.
    """
    killed = [row for row in states if row.get("oom_killed")]
    if len(killed) != 1:
        return
    row, is_job = killed[0], "slurmstepd" in (killed[0].get("error") or "")
    if not is_job and any(row.get(name) for name in ("name", "container")):
        return
    names = {
        match["name"]
        for message in messages
        if (match := (_SHELL if is_job else _BUILD).search(message.text))
        and _is_near(row, message)
    }
    if len(names) == 1:
        row |= {"name": names.pop(), **({"status": "exited"} if is_job else {})}


def _is_near(row: Row, message: Message) -> bool:
    at, other = row.get("logged_at"), message.logged_at
    if isinstance(at, datetime) and other is not None:
        return abs((at - other).total_seconds()) <= _CHILD_S
    line_no: int = row["line_no"]
    return abs(line_no - message.line_no) <= _CHILD_LINES
