"""Holds what a report says about OOM kills against the truth of `written_kills`.

Each check computes a statement a second time, with nothing of the package. A check yields what it
found, and what is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from tests.helpers.traced import NUMBER, SIZE, mib, milliseconds, number
from tests.helpers.written_kills import NOT_GO, SHOWS_YEAR, Kill, Task

Pair = tuple[object, object]


def audit(
    found: Sequence[Kill],
    prefix: str,
    report: dict[str, Any],
    markdown: str,
    *,
    has_cycles: bool = False,
) -> list[tuple[str, object, object]]:
    """Returns what a report says that the kills contradict, with the check."""
    text = re.sub(r"\\(?=[<>|_`*+#-])", "", markdown)
    victims = [(it, victim) for it in found for victim in (it.victim, *it.together)]
    wrong = [("rows", *pair) for pair in _rows(victims, prefix, report)]
    wrong += [
        ("headline", *pair)
        for pair in _headline(found, prefix, report, text, has_cycles=has_cycles)
    ]
    by_pid = {(victim.pid, it.after_s): (it, victim) for it, victim in victims}
    sections = re.split(
        r"^### (?=OOM kill: )", text.partition("### What happened")[0], flags=re.M
    )
    for section, death in zip(sections[1:], report["post_mortems"], strict=False):
        head, _, body = section.partition("\n")
        titled = re.match(r"OOM kill: (.*) \(pid (\d+)\)", head)
        if titled is None:
            if not re.search(r"\d+ times", head):
                wrong.append(("section", head, "a name and a pid"))
            continue
        for (pid, _), (it, victim) in by_pid.items():
            if pid == int(titled[2]) and pid == death["pid"]:
                body = re.split(r"^(?:### …|\| Figure)", body, flags=re.M)[0]
                wrong += [
                    ("section", *pair)
                    for pair in _section(it, victim, titled[1], body, has_cycles=has_cycles)
                ]
    return wrong


def _rows(
    victims: Sequence[tuple[Kill, Task]], prefix: str, report: dict[str, Any]
) -> Iterator[Pair]:
    """Yields rows of kills that are not those of the input."""
    rows = report["oom_kills"]
    if len(rows) != len(victims):
        yield [row["pid"] for row in rows], [victim.pid for _, victim in victims]
        return
    deaths = {death["pid"] for death in report["post_mortems"]}
    for row, (it, victim) in zip(rows, victims, strict=True):
        group = it.group
        truth: dict[str, object] = {
            "pid": victim.pid,
            "comm": victim.name,
            "scope": it.scope,
            "anon_rss_bytes": victim.anon * 1024,
            "file_rss_bytes": victim.file * 1024,
            "shmem_rss_bytes": victim.shmem * 1024,
            "limit_bytes": group and group.limit * 1024,
            "usage_bytes": group and group.usage * 1024,
            "failcnt": group and group.failcnt,
            "oom_memcg": group and group.path,
            "task_memcg": group.of_task if group else row["task_memcg"],
            "host": None if "dmesg" in prefix else "web1",
        }
        for name, value in truth.items():
            if row[name] != value:
                yield (name, row[name]), value
        if victim.pid not in deaths and victim not in it.together:
            yield "no post-mortem", victim.pid
        said = str(row["logged_at"] or row["printed_at"] or "")
        if prefix in SHOWS_YEAR and not any(
            f"{it.at + timedelta(milliseconds=ms):%H:%M:%S}" in said for ms in (0, 1)
        ):
            yield said, it.at
        if prefix == "dmesg" and abs(row["monotonic_s"] - it.clock_s) > 0.01:
            yield row["monotonic_s"], it.clock_s
    for death in report["post_mortems"]:
        if not death["proven"]:
            yield "not proven", death["pid"]


def _known(it: Kill, victim: Task) -> dict[str, float]:
    """Returns the sizes (KiB) of a kill by what they are."""
    sums: dict[str, int] = {}
    for task in it.rows:
        sums[task.name] = sums.get(task.name, 0) + task.rss
    sizes: dict[str, float] = {
        "resident": victim.anon + victim.shmem,
        "with files": victim.rss,
        "all": sum(task.rss for task in it.rows),
        "others": sum(task.rss for task in it.rows if task.pid != victim.pid),
        "ram": it.ram_kib,
        **{f"task {name}": size for name, size in sums.items()},
        **{f"task {task.pid}": task.rss for task in it.rows},
    }
    if it.group:
        own = vars(it.group)
        sizes |= {name: own[name] for name in ("limit", "usage", "anon", "swap", "kernel")}
        # Linux 4.4 does not print how much of it is shared memory, except that of the victim.
        shared = victim.shmem if it.kernel == "4.4" else it.group.shmem
        sizes["cache"] = it.group.file - shared
        sizes["files in memory"] = it.group.shmem - victim.shmem
        sizes["others' anonymous"] = others = it.group.anon - victim.anon
        # The rows count files in memory in each process that has them mapped. In Linux 4.4, any
        # part of the cache may be such files.
        others += it.group.file if it.kernel == "4.4" else 0
        shown = it.group.shmem if it.kernel != "4.4" else 0
        left = it.group.usage - victim.anon - (shown - victim.shmem) - it.group.kernel
        sizes["others under it"] = max(min(sizes["others"], others, left), 0)
    return sizes


def _is(said: tuple[str, str], kib: float) -> bool:
    """Returns whether a printed size is this one, up to its last digit."""
    size, true = mib(*said), kib / 1024
    digits = len(said[0].partition(".")[2])
    step = 10.0**-digits * (1024 if said[1] == "GiB" else 1)
    return abs(size - true) <= 0.51 * step + 1e-3 * true


_LIMIT = rf"(?:the limit of [^:]*?|its limit): {SIZE}"
_ADVICE = r"GOMEMLIMIT=(\d+)MiB \(90 % of ([^)]*)\)"


def _section(  # noqa: C901  # several sentences
    it: Kill, victim: Task, name: str, text: str, *, has_cycles: bool
) -> Iterator[Pair]:
    """Yields what the post-mortem of one kill says that is not so."""
    known, group = _known(it, victim), it.group
    if name != victim.name:
        yield name, victim.name

    def check(what: str, pattern: str, size: str) -> Iterator[Pair]:
        for said in re.findall(pattern, text):
            if size not in known or not _is(said[-2:], known[size]):
                yield (what, said), known.get(size)

    yield from check("memory", rf"\*\*Memory\*\* {SIZE} resident \(without", "resident")
    yield from check("memory", rf"\*\*Memory\*\* {SIZE} resident(?! \(without)", "with files")
    yield from check("limit", rf"It reached {_LIMIT}", "limit")
    yield from check("raise", rf"raise the limit of {SIZE}", "limit")
    yield from check("ram", rf"ran out of memory \({SIZE} of RAM", "ram")
    yield from check("tasks", rf"tasks? listed had {SIZE}", "all")
    yield from check("anonymous", rf"The kernel counted {SIZE} of anonymous memory", "anon")
    yield from check("anonymous", rf"{SIZE} of it in other processes", "others' anonymous")
    yield from check("cache", rf"{SIZE} were page cache", "cache")
    for hits in re.findall(r"The limit was hit (.*?) times?\.", text):
        if group is None or number(hits) != group.failcnt:
            yield hits, group and group.failcnt
    for which in re.findall(r"It reached|The host ran out|The memory nodes of its", text):
        if which != {"memcg": "It reached", "global": "The host ran out"}.get(
            it.scope, "The memory nodes of its"
        ):
            yield which, it.scope
    shared = re.search(r"It reached .*?which it shares with others", text)
    if shared and group and group.path == group.of_task:
        yield shared[0], group
    for count, *_, holders in re.findall(
        rf"The ([\d,]+) tasks? listed had {SIZE} resident \(shared pages counted in each\): (.*?)\.$",
        text,
        re.M,
    ):
        if number(count) != len(it.rows):
            yield (count, "tasks"), len(it.rows)
        for called, size, unit, *several in re.findall(
            rf"([\w-]+) {SIZE}(?: \((\d+) tasks\))?", holders
        ):
            true = known.get(f"task {called}", -1)
            if not _is((size, unit), true):
                yield (called, size), (true, known["all"])
            counted = sum(task.name == called for task in it.rows)
            if int(several[0] or 1) != counted:
                yield (called, several), counted
    yield from _advice(it, victim, text, known)
    if not has_cycles:
        yield from _unknown_sizes(text, known)


def _advice(  # noqa: C901  # several parts
    it: Kill, victim: Task, text: str, known: dict[str, float]
) -> Iterator[Pair]:
    advised = re.findall(_ADVICE, text)
    if victim.name in NOT_GO and (
        advised or "written in Go, set" in text or "gctrace=1" in text
    ):
        yield "advice for Go", victim.name
    for value, of in advised:
        base = known["limit"] if of.startswith("the limit") and it.group else known["resident"]
        least = 0.9 * base / 1024
        if of.startswith("the least that it had"):
            # `_least` has all kills.
            ends = (0.0, 0.9 * victim.rss / 1024)
        elif of.startswith("what it had"):
            ends = (0.9 * victim.anon / 1024, 0.9 * victim.rss / 1024)
        else:
            parts = [mib(*part) for part in re.findall(rf"the {SIZE} of", of)]
            slack = sum(0.01 * part + 0.1 for part in parts)
            ends = (least - sum(parts) - slack, least - sum(parts) + slack)
        if not ends[0] - 1 <= float(value) <= ends[1] + 1:
            yield (value, of), ends
        for part in re.findall(rf"the {SIZE} of the kernel", of):
            if "kernel" not in known or not _is(part, known["kernel"]):
                yield ("the kernel", part), known.get("kernel")
        for part in re.findall(rf"the {SIZE} of other processes under it", of):
            if it.group is None or not _is(part, known["others under it"]):
                yield ("other processes", part), known.get("others under it")
        if it.group:
            room = it.group.limit - it.group.anon + victim.anon
            if float(value) > 1.001 * room / 1024:
                yield (value, of), ("room without the anonymous memory of others", room / 1024)


_DERIVED = (r"GOMEMLIMIT=\d+MiB", r"the other [\d,]+ of the [\d,]+ MiB")


def _unknown_sizes(text: str, known: dict[str, float]) -> Iterator[Pair]:
    """Yields sizes that are none of the input."""
    for pattern in _DERIVED:
        text = re.sub(pattern, "", text)
    for line in text.splitlines():
        for said in re.findall(SIZE, line):
            if not any(_is(said, size) for size in known.values()):
                yield (said, line), {name: size / 1024 for name, size in known.items()}


def _headline(  # noqa: C901  # several sentences
    found: Sequence[Kill], prefix: str, report: dict[str, Any], text: str, *, has_cycles: bool
) -> Iterator[Pair]:
    sentence, action = report["verdict"]["sentence"], report["verdict"]["action"] or ""
    victims = [it.victim for it in found]
    if not any(victim.name in sentence for victim in victims):
        yield sentence, [victim.name for victim in victims]
    counts: dict[str, int] = {}
    for victim in victims:
        counts[victim.name] = counts.get(victim.name, 0) + 1
    for name, count in re.findall(
        r"(?:program |\band |^)([\w-]+) (?:was|were)? ?(?:killed )?\(?(\d+) times", sentence
    ):
        if counts.get(name) != int(count):
            yield (name, count), counts
    if len(victims) > 1 and len(counts) == 1 and f"{len(victims)} times" not in sentence:
        yield sentence, counts
    scopes = {it.scope for it in found}
    for words, scope in (
        ("host ran out", "global"),
        ("reached the limit", "memcg"),
        ("memory nodes", "cpuset"),
    ):
        if words in sentence and scope not in scopes:
            yield sentence, scopes
    every = {
        f"{name} {victim.pid}": size
        for it in found
        for victim in (it.victim, *it.together)
        for name, size in _known(it, victim).items()
    }
    if not has_cycles:
        ends = re.sub(rf"({NUMBER}) to ({NUMBER}) (MiB|GiB)", r"\1 \3 to \2 \3", sentence)
        yield from _unknown_sizes(f"{ends}\n{action}", every)
    if {victim.name for victim in victims} <= set(NOT_GO) and re.search(
        "GOMEMLIMIT=|GOGC=|written in Go, set", text
    ):
        yield "advice for Go", counts
    settings = {int(size) for size in re.findall(r"(?<!needs )GOMEMLIMIT=(\d+)MiB", text)}
    if len(found) == 1 and (
        len(settings) > 1
        or (found[0].group and max(settings, default=0) * 1024 > found[0].group.limit)
    ):
        yield settings, "one setting below the limit"
    yield from _apart(found, prefix, sentence)
    yield from _least(found, action)


def _apart(found: Sequence[Kill], prefix: str, sentence: str) -> Iterator[Pair]:
    """Yields times between kills that are not those of neighbours, or of two boots."""
    said = re.search(
        r", (?:every )?((?:\d+[dhms]+ ?)+?|[\d.]+ m?s)(?: to ((?:\d+[dhms]+ ?)+?))?(?: apart)?,",
        sentence,
    )
    if said is None or any(it.together for it in found):
        return
    gaps = [later.after_s - one.after_s for one, later in pairwise(found)]
    # A kernel's clock alone does not show the time between two boots if it falls.
    if prefix == "dmesg" and any(later.clock_s < one.clock_s for one, later in pairwise(found)):
        yield said[0], "unknown"
        return
    # Kills a few seconds apart are one incident.
    longer = [gap for gap in gaps if gap > 12] or gaps
    ends = min(longer), max(longer)
    for text, gap in zip((said[1], said[2] or said[1]), ends, strict=True):
        if abs(milliseconds(text) / 1000 - gap) > 0.05 * gap + 3601 * (gap > 86_400) + 1.01:
            yield said[0], ends


def _least(found: Sequence[Kill], action: str) -> Iterator[Pair]:
    """Yields a GOMEMLIMIT that would not have acted at one of the kills of its program."""
    for value in re.findall(
        r"GOMEMLIMIT=(\d+)MiB \(90 % of (?:what it|the least that it) had", action
    ):
        ends = [
            0.9 * min(it.victim.anon for it in found if it.victim.name == name) / 1024
            for name in {it.victim.name for it in found}
        ]
        if not any(abs(int(value) - end) <= 1 for end in ends):
            yield value, ends
