"""Reads the settings that commands and configuration in an input state: GOGC and limits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from gctrace_analyzer.ingest.evidence import kubernetes
from gctrace_analyzer.ingest.evidence.docker import go_settings, swap_limit
from gctrace_analyzer.ingest.evidence.message import STATED, size_bytes
from gctrace_analyzer.ingest.evidence.words import PROMPT, STARTS
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import polars as pl

    from gctrace_analyzer.ingest.evidence.message import Message, Row
    from gctrace_analyzer.ingest.gctrace.lines import Blocks

_INDENT = r"^[\s>-]{0,40}"
_VARIABLE = (
    r"\b(GOGC|GOMEMLIMIT)[\"']?(?: ?[=:] ?| |,{1,2} ?[\"']?value[\"']?: {0,9})[\"']?"
    r"(off|-?\d{1,19}(?:\.\d{1,9})?(?:[KMGT]i)?B?)(?![\w.%])"
)
_RUN = r"\b(?:docker|podman|nerdctl) (?:container )?(?:run|create)"
_SET = r"(?:[A-Z]\w{0,40}=\S{1,99} ){0,5}"
_COMMAND = re.compile(
    # The command line of the program, of Docker or kubectl, and of a shell
    rf"gctrace=|{_RUN} |^\s*(?:-e|--env)[ =]|kubectl set env |"
    r"\s(?:-[eE]|--(?:set)?env)[ =][\"']?GO(?:GC|MEMLIMIT)=|"
    # Without a prompt, only a path or the go command shows that a program is run.
    r"^\s{0,40}(?:[+#] )?(?:(?:sudo|time|nohup|exec|CMD|(?:ExecStart=)?\S{0,60}env) ){0,3}"
    rf"{_SET}GO(?:GC|MEMLIMIT)=\S{{1,99}} {_SET}(?:[.~]{{0,2}}/\w|go (?:run|test) )|"
    rf"{PROMPT}?(?:- |RUN )?(?:export |setx? |env |\$env:)|"
    rf"{PROMPT}{_SET}GO"
)
_LASTING = re.compile(r"\b(?:export |setx? )|\$env:")
"""A command whose variables are also those of the commands after it."""

_TRACED = re.compile(STARTS)
_ENTRY = re.compile(
    # In a file of Docker, Compose, Kubernetes, a unit or variables, or from automemlimit
    r"^[\s>]{0,40}(?:ENV |Environment=)|GOMEMLIMIT is updated|"
    r"\[(?:\w{1,60}=\S{0,200} ){0,40}(?:GOGC|GOMEMLIMIT)=|"
    # Nothing but variables and the release of Go
    r"^[\s>-]{0,40}(?:(?:[A-Z]\w{1,40}=[^\s,]{1,99}|go1[0-9.]{1,8})(?:,? {1,3}|\s*$)){2,9}$|"
    rf"{_INDENT}[\"'{{]{{0,3}}(?:name[\"']?: ?[\"']?)?{_VARIABLE}[\"'}},]{{0,3}}\s*$"
)
"""A line that sets variables: sentences contain such names and values too."""

_OF_VARIABLES = re.compile(_VARIABLE)
_VALUE = r"^[\s>]{0,40}[\"']?value[\"']?: "

_IS = r"[\"']?[ :=(]{1,3}[\"']?"
_GO = (
    rf"(?:(?:^|[^{{\w])[Vv]ersion{_IS}go|(?:[Bb]uilt|[Cc]ompiled) (?:with|by) [Gg]o ?|"
    rf"[Gg]o[ _]?[Vv]ersion{_IS}(?:go)?|\bgo=go)([0-9]\.[0-9]+[.0-9]*)|"
    r"[Gg]o ?([0-9]\.[0-9]+[.0-9]*)[ .(-]+(?:linux|windows|darwin|freebsd)[-/]"
)
"""The Go release as programs print it at their start, as `go version` does, and as people write
it."""

_LIMIT = re.compile(
    r"^(?:[\s>-]{0,40}mem_limit: *[\"']?|(?=\d{7,15} \[\w{1,60}=)|.{0,200}?\b(?:"
    rf"{_RUN} .{{0,500}}?(?:-m|--memory)[ =]|Memory(?:Max|Limit)=)|^\s{{0,40}}(?:-m|--memory)[ =])"
    r"(?P<limit>\d{1,19})(?P<limit_unit>[KkMmGgBb])?"
)
"""The limit in a Compose file, in a Docker command or its table, or in a systemd file; and the
output of `docker inspect -f '{{.HostConfig.Memory}} {{.Config.Env}}'`."""

_OF_GROUP = re.compile(
    r"(?:\b|_)memory[._]max(?:_bytes|_(?P<limit_unit>[kmg])i?b)?[\"']?[:=] ?[\"']?"
    r"(?P<limit>\d{1,19})(?![\w.])"
)
"""The limit of the program's control group, as a program logs it."""

_SWAP = re.compile(
    r"(?:memswap_limit: *[\"']?|--memory-swap[ =]|Memory(?P<of_unit>Swap)Max=)"
    r"(?P<swap>-1|\d{1,19}|infinity)(?P<swap_unit>[KkMmGgBb])?"
)
"""The same of swap; Docker and Compose limit memory and swap together."""

_BOTH, _SWAP_BYTES = "memory_and_swap_bytes", "swap_limit_bytes"

_LIMITS, _LIMITS_LINES = re.compile(rf"{_INDENT}(?:([Ll]imits)|[Rr]equests|reservations):"), 6
"""The most lines between `limits:` in a manifest and its memory and CPUs; what it requests is of
another block."""

_OF_LIMITS = re.compile(r"\b(memory|cpu)s?: *[\"']?(\d[\w.]{0,20})")
_DEPLOY = re.compile(rf"{_INDENT}deploy:")
"""Shortly before the limits of a Compose file, whose sizes are binary: 512M, 512m, 1GB (go-units,
RAMInBytes). In Kubernetes 512M is decimal, and 512m less than a byte."""

_OF_COMPOSE = re.compile(r"(?P<size>\d+(?:\.\d+)?)(?P<size_unit>[bkmgBKMG])[bB]?")
_LIMIT_BYTES = "memory_limit_bytes"
_LIMITED, _MINOR = {_LIMIT_BYTES, _SWAP_BYTES, _BOTH}, {"cpu_limit", "go_version"}
_COLUMNS = {"memory": _LIMIT_BYTES, "cpu": "cpu_limit"}
_LEFT = "The input states {}, which may be of another run: specify what this program ran with."

# Without counted repetitions: with many of them, a search over all patterns takes a hundred times
# as long.
HINT = (
    r"gctrace=[1-9]|"
    r"mem(?:swap)?_limit:|memory[._]max|Memory(?:Swap)?(?:Max|Limit)=|--memory-swap|"
    r"(?:docker|podman|nerdctl) (?:container |run |create )|"
    r"[Ll]imits:|[Rr]equests:|reservations:|deploy:|^\s*(?:-m|--memory)[ =][0-9]|"
    r"^[ >]*(?:memory|cpus?|[\"']?value[\"']?): |"
    r"[Vv]ersion[\"']?[ :=(]+[\"']?go|(?:uilt|ompiled) (?:with|by) [Gg]o|[Gg]o[ _]?[Vv]ersion|"
    r"\bgo=go1|[Gg]o ?[0-9]\.[0-9.]+[ .(-]+(?:linux|windows|darwin|freebsd)|"
    r"(?:GOGC|GOMEMLIMIT)(?:[\"']?(?: ?[=:] ?| |, ?)[\"']?(?:off|-?[0-9]|value)|[\"']?,?$)"
)


_HINT = re.compile(HINT)


class _Stated(NamedTuple):
    """A setting: its column of `container_states`, its value, and its line.

    A setting in a command applies to what follows it, or only to what this command starts.
    """

    column: str
    value: float | str
    text: str
    line_no: int
    in_command: bool
    of_one_run: bool

    @property
    def quoted(self) -> str:
        """Its text and line."""
        return f"`{self.text}` (line {self.line_no})"


_SHOWN = 60
"""Length up to which a line is quoted."""


def go_versions(text: str) -> set[str]:
    """Returns the releases of Go that a text names.

    >>> go_versions('{"msg":"started","version":"go1.26.8"}'), go_versions("go1.6 linux/amd64")
    ({'1.26.8'}, {'1.6'})
    """
    named = (next(filter(None, groups)) for groups in re.findall(_GO, text))
    return {version.rstrip(".") for version in named}


def _stated(messages: Iterable[Message], first_cycle: int) -> list[_Stated]:
    settings: list[_Stated] = []
    begun = deploy_at = -3 * _LIMITS_LINES
    before_at, before = 0, ""
    for message in messages:
        text, at = message.text, message.line_no
        if not _HINT.search(text):
            continue
        if before_at == at - 1 and re.match(_VALUE, text):
            text = f"{before}, {text.lstrip(' >')}"
        before_at, before, in_command = at, text, _COMMAND.search(text) is not None
        if _TRACED.search(text) and at < first_cycle:
            # The variables of the commands before were of other runs.
            settings = [setting for setting in settings if not setting.of_one_run]
        if block := _LIMITS.match(text):
            begun = at if block[1] else -_LIMITS_LINES - 1
        deploy_at = at if _DEPLOY.match(text) else deploy_at
        variables = _OF_VARIABLES.findall(text) if in_command or _ENTRY.search(text) else ()
        limits = _OF_LIMITS.findall(text) if at - begun <= _LIMITS_LINES else ()
        values = [
            *go_settings(dict(variables)).items(),
            *(("go_version", version) for version in go_versions(text)),
            *(
                _limit(*limit, of_compose=at - deploy_at <= 2 * _LIMITS_LINES)
                for limit in limits
            ),
        ]
        if match := _LIMIT.match(text) or _OF_GROUP.search(text):
            values.append((_LIMIT_BYTES, size_bytes(match.groupdict(), "limit")))
        if match := _SWAP.search(text):
            size = -1 if match["swap"] == "infinity" else size_bytes(match.groupdict(), "swap")
            values.append((_SWAP_BYTES if match["of_unit"] else _BOTH, size))
        of_one_run = in_command and _LASTING.search(text) is None
        settings += [
            _Stated(column, value, text.strip()[:_SHOWN], at, in_command, of_one_run)
            for column, value in values
            if value
        ]
    return settings


def _limit(name: str, text: str, *, of_compose: bool) -> tuple[str, float | None]:
    """Returns the column and the value of a limit in a manifest."""
    match = _OF_COMPOSE.fullmatch(text) if name == "memory" else None
    is_binary = match and (of_compose or match["size_unit"] in "bmg")
    size = size_bytes(match.groupdict(), "size") if match and is_binary else None
    return _COLUMNS[name], size or kubernetes.quantity(text)


def _usable(
    stated: Iterable[_Stated], first_cycle: int, live_bytes: float
) -> tuple[dict[str, _Stated], list[str]]:
    """Returns the program's settings, and those that may belong to another run.

    The program's settings have one value that the live heap does not contradict, and do not come
    from a command after the cycles or after the kill.
    """
    by_column: dict[str, dict[float | str, _Stated]] = {}
    for setting in stated:
        by_column.setdefault(setting.column, {}).setdefault(setting.value, setting)
    usable: dict[str, _Stated] = {}
    left: list[str] = []
    for column, values in by_column.items():
        (first, *others) = values.values()
        is_late = first.in_command and 0 < first_cycle < first.line_no
        is_small = column == _LIMIT_BYTES and float(first.value) < live_bytes
        if others or is_late or is_small:
            left += [stated.quoted for stated in values.values()]
        else:
            usable[column] = first
    return usable, list(dict.fromkeys(left))


_NAMES = re.compile(
    r"^[\s>]*(?:- )?(?:container_)?name: *[\"']?([a-z0-9][\w.-]*)|\s--name[ =](\S+)",
    re.MULTILINE,
)
"""The names of containers and pods in a manifest or command."""


def _is_of(setting: _Stated, row: Row, blocks: Blocks) -> bool | None:
    """Returns whether a setting is that of a container or victim; None if nothing shows it.

    In one block of code, it is; in two, the names in that of the setting decide.
    """
    if setting.column == "go_version" or blocks.at(setting.line_no) == blocks.at(
        row["line_no"]
    ):
        return True
    names = {"".join(groups) for groups in _NAMES.findall(blocks.above(setting.line_no))}
    # The kernel names programs, not containers.
    own = {row.get(name) for name in ("name", "container", "pod")} - {None}
    if not names or not own:
        return None
    return any(f"{mine}-".startswith(f"{name}-") for mine in own for name in names)


_DESCRIBES = re.compile(
    r"\b(?:kubectl|oc) (?:-n \S+ )?describe (?:pods?|po)[ /](?:-n \S+ )?([a-z0-9][a-z0-9.-]*)"
)


def name_described(rows: Iterable[Row], blocks: Blocks) -> None:
    """Adds the name of its pod to an excerpt of `kubectl describe pod`, from its command."""
    for row in rows:
        if not row.get("pod") and (named := _DESCRIBES.findall(blocks.above(row["line_no"]))):
            row["pod"] = named[-1]


def _killed(rows: Iterable[Row]) -> tuple[str | None, int]:
    """Returns the only killed unit, container or program, if there is one, and where."""
    names = ("unit", "container_id", "comm")
    places = [(next(filter(None, map(row.get, names)), None), row["line_no"]) for row in rows]
    if len({name for name, _ in places}) != 1:
        return None, 0
    return places[0]


def _add_limit(kills: Iterable[Row], facts: Row) -> None:
    """Adds the limits that the input states to the kills at a limit of unknown size."""
    for row in kills:
        if row.get("scope") == "memcg" and not row.get("limit_bytes"):
            row |= {"limit_bytes": facts[_LIMIT_BYTES], "is_limit_stated": True}
            row.setdefault(_SWAP_BYTES, facts.get(_SWAP_BYTES))


def add(
    messages: Iterable[Message],
    states: list[Row],
    described: Sequence[Row],
    kills: Sequence[Row],
    events: Sequence[Row],
    cycles: Sequence[pl.DataFrame],
    blocks: Blocks,
) -> Iterator[str]:
    """Adds the settings that the input states to the only container in it; yields a note.

    Without a container, they belong to the program whose cycles follow, or to the only killed unit
    or program, and the limit belongs to the kills of the only program. If `docker stats`
    prints sizes, which may be the host's memory, only a limit of the same size counts.
    """
    rows = [*states, *described]
    named = {row.get("name") or row.get("container") or row.get("pod") for row in rows}
    # The container's own record shows its present setting.
    known = {name for row in rows for name, value in row.items() if value}
    printed = {row.get("memory_of_host_bytes") for row in rows} - {None}
    first_cycle = next((frame["line_no"][0] for frame in cycles if len(frame)), 0)
    place, first_kill = _killed(kills or events)
    live: list[Any] = [frame["heap_live_mib"].max() for frame in cycles]
    ended = [] if first_cycle else rows or kills
    agrees: dict[_Stated, set[bool | None]] = {
        setting: {_is_of(setting, row, blocks) for row in ended} or {True}
        for setting in _stated(messages, first_cycle or first_kill)
        if setting.column not in known
        and (not printed or setting.column != _LIMIT_BYTES or setting.value in printed)
    }
    usable, left = _usable(
        (setting for setting in agrees if agrees[setting] != {False}),
        first_cycle or first_kill,
        MIB * max(filter(None, live), default=0.0),
    )
    own = {column for column, setting in usable.items() if True in agrees[setting]}
    taken = set() if len(named) > 1 else own | _LIMITED
    left += [setting.quoted for name, setting in usable.items() if name not in taken | _MINOR]
    facts: Row = {name: setting.value for name, setting in usable.items() if name in taken}
    limit: Any = facts.get(_LIMIT_BYTES)
    # No process has more memory than the limit that it reached.
    if limit is not None and any((row.get("anon_rss_bytes") or 0) > limit for row in kills):
        del facts[_LIMIT_BYTES]
    if both := facts.pop(_BOTH, None):
        facts[_SWAP_BYTES] = swap_limit(facts.get(_LIMIT_BYTES), both)
    for row in rows:
        row |= facts
        if _LIMIT_BYTES in facts:
            row["is_limit_stated"] = _LIMIT_BYTES not in own
            row.pop("memory_of_host_bytes", None)
    if not rows and (first_cycle or place):
        line_no = max((setting.line_no for setting in usable.values()), default=0)
        of = {"name": None if first_cycle else place}
        states += [{"line_no": line_no, "event": STATED, **of, **facts}] if facts else []
    if left and (first_cycle or place or any(row.get("oom_killed") for row in rows)):
        yield _LEFT.format(" and ".join(left))
    if not rows and _LIMIT_BYTES in facts and len({row.get("comm") for row in kills}) == 1:
        _add_limit(kills, facts)
