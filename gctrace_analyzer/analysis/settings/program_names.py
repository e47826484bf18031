"""Compares the names of programs, of their files and of records about them.

A file is often named after its program, a pod or unit always. Names with a common word belong to
one program, as far as names can show it; names without one belong to two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath

_LEAST_LETTERS = 3
_WORD = re.compile(rf"[a-z]{{{_LEAST_LETTERS},}}")
_CODE = re.compile(r"\b[0-9a-f]{12,64}\b")
_RANDOM = re.compile(r"(?<![a-z0-9])[bcdf-hj-np-tv-xz2-9]{5,10}(?![a-z0-9])")
"""Suffix that Kubernetes adds to the name of a pod (rand.SafeEncodeString): not a word."""

_GENERAL = frozenset(
    re.findall(
        r"\w+",
        """
        run runs running out output log logs stderr stdout err error errors text txt json jsonl yaml
        yml csv data file dump dumps input tmp temp trace traces gctrace debug godebug golang app
        apps application main program prog proc process service services svc server daemon bin exe
        cmd binary pod pods container containers containerd docker podman kubectl kube kubernetes
        describe inspect default journal journalctl syslog systemd message messages dmesg kern
        kernel console
        before after old new prev previous last current latest first second prod production staging
        stage dev test testing tests local sample samples example incident case oom killed kill
        kills crash crashed memory mem heap limit limits leak leaks thrash steady spike pause pauses
        slow fast good bad baseline base head copy full all part metrics memstats stats vars pprof
        paste pasted pasteboard clip clipboard copied snippet excerpt gist issue ticket comment
        thread mail message chat slack note notes report reported question answer
        postmortem mortem untitled unnamed unknown misc stuff foo bar baz scratch upload
        download downloads
        attachment saved export exported terminal screen session console typescript nohup
        query frame user root slice scope session init kubepods burstable besteffort guaranteed
        libpod crio cri the and for from with mnt var opt home state states
        """,
    )
)
"""Words that name no program but logs, releases and problems."""

SIDECAR = re.compile(
    r"istio-(?:proxy|init)|linkerd-(?:proxy|init)|envoy(?:-\w+)?|(?:aws-for-)?fluent-?bit|fluentd|"
    r"vault-agent(?:-init)?|(?:cloud-?sql|oauth2|kube-rbac)-proxy|log_router|daprd|datadog-agent|"
    r"xray-daemon|otel-collector"
)
"""Names of sidecar containers, whose log is not that of the service."""

_TRACED = re.compile(r"\bgctrace=[1-9]")


def words(names: Iterable[str | None]) -> frozenset[str]:
    """Returns the words in names that may name a program.

    >>> sorted(words(["orders-7c9d8b6f5-x2x7q", "logs/leakd.stderr.log", "<stdin>"]))
    ['leakd', 'orders']
    """
    # An input without a file is named after its source.
    named = (name for name in names if name and not name.startswith("<"))
    plain = (_RANDOM.sub("", _CODE.sub("", PurePath(name).name.lower())) for name in named)
    return frozenset(word for name in plain for word in _WORD.findall(name)) - _GENERAL


def agree(
    names: Iterable[str | None],
    others: Iterable[str | None],
    places: Iterable[str | None] = (),
) -> bool | None:
    """Returns whether names belong to one program; None if they do not show it.

    Args:
        names: the names of one record, or of its file.
        others: the names of another record.
        places: hosts and namespaces of the other record: a file may be named after these too.
    """
    names, others = list(names), list(others)
    mine, theirs = words(names), words(others)
    if _have_common(mine, theirs) or _random(names) & _random(others):
        return True
    return None if not (mine and theirs) or _have_common(mine, words(places)) else False


def _random(names: Iterable[str | None]) -> set[str]:
    return {part for name in names if name for part in _RANDOM.findall(name.lower())}


def carry(names: Iterable[str], pod: str) -> bool:
    """Returns whether a name contains that of a pod, or its unique suffix."""
    whole, last = re.compile(rf"{re.escape(pod)}(?!-?\w)"), set(_RANDOM.findall(pod)[-1:])
    return any(whole.search(name) or last & _random([name]) for name in names)


def _have_common(mine: Iterable[str], theirs: Iterable[str]) -> bool:
    """Returns whether a word of one name begins a word of the other: the kernel cuts long names."""
    return any(one.startswith(two) or two.startswith(one) for one in mine for two in theirs)


def fullness(names: Iterable[str | None], container: Iterable[str | None]) -> tuple[int, int]:
    """Returns how well names match a container: its words found, minus its words missing."""
    mine, theirs = words(names), words(container)
    common = sum(_have_common(mine, [word]) for word in theirs)
    return common, common - len(theirs) if common else 0


def traces(container: Mapping[str, object]) -> int:
    """Returns how likely a log with GC cycles belongs to a container: higher is likelier."""
    if _TRACED.search(str(container["godebug"] or "")):
        return 2
    return 0 if SIDECAR.fullmatch(str(container["container"] or container["name"])) else 1


def of_process(process: Mapping[str, object], source: object) -> list[str | None]:
    """Returns the names of a process, with its file's if a record is in another file.

    Args:
        process: a row of `schema.PROCESSES`.
        source: the input with the record.
    """
    file = process.get("source")
    names = [process[name] for name in ("ident", "container", "pod", "unit")]
    names += [] if str(file) == str(source) else [file]
    return [None if name is None else str(name) for name in names]
