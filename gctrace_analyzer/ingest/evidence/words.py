"""The words by which inputs that are not gctrace are recognised.

They are separate from the readers of such inputs, because a pure gctrace log does not load these.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

COARSE = (
    "oom|OOM|pages RAM|pages of RAM|free:\\d|l swap|e swap|"
    "Alloc|heap_|heap-|heap\\.|eap in|eap idle|eap sys|eap rel|eap all|HeapSys|NumGC|"
    "alloc_|num_gc|next_gc|num gc|next gc|gc_next|gc_count|gc_pause|gc_total|gc_runs|gc_cycles|"
    "gc_cpu|GC run|"
    "memory_a|memory_h|memory_s|memstats|"
    "f memory|f Memory|f available|emory:|usable range|address space c|led process|"
    "process exited|try_charge|group_charge|charge_memcg|"
    "onsumed |failed|ailed with result|estart|holdoff|to cgroup|\\.service - |"
    "due to memory|due to swap|Marked /|/classes/|gc-cycles|container die|non-zero exit|"
    "exited with|DUE TO|: usage |NextGC|Mallocs|blob data|runtime stats|xitCode:|sending SIG|"
    'exited after|escalating to|xitCode":|'
    r'MESSAGE":\[|MESSAGE": \[|MESSAGE" :\[|MESSAGE" : \[|'
    "emory limit|Error R1|app\\.crash|"
    "mem_limit|memory_max|memswap_|MemorySwap|imits:|equests:|ervations:|deploy:|"
    "MemoryMax|MemoryLimit=|ocker run|ocker con|ocker create|odman |"
    "erdctl |-m \\d|--memory|GOGC|GOMEML|"
    "gctrace=|"
    "src/runtime/|cmd/compile|cmd/link|linux/a|linux/3|windows/a|darwin/a|"
    'ersion go1|ersion=go1|ersion: go1|ersion":"go1|ersion: 1|version 1|ith go1|ith Go 1|go=go1|'
    "ax Memory Used|axMemoryUsed|signal: killed|memory\\.|running mem|sample#|sysMap|sysUsed|"
    "Main PID: |anon \\d|file \\d|shmem \\d|kernel \\d|"
    "-rss:|\\.exe|task_memcg|sacrifice|signal 9\\)|mheap|mHeap|asm_|Sent interrupt|"
    "ow on resource: m|exceeds its request| was using|iction manager: |Evicted|CrashLoop|"
    "TERM_|being killed|exceeded limit|hard limit|gone over|out-of-mem|too much mem|physical mem|"
    "OUT_OF_ME|Out Of Mem|kill event|limit exceeded|limit at least|exit_status|TaskExit|"
    "he victim |to the victim|killed: |MemAvail|memorystatus|killing[ _]|exceeded mem l|by jetsam|"
    "matches res|Checking any|peak: |B / |iB/|MemUsage|"
    "OutOfMemory|Exited |code 137|status 137|ode: 137|Error 137|Killed|illed  |SIGKILL|by signal 9|"
    "zsh: killed|STOPPED |ovided container|"
    "panic: |fatal error: |cannot allocate |cannot map p|cannot reserve a|\\[running|"
    "total:bytes|goal:bytes|live:bytes|allocs:bytes|total:gc-|PauseT|GCCPU|PauseN|"
    "HeapI|HeapO|HeapR|LastGC|OtherSys|MCache|MSpan|BySize"
)
"""A faster, less exact search than `dispatch.HINT`, for logs that are mostly gctrace."""

PROMPT = r"^[\s>]{0,40}(?:\S{0,60}[$%❯] ?)"
"""The prompt of a shell, even in a quotation."""

STARTS = (
    rf"(?:{PROMPT}|^\+ )(?:.{{0,500}}\s)?\S{{0,60}}gctrace=[1-9]|"
    r"^\s{0,40}(?:-e|--env)[ =]\S{0,60}gctrace=[1-9]"
)
"""A command at a shell's prompt that starts a program, or its line that sets GODEBUG."""

OF_CUT = "Lines of `go test -bench` without a whole result"
"""Beginning of the note on truncated lines."""

BEGUN_UNREAD = "begins another process, whose first cycle could not be read"
"""End of the note on a damaged line behind the last cycle."""

OF_CRASH = "The program crashed"
"""Beginning of the note on panics and fatal errors."""

_AFTER_CRASH = (
    (r"create new OS thread.{0,60}errno=22", "The system refused to start a thread with EINVAL "
     "(errno 22), as emulators (qemu, WSL 1) do: build it for the CPU of the machine."),
    (r"pthread_create failed|newosproc|create new OS thread", "It could not start another thread: "
     "most often `ulimit -u`, pids.max of its cgroup or the host's kernel.threads-max is reached, "
     "or no memory is left for its stack. Find out which, and what blocks the threads: system "
     "calls or cgo."),
    (r"all goroutines are asleep", "Every goroutine waits for another one: the traceback has "
     "what each waits for, in brackets."),
    (r"^(?:panic|fatal error): |\[running", "What failed stands in the error and in the traceback "
     "after it."),
)  # fmt: skip


def after_crash(text: str) -> str:
    """Returns what to do about a panic or fatal error of Go, by its cause.

    >>> after_crash("fatal error: all goroutines are asleep - deadlock!")[:23]
    'Every goroutine waits f'
    """
    known = (hint for words, hint in _AFTER_CRASH if re.search(words, text, re.MULTILINE))
    return f"{next(known, _AFTER_CRASH[-1][1])} No GC setting changes that."


NOT_STARTED = (
    "StartError|ContainerCannotRun|RunContainerError|CreateContainer(?:Config)?Error|ErrImage|"
    "ImagePullBackOff|InvalidImageName|OCI runtime create failed|unable to start container|"
    r"CannotStartContainer|CannotPullContainer|Runtime\.InvalidEntrypoint"
)
"""Reasons and errors of a container or function whose program never ran."""

_TO_START = (
    ("exec format", "Build it for the operating system and "
     "architecture that it runs on (GOOS, GOARCH), and check that the file is a program."),
    ("permission denied", "Make the file executable (`chmod +x`), before it is packed or copied."),
    ("valid bootstrap|InvalidEntrypoint", "AWS Lambda's runtimes `provided.*` start an executable "
     "file named `bootstrap` at the top of the archive: check its name, place, mode and GOARCH."),
    ("no such file|not found", "Check the path of the command in its image, and that a program "
     "built with cgo finds its C library there (CGO_ENABLED=0 needs none)."),
    ("Image|Pull", "Check the name of the image, and whether it can be pulled."),
    ("", "Find out what kept it from starting: the events of its platform have the whole error."),
)  # fmt: skip


def not_started(state: Mapping[str, Any]) -> str | None:
    """Returns why the program of a container (a row of `container_states`) never ran, or None."""
    said = [text for name in ("error", "last_reason", "reason") if (text := state.get(name))]
    never_ran = re.search(NOT_STARTED, " ".join(said)) is not None
    is_other = state.get("oom_killed") or state.get("status") == "running"
    return said[0] if never_ran and not is_other else None


def to_start(error: str) -> str:
    """Returns what to do about a program that never ran, by the error of its platform.

    >>> to_start("fork/exec /var/task/bootstrap: exec format error")[:28]
    'Build it for the operating s'
    """
    return next(hint for words, hint in _TO_START if re.search(words, error))


OF_DOCUMENTS = (
    b"OOMKilled",
    b'"taskArn"',
    b'"PauseTotalNs"',
    b"go_memstats_alloc_bytes",
    b"runtime.MemStats",
    b"Restart Count:",
    b"restartCount",
    b'xitCode": 137',
    b"```",
)
"""Words of which every document within a log contains one; few, because each takes time."""

_OF_DESCRIBED_PODS = ("State:", "Restart Count:")
"""Words of which the output of `kubectl describe pod` contains one."""


def may_be_described(text: str) -> bool:
    """Returns whether a text may be `kubectl describe pod`; a quick look."""
    return any(word in text for word in _OF_DESCRIBED_PODS)


COMMAND = re.compile(
    r"^(?:\[?[\w.@:~/\\-]{1,60}[^\w\s]{0,3} ?[\w.~/-]{0,60}\]?)?[$#%>❯] ?(?:sudo )?"
    r"(?:docker|podman|nerdctl|kubectl|oc|crictl|journalctl|dmesg|[efz]?grep|rg|awk|sed|cat|tail|"
    r"systemctl|jq|nomad|aws|gcloud|curl|ssh|sudo) |"
    r"\| *(?:sudo )?(?:[efz]?grep|rg) +(?:-\w|[\"'\w])"
)
"""A command in a copied terminal; its line also contains what it searches for."""

NOT_LOGGED = re.compile(
    # A comment, a call with only a text, a call that ends in a block, and a field of a literal.
    # Rust prints values like a call.
    r"^[\s>]*(?://|/\*)|\s//\s|\w(?<!Some)\((?:\w+, )?\"[^\"]{0,200}\"[,)]|\w\(.{0,500}\{$|"
    r"^[\s>]*[A-Z]\w*:\s+\"[^\"]*\",$|"
    # A question or a rule
    r"^[\s>#*-]*(?:What|When|If|How|Why)\b"
)
"""Source code and documentation: the events that they name have not happened."""

_FIRST_COMMAND = re.compile(
    rf"\A(?:\s*\n)?(?:(?:[\w@:~/.-]{{0,60}}\$|PS [^\n>]{{0,99}}>) (?=\S)|(?={COMMAND.pattern}))"
    r"(?:[^\n]*\\\n)*[^\n]*"
)


def without_command(text: str) -> str:
    r"""Returns a text in which the command that printed it, on its first line, is left out.

    >>> without_command("$ curl -s localhost:8080/metrics\ngo_goroutines 7")
    '\ngo_goroutines 7'
    """
    match = _FIRST_COMMAND.match(text)
    return text if match is None else "\n" * match[0].count("\n") + text[match.end() :]


_OBJECT = r"\{\s*(?:[\"}]|\Z)"
# Go prints values in brackets and braces too, `[{api {nil …`, but without quotes.
JSON = re.compile(rf"^\s*(?:\[\s*(?:[\[\"]|\Z|{_OBJECT})|{_OBJECT})")
"""Beginning of JSON text."""

JSON_FRAGMENT = re.compile(r"^\s*\"[A-Za-z]\w*\"\s*:")

YAML_FIRST = (
    r"apiVersion: [\w./]+|kind: [A-Z]\w+|insertId: \S+|containerID: \S+|"
    r"(?:items|status|containerStatuses|lastState|terminated|state):"
)
"""The first line of a YAML document, or its beginning."""

YAML = re.compile(
    rf"\A(?:---[ \t]*\n|[ \t]*#[^\n]*\n|[ \t]*\n)*[ \t]*(?:- )?(?:{YAML_FIRST})[ \t]*\n"
)
"""Beginning of YAML text."""

OWN = "a report of gctrace-analyzer"
OWN_REPORT = (
    r"\A(?:[^\n]{1,999} · (?:[\d,]+ cycles?|no gctrace|[^\n·]{1,30} in total of \d+ processes)"
    r"[^\n·]{0,40}\n|(?:A:|before) +[^\n]+ allocated\n|\d[\d,]* files? · [\d,]+ processe?s?\b|"
    r"## Go garbage collection\b|\{\s*\"schema_version\": \d+,\s*\"(?:sources|verdict)\"|"
    r"\{\"file\":\"[^\"\n]{0,999}\",\"server\":|"
    r"\s*<!doctype html>(?s:.{0,999})<meta name=\"generator\" content=\"gctrace-analyzer)"
)
"""The first line of a report of this package, in each of its formats."""

CONSUMED = re.compile(r"([^\s:]{1,64}) \(\d{1,10}\) consumed (\d{1,15}) bytes")
"""Message of Windows (Resource-Exhaustion-Detector) about the largest programs."""
