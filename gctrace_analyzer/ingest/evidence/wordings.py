"""What platforms, batch systems and low-memory killers print when they end a program.

Each row is one wording of one program, from its source or documentation. `platforms.py` uses the
rows without knowing platforms by name.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from gctrace_analyzer.ingest.evidence.message import KILLED_AT_START, NO_ENTRYPOINT

Says = Literal[
    "killed",
    "from the code",
    "in a group",
    "at its limit",
    "used",
    "ended",
    "stopped",
    "never ran",
]
"""What a wording proves.

`killed`: the program was ended for memory. `from the code`: the same, but the words were made from
an exit code that any SIGKILL has. `in a group`: the kernel killed a process of a container or job.
`at its limit`: the limit was reached, which need not end anything. `used`: how much memory
something that runs uses now. `ended`: an exit code alone.
`stopped`: the program was ended, or asked to end, for a reason other than memory. `never ran`: it
could not be started.
"""


class Wording(NamedTuple):
    """A line that a program prints.

    Attributes:
        who: the program that prints the line.
        says: what the line proves.
        word: text in every such line.
        pattern: the line. Its groups are columns: `limit`, `used`, `request` (each with a `_unit`),
            `code`, `name`, `id`, `error`, `n` (how often a limit was hit).
        cause: for `stopped`, the reason: the end of "was killed after …".
    """

    who: str
    says: Says
    word: str
    pattern: re.Pattern[str]
    cause: str = ""


def _size(name: str) -> str:
    """Returns the pattern of a size; without a unit it is in bytes."""
    return (
        rf"(?P<{name}>\d{{1,19}}(?:\.\d{{1,6}})?)"
        rf"(?: ?(?P<{name}_unit>[KkMmGgTt])(?:i?[Bb]|egabytes)?)?\b"
    )


_LIMIT, _USED = _size("limit"), _size("used")
# Without a limit, `docker stats` prints the memory of the host (`docker.mark_limits`).
_OF_HOST = _size("host")
_CODE = r"(?P<code>\d{1,3})"
_ID = r"(?P<id>[0-9a-f]{12,64})"
_NAME = r"(?P<name>[\w./-]{1,253})"
_COMMAND = (
    r"(?:(?:(?:\w{1,99}=\S{0,300}|env|exec|nohup|sudo|time) +){0,20}"
    r"(?:\S{0,300}/)?(?P<name>[\w.-]{1,100})(?: .{0,999})?|\(.{0,999})"
)
"""A command of a shell, with the program that it runs."""


def _rows(who: str, *rows: tuple[Says, str, str] | tuple[Says, str, str, str]) -> list[Wording]:
    return [
        Wording(who, says, word, re.compile(pattern), *cause)
        for says, word, pattern, *cause in rows
    ]


_SIZES_OF_STATS = rf"{_USED} ?/ ?{_OF_HOST}(?:\s|$)"
_ROW_OF_STATS = (
    rf"^(?:{_ID}\s+)?(?P<name>[^\s%]{{1,128}})\s+(?=.{{0,99}}%)(?:[\d.]{{1,9}}%\s+){{0,2}}"
    rf"{_SIZES_OF_STATS}"
)
"""A container in a table of `docker stats`, whose `--format` may leave out columns."""

SIZES_OF_STATS = re.compile(_SIZES_OF_STATS)
"""The memory of a container in a document of `docker stats`."""

ASKED = "it was asked to stop"
"""The reason of SIGKILL for a program that did not end in time after SIGTERM."""

# fmt: off
WORDINGS: tuple[Wording, ...] = (
    # The sizes of Google's platforms are binary, whether "MB", "M" or "MiB".
    *_rows("Google Cloud Run",
        ("killed", "emory limit of", rf"Memory limit of {_LIMIT} exceeded with(?: {_USED})?"),
        ("killed", "memory limit of",
            rf"Exceeded (?:soft |hard )?(?:private )?memory limit of {_LIMIT} with(?: {_USED})?"),
        ("killed", "emory limit exceeded",  # of a table: level, name, execution, time
            r"(?:^(?:[A-Z]\s+)?(?P<name>[a-z][\w-]{0,62})\s+[a-z0-9]{12}\s+"
            r"(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?)\s+)?"
            r"Error: memory limit exceeded"),
        ("killed", "user-provided container",  # `gcloud run deploy` prints it twice
            r"Revision '(?P<name>[\w-]{1,63})'.{0,100}user-provided container ran out of memory"),
        ("killed", "user-provided container", r"^(?!.*Revision ').*container ran out of memory"),
        ("killed", "too much memory", r"found to be using too much memory and was terminated"),
    ),
    *_rows("Vercel",
        ("killed", "out of available memory",
            r"instance was killed because it ran out of available memory"),
        ("killed", "of Memory\" ", r"\"Out of Memory\" \(\"OOM\"\) event was detected"),
    ),
    *_rows("Railway",
        ("killed", "Out of Memory!", r"Deploy Ran Out of Memory!"),
        ("killed", "ran out of memory within",
            r"service (?P<name>[\w.-]{1,100}) in .{1,120}? ran out of memory within the"),
        ("killed", "ran out of memory within",
            r"ran out of memory within the \S{1,60} environment"),
    ),
    *_rows("Mesos",
        ("killed", "emory limit exceeded",
            r"(?:[Tt]ask (?P<name>[\w.-]{1,200}): TASK_[A-Z]{1,20} \()?"
            rf"Memory limit exceeded: Requested: {_LIMIT} Maximum Used: {_USED}"),
    ),
    *_rows("Render",
        ("killed", "Ran out of memory", rf"Ran out of memory \(used over {_LIMIT}\)")),
    *_rows("Cloud Foundry",  # depot/steps/run_step.go of its executor
        ("killed", "app.crash",
            r"app\.crash\s+(?P<name>[\w.-]{1,100})\s.{0,400}?"
            rf"Exit(?:ed with)? status {_CODE} \(out of memory\)"),
        ("killed", "(out of memory)",  # the API, of the same end
            rf"App instance exited.{{0,400}}?Exited with status {_CODE} \(out of memory\)"),
        ("killed", "(out of memory)",
            r"(?:\[(?:APP|CELL)(?:/PROC)?/(?P<name>[\w./-]{1,100})\] )?.{0,8}?"
            rf"Exit(?:ed with)? status {_CODE} \(out of memory\)"),
        # Diego adds the words to any error in a container with an OOM event.
        ("in a group", "(out of memory)",
            r"\[(?:API|CELL|HEALTH|PROXY|SSH|STG)/.{1,400}\(out of memory\)$"),
        ("stopped", "graceful shutdown interval", r"exceeded \S{1,20} graceful shutdown interval",
            ASKED),
    ),
    *_rows("Heroku",
        ("stopped", "Error R12", r"Error R12 \(Exit timeout\)", ASKED),
        ("stopped", "processes with SIGTERM", r"Stopping all processes with SIGTERM", ASKED)),
    *_rows("Nomad",
        ("from the code", "OOM",
            rf"Exit Code: {_CODE},.{{0,200}}?\b(?i:OOM Killed)(?!\S? ?[:=] ?false)"),
        ("from the code", "OOM", r"\bTerminated +\\*\"?(?i:OOM Killed)"),
        ("from the code", "OOM", r"\b(?i:OOM Killed)\\*\"? *[:=] *\\*\"?true"),
        ("from the code", "OOM Killed",
            r"(?:task \"(?P<name>[^\"]{1,100})\".{0,100}?)?exit code (?P<code>\d{1,3})"
            r",? signal \d{1,3},? and error:? \"?OOM Killed"),
        ("stopped", "Sent interrupt", r"Sent interrupt", ASKED),
        ("stopped", "force killing", r"[Ff]orce[- ]killing|Kill Timeout", ASKED),
        ("stopped", "User requested", r"User requested task to stop", ASKED)),
    *_rows("runc",  # libcontainer/process_linux.go; `kubectl describe` has it as a message
        ("killed", KILLED_AT_START, rf"^(?!\s*Message:).*?{KILLED_AT_START}")),
    *_rows("AWS ECS",  # agent/dockerclient/dockerapi/docker_client.go of its agent
        ("in a group", "died due to OOM",
            rf"process within container {_ID}(?: \(name: \\*\"{_NAME}\\*\"\))? died due to OOM")),
    *_rows("AWS Lambda",
        ("never ran", "RequestId: ",
            r"RequestId: [\w-]{1,40} Error: "
            r"(?P<error>(?:Couldn't find valid bootstrap|fork/exec /).{0,200})"),
        ("never ran", NO_ENTRYPOINT, NO_ENTRYPOINT)),
    *_rows("containerd",  # internal/cri/server/events.go prints the protobuf messages
        ("in a group", "TaskOOM",
            rf"TaskOOM event .{{0,16}}?[Cc]ontainer_?(?:id|ID):\s?\\*\"?{_ID}"),
        ("ended", "exit_status",
            rf"exit event .{{0,4}}container_id:\\*\"{_ID}\\*\".{{0,200}}?exit_status:{_CODE}\b"),
        ("ended", "TaskExit event",
            rf"TaskExit event .{{0,16}}?[Cc]ontainer_?(?:id|ID):\s?\\*\"?{_ID}.{{0,200}}?"
            rf"[Ee]xit_?[Ss]tatus:{_CODE}\b"),
        ("stopped", "StopContainer", rf"StopContainer for \\*\"{_ID}", ASKED)),
    *_rows("Slurm",  # task_cgroup_memory.c, jobacct_gather.c; 17.11 to 25.05
        ("in a group", "kill event",
            r"Detected (?P<kills>\d{1,9}) oom[-_]kill event(?:\(s\)|s)? in "
            r"(?P<name>(?:step |StepId=|Step=)\S{1,60}?)(?=\.?(?:\s|$))"),
        ("in a group", "State: OUT_OF_ME", r"^State: OUT_OF_MEMORY"),  # seff
        ("in a group", "Out Of Memory",
            r"srun: error: \S{1,100}: tasks? [\d,-]{1,60}: Out Of Memory"),
        ("in a group", "OUT_OF_ME",
            r"^\s*(?P<name>\d{1,12}(?:_\d{1,9})?(?:\.\w{1,20})?\+?)[\s|].{0,300}?"
            r"\bOUT_OF_ME(?:MORY\b|\w{0,3}\+)"),
        ("killed", "being killed",
            rf"(?P<name>StepId=\S{{1,60}}) exceeded (?:virtual )?memory limit "
            rf"\({_USED} > {_LIMIT}\), being killed"),
        # Before 20.02 the sizes were in bytes or in KB.
        ("killed", "being killed",
            r"(?:Job|Step) (?P<name>\d\S{0,60}) exceeded (?:virtual )?memory limit "
            r"\(\d{1,19} > \d{1,19}\), being killed"),
        ("killed", "Exceeded job memory limit", r"Exceeded job memory limit(?! at some point)"),
        ("at its limit", "memory limit at some point",
            r"Exceeded (?:step|job) memory limit at some point"),
        ("at its limit", "limit at least once",
            r"(?P<name>(?:StepId=|Step |Job )\S{1,60}) hit memory(?:\+swap)? limit at least once"),
        ("stopped", "DUE TO",
            r"CANCELLED AT \S{1,40} DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE|TASK FAILURE)",
            "Slurm cancelled its job"),
    ),
    *_rows("LSF",  # termination reasons of bacct, bhist and bjobs
        ("killed", "TERM_",
            r"TERM_(?:MEMLIMIT|SWAP): ?[Jj]ob killed after reaching LSF \w{1,10} usage limit"),
        ("stopped", "TERM_",
            r"TERM_(?:RUNLIMIT|CPULIMIT|DEADLINE|PREEMPT|OWNER|ADMIN|FORCE_OWNER|FORCE_ADMIN)\b",
            "LSF ended its job"),
    ),
    *_rows("PBS",  # resmom/mom_main.c, hooks/cgroups/pbs_cgroups.PY
        ("killed", "exceeded limit",
            rf"\bp?v?mem(?: job total)? {_USED} exceeded limit {_LIMIT}"),
        ("at its limit", "limit exceeded", r"Cgroup mem(?:sw|ory|ory\+swap)? limit exceeded"),
        ("stopped", "exceeded limit", r"PBS: job killed: (?:walltime|cput|ncpus)\b",
            "PBS ended its job"),
    ),
    *_rows("Grid Engine",  # daemons/execd/msg_execd.h
        ("killed", "exceeds job hard limit",
            rf"job (?P<name>\d\S{{0,30}}) exceeds job hard limit \"h_(?:vmem|rss|data)\" of queue "
            rf"\"[^\"]{{1,200}}\" \({_USED} > limit: ?{_LIMIT}\) - sending SIGKILL"),
    ),
    *_rows("HTCondor",  # condor_starter.V6.1/vanilla_proc.cpp
        ("killed", "gone over",
            rf"(?:^|\s)(?:(?P<name>\d{{1,12}}\.\d{{1,9}})\s.{{0,200}}?)?Job has gone over "
            rf"(?:cgroup )?memory limit of {_LIMIT}"
            rf"(?:\.\s+(?:Last measured|Peak) usage: {_USED})?"),
        ("killed", "out-of-memory event", r"Job has encountered an out-of-memory event")),
    *_rows("YARN",  # ContainersMonitorImpl; the older wording has no number and no quotes
        ("killed", "physical memory",
            r"(?:containerID=(?P<name>\w{1,100})\] is ?running (?:\d{1,20}B )?beyond (?:the )?'?"
            r"(?:physical|PHYSICAL)'? memory limits?\. Current usage: |"
            r"Container killed by YARN for exceeding (?:physical )?memory limits\. )"
            rf"{_USED} of {_LIMIT} physical memory used"),
    ),
    *_rows("Fly.io",
        ("killed", "OOM killed", r"appears to have been OOM killed"),
        ("killed", "because it ran out of memory",
            r"(?P<name>[\w-]{1,63})\W{1,2} application hosted on Fly\.io crashed because it ran"),
    ),
    *_rows("Woodpecker",  # cmd/agent and the backends of its pipelines
        ("killed", "received oom kill",
            r"(?:uuid=(?P<name>\w{1,40}): )?received oom kill")),
    *_rows("Bitbucket Pipelines",  # the build container, and those of services
        ("killed", "exceeded memory limit",
            r"(?:Container|Service) '(?P<name>[\w.-]{1,100})' exceeded memory limit"),
    ),
    *_rows("OpenShift",
        ("killed", "OutOfMemoryKilled",  # `oc get builds` has the name first
            r"(?:^(?P<name>[\w.-]{1,253})\s+(?:Docker|Source|Custom|JenkinsPipeline)\s.{0,300})?"
            r"\bOutOfMemoryKilled\b"),
        ("killed", "out of memory condition",
            r"pod was killed due to an out of memory condition"),
    ),
    *_rows("a container",
        ("killed", "oom_killed", rf"(?:exit_code[=:] ?{_CODE},? ?)?oom_killed[=:] ?true")),
    *_rows("Kubernetes",  # pkg/kubelet: kuberuntime, preemption, active_deadline, nodeshutdown
        ("stopped", " probe, ",
            rf"[Cc]ontainer \"?{_NAME}\"? (?:failed|is unhealthy,?.{{0,10}}) ?(?:liveness|startup) "
            r"probe, (?:will be|it will be) (?:killed and )?re",
            "its liveness or startup probe failed"),
        ("stopped", "Preempt",
            r"Preempted (?:in order to admit critical pod|by (?:a )?\S{1,253} on node)",
            "its pod was preempted by a more important one"),
        ("stopped", "specified deadline",
            r"active (?:on the node )?longer than (?:the )?specified deadline",
            "the deadline of its pod or job (activeDeadlineSeconds) had passed"),
        ("stopped", "node shutdown", r"imminent node shutdown", "its node was told to shut down"),
        ("stopped", "low on resource", r"low on resource: (?!memory)[\w-]{1,40}",
            "its pod was evicted because its node ran low on a resource that is not memory"),
        ("stopped", "ephemeral", r"ephemeral (?:local )?storage (?:limit|usage)",
            "its pod was evicted for the disk space that it used"),
        ("stopped", "EmptyDir volume", r"EmptyDir volume \S{1,260} exceeds the limit",
            "its pod was evicted because an emptyDir volume grew beyond its sizeLimit"),
        ("stopped", "definition changed",
            rf"Container {_NAME} definition changed, will be restarted",
            "its definition changed"),
        ("stopped", "Stopping container", rf"Stopping container {_NAME}", ASKED),
        ("stopped", "grace period",
            r"Killing container with a grace period.{0,400}?containerName=\"(?P<name>[\w.-]+)\"",
            ASKED),
    ),
    *_rows("docker stats",  # cli/command/container/formatter_stats.go
        ("used", "iB / ", _ROW_OF_STATS),
        ("used", "iB/", _ROW_OF_STATS),  # up to Docker 1.11
        ("used", "B / ", rf"{_ROW_OF_STATS}(?P<decimal>)"),  # up to Docker 1.9
        ("used", "\"MemUsage\":",
            rf"\"ID\":\"{_ID}\",\"MemPerc\":\"[\d.]{{1,9}}%\",\"MemUsage\":\"{_USED} / {_OF_HOST}"
            r"\",\"Name\":\"(?P<name>[^\"]{1,128})"),
    ),
    *_rows("a shell and supervisord",
        ("stopped", " stop ",
            r"[$#] (?:sudo )?(?:docker|podman) (?:\w+ )?stop (?:-\S+ )*(?P<name>[\w.-]+)$", ASKED),
        ("stopped", " delete ",
            r"[$#] kubectl (?:.{0,99} )?delete pods?[ /](?P<name>[a-z0-9.-]+)", ASKED),
        ("stopped", " to stop", r"waiting for (?P<name>[\w.:-]{1,100}) to stop", ASKED)),
    *_rows("Docker",  # daemon/stop.go, daemon/cluster/executor/container/errors.go, compose
        ("stopped", "container stop", rf"container stop {_ID}", ASKED),
        ("stopped", "to exit within",
            r"[Cc]ontainer (?P<id>[0-9a-f]{12,64})? ?failed to exit within", ASKED),
        ("stopped", "Gracefully stopping", r"Gracefully stopping", ASKED),
        ("stopped", "unhealthy container", r"dockerexec: unhealthy container",
            "its health check failed"),
    ),
    *_rows("go test",  # cmd/go/internal/test
        ("stopped", "ran too long", r"\*\*\* Test killed.{0,40}: ran too long",
            "it ran longer than `go test -timeout` allows"),
    ),
    *_rows("os/exec",
        ("stopped", "killed: context", r"signal: killed: context (?:deadline|cancel)",
            "the context of its command was canceled or had passed its deadline"),
    ),
    *_rows("timeout",  # of GNU coreutils
        ("stopped", "sending signal", r"^timeout: sending signal",
            "it ran longer than `timeout` allows"),
    ),
    *_rows("anyone",
        ("ended", "task: non-zero", r"^(?P<id>[0-9a-z]{12,25}) +(?:\\_ +)?(?P<name>[\w.-]{1,253}) "
            r".{0,999}\"task: non-zero exit \((?P<code>137)\)"),  # of `docker service ps`
        ("ended", "137",
            r"(?:exit(?:ed)?(?: with)?(?: a)?(?: non-zero)?(?: exit)? (?:code|status):?|Exit Code:|"
            r"Exit status|non-zero exit|non-zero code:|called exit) ?[('\"]?(?P<code>137)\b"),
        ("ended", "137", r"^make(?:\[\d{1,3}\])?: \*\*\* \[.{1,200}\] Error (?P<code>137)$"),
        ("ended", "137", rf"\|\s{{1,99}}{_NAME}\s{{1,99}}\|\s{{1,99}}STOPPED\s{{1,99}}\|"
            r"\s{1,99}(?P<code>137)\s"),
        # Go's exec.ExitError, and so `go run`, `go build` and reloaders
        ("ended", "signal: killed", r"(?:^|(?<=: )|/(?P<name>[\w.-]{1,100}): )signal: killed"
            r"(?:\s*$|,|: context)"),
        # Shells, and time(1)
        ("ended", "illed",
            r"^(?:\S{1,200}: line \d{1,9}: +|zsh: |\[\d{1,9}\] {0,2}[+-]? +)?(?:\d{1,9} +)?"
            rf"[Kk]illed(?:: 9)?(?: {{2,99}}(?!Task successfully killed){_COMMAND})?$"),
        ("ended", "signal 9)", r"^\[Process completed \(signal 9\)"),  # Termux
        ("ended", "by signal 9", r"^Command terminated by signal 9$"),
        ("ended", "Killed", r"^make(?:\[\d{1,3}\])?: \*\*\* \[.{1,200}\] Killed$"),
        # fish, JetBrains' IDEs, supervisord, PM2
        ("ended", "SIGKILL", r"'(?:\S{0,300}/)?(?P<name>[\w.-]{1,100})[^']{0,999}' terminated by "
            r"signal SIGKILL"),
        ("ended", "SIGKILL", r"interrupted by signal 9: SIGKILL"),
        ("ended", "SIGKILL", r"(?:^|(?:exit|stopp)ed: )(?P<name>[\w.:-]{1,99}) \(terminated by S"),
        ("ended", "SIGKILL", r"App \[(?P<name>[^\]]{1,100})\] exited with code .{1,30}SIGKILL"),
    ),
)
# fmt: on
"""Every wording, the more specific one of a platform first."""

# fmt: off
NEARBY: tuple[Wording, ...] = (
    *_rows("LSF",
        ("killed", "Subject: Job",
            r"Subject: Job \d{1,12}(?:\[\d{1,9}\])?: <(?P<name>[^>]{1,100})>"),
        ("killed", "Exited with", rf"Exited with exit code {_CODE}"),
        ("killed", "Max Memory", rf"^\s*Max Memory :\s+{_USED}"),
        ("killed", "Total Requested Memory", rf"Total Requested Memory :\s+{_size('request')}")),
    *_rows("Slurm",  # seff
        ("in a group", "Job ID: ", r"^Job ID: (?P<name>\d{1,12}(?:_\d{1,9})?)$"),
        ("in a group", "Memory Utilized: ", rf"^Memory Utilized: {_USED}"),
        ("in a group", "Memory Efficiency: ",
            rf"^Memory Efficiency: [\d.]{{1,9}}% of {_LIMIT}")),
    *_rows("Nomad",  # `nomad alloc status`
        ("killed", "Task \"", r"^Task \"(?P<name>[^\"]{1,100})\" is \""),
        ("killed", " MHz ",
            rf"^\d{{1,9}}/\d{{1,9}} MHz +\d{{1,9}}(?:\.\d)? (?:[KMG]i)?B/{_LIMIT}"),
        # With memory_max, the first limit is a reservation.
        ("at its limit", "Max: ", rf"^\s*Max: {_LIMIT}")),
    *_rows("Cloud Foundry",  # `cf app`
        ("killed", "memory usage:", rf"^memory usage:\s+{_LIMIT}\s*$")),
    *_rows("Render", ("killed", "Instance failed", r"Instance failed: (?P<name>\w{1,40})")),
)
# fmt: on
"""Words of platforms on lines near a kill; the first begins the report on one end."""

HINT = "|".join(
    sorted(
        {re.escape(wording.word) for wording in (*WORDINGS, *NEARBY) if wording.who != "anyone"}
        | {"JobID +", "^-{3,} -{3}"}
    )
)
"""Every line of a wording contains a match of this, except an exit code alone; so does the head of
a table of sacct."""


class Killer(NamedTuple):
    """A line of a program that ends others when memory is low, or of a kernel other than Linux.

    Attributes:
        who: the killer; the kernel is `kernel`.
        is_kill: whether the line reports the kill; otherwise it is about the victim or the host.
        pattern: the line. Its groups are columns of `oom_kills`, with `_mib` for sizes in MiB.
    """

    who: str
    is_kill: bool
    pattern: re.Pattern[str]


VIRTUAL = re.compile(r"\b(?:h_|p)?vmem\b|virtual memory|TERM_SWAP")
"""Words of batch systems about a limit of virtual memory."""

THRESHOLD_KILLERS = ("earlyoom", "nohang")
"""Killers that act when the host has less available memory than their own threshold. They first ask
a program to end (SIGTERM)."""

OWN_LIMIT = "per-process-limit"
"""Message of macOS and iOS about a program that reached its own limit."""

SUPERVISORS = ("PM2", "memmon", "Monit")
"""Programs that restart another one, for memory or any other reason."""

_MIB = r"\d{1,12}(?:\.\d{1,3})?"
# fmt: off
KILLERS: tuple[Killer, ...] = tuple(
    Killer(who, is_kill, re.compile(pattern))
    for who, is_kill, pattern in (
        # main.c and kill.c of earlyoom 1.2 to 1.9: the badness was renamed, some fields are new
        ("earlyoom", True,
            r"(?:sending SIG(?:TERM|KILL) to|killing) process (?P<pid>\d{1,10})(?: uid "
            r'(?P<uid>\d{1,10}))? "(?P<comm>.{0,64}?)"(?: with .{8,9})?(?:: (?:badness|oom_score) '
            rf"(?P<score>-?\d{{1,10}})|:?$)(?:.{{0,64}}?VmRSS (?P<anon_rss_mib>{_MIB}) MiB)?"),
        ("earlyoom", False,
            rf"mem avail: *(?P<available_mib>{_MIB}) of +(?P<host_mib>{_MIB}) MiB"
            rf"(?:.{{0,40}} free: +{_MIB} of +(?P<swap_limit_mib>{_MIB}) MiB)?"),
        ("earlyoom", False,
            r"[Ll]ow [Mm]emory! (?:at or below SIG\w{4} limits: )?.{0,40}?"
            r"mem +(?P<available_limit_pct>\d{1,3}(?:\.\d{1,3})?) ?%"),
        # kill.c waits for ten seconds, and reports the outcome.
        ("earlyoom", False, r"kill failed: Timer expired|exited after \d|escalating to SIGKILL"),
        # src/nohang: mem_info, find_victim_info and implement_corrective_action
        ("nohang", True, r"Sending SIG(?:TERM|KILL) to the victim"),
        ("nohang", False,
            rf"MemAvailable \[(?P<available_mib>{_MIB}) MiB, [\d.]+ %\] <= \w+_threshold_min_mem "
            rf"\[{_MIB} MiB, (?P<available_limit_pct>\d{{1,3}}(?:\.\d{{1,3}})?) %\]"),
        ("nohang", False,
            r"PID: +(?P<pid>\d{1,10}), name: (?P<comm>.{0,64}?), state: .{1,40}, "
            r"EUID: (?P<uid>\d{1,10})"),
        ("nohang", False, r"The victim (?:died|became a zombie) in \d"),
        ("nohang", False, r"badness: +(?P<score>-?\d{1,10}), oom_score: "),
        ("nohang", False,
            rf"Vm, MiB: +Size: (?P<total_vm_mib>{_MIB}), RSS: (?P<anon_rss_mib>{_MIB})"
            r"(?![\d.]| \(Anon)"),
        ("nohang", False,
            rf"Vm, MiB: +Size: (?P<total_vm_mib>{_MIB}), RSS: {_MIB} \(Anon: "
            rf"(?P<anon_rss_mib>{_MIB}), File: (?P<file_rss_mib>{_MIB}), "
            rf"Shmem: (?P<shmem_rss_mib>{_MIB})\)"),
        ("nohang", False, r"cgroup_v2: (?P<cgroup>/\S{1,500})"),
        # vm_pageout.c of FreeBSD, uvm_pdaemon.c and others of NetBSD and OpenBSD
        ("kernel", True,
            r"pid (?P<pid>\d{1,10}) \((?P<comm>[^)]{1,64})\),(?: jid \d{1,9},)? uid "
            r"(?P<uid>\d{1,10}),? (?:was )?killed: (?P<reason>out of swap(?: space)?|failed to "
            r"reclaim memory|a thread waited too long to allocate a page)"),
        # bsd/kern/kern_memorystatus.c of xnu; older kernels print neither the seconds nor the size
        ("macOS", True,
            r"(?:memorystatus: |EXC_RESOURCE -> )(?:(?P<comm>[^\[]{1,64}?) ?"
            r"\[(?P<pid>\d{1,10})\] )?exceeded mem limit: "
            r"\w{1,20} (?P<limit_mib>\d{1,9}) MB \(fatal\)"),
        ("macOS", True,
            r"killing_\w{1,40}_process pid (?P<pid>\d{1,10}) \[(?P<comm>.{1,64}?)\] "
            r"(?:\((?:per-process-limit|vm-[a-z-]{1,40}|highwater|fc-thrashing|[a-z-]{1,40}-thrashing|"
            r"zone-map-exhaustion)\b[^)]{0,60}\)|\.\.\.)(?: (?P<usage_kb>\d{1,15})KB)?"),
        ("macOS", True,
            r"Process (?P<comm>.{1,64}?) \[(?P<pid>\d{1,10})\] killed by jetsam reason [a-z-]"),
        ("macOS", True,
            r"low swap: killing largest compressed process with pid (?P<pid>\d{1,10}) "
            r"\((?P<comm>.{1,64}?)\) and size (?P<usage_mib>\d{1,9}) MB"),
        # Supervisors that restart what uses more than their own threshold
        ("PM2", True,
            r"Process (?P<comm>\S{1,64}) restarted because it exceeds --max-memory-restart "
            r"value \(current_memory=(?P<usage_bytes>\d+) max_memory_limit=(?P<limit_bytes>\d+)"),
        ("memmon", False, r"Checking any=(?P<limit_bytes>\d{1,15})"),
        ("memmon", True,
            r"restarted the process named (?P<comm>\S{1,64}) at .{10,40} because it was consuming "
            r"too much memory \((?P<usage_bytes>\d{1,15}) bytes RSS\)"),
        ("Monit", False,
            r"'(?P<comm>[^']{1,64})' (?:total )?mem(?:ory)? (?:usage|amount) of "
            r"(?P<usage>\d{1,9}(?:\.\d)?) (?P<usage_unit>[kMG])B matches resource limit "
            r"\[(?:total )?mem(?:ory)? (?:usage|amount) ?> ?"
            r"(?P<limit>\d{1,9}(?:\.\d)?) (?P<limit_unit>[kMG])B\]"),
        ("Monit", True, r"'(?P<comm>[^']{1,64})' trying to restart"),
    )
)
# fmt: on
"""Every line of the killers; lines that are no kill come first."""

KILLERS_HINT = (
    r"sending SIG|with signal|kill failed: T|exited after \d|escalating to SIGK|"
    r"mem avail: |ow [Mm]emory! |MemAvailable \[|Sending SIG\w+ to the victim|"
    r"The victim (?:died|became) |"
    r"PID: +\d+, name: |badness: |Vm, MiB|cgroup_v2: /|killed: (?:out of swap|failed to|a thread)|"
    r"memorystatus: |killing(?: l|_\w+_process pid)|exceeded mem limit|by jetsam|"
    r"--max-memory-restart|too much memory \(|Checking any=|matches resource limit|"
    r"' trying to restart"
)


def quota_mib(used_mib: float, pct: float) -> float:
    """Returns the quota of a dyno, usually a multiple of 512 MiB; 0 if the percentage is 0."""
    quota = 100 * used_mib / pct if pct else 0.0
    usual = 512.0 * round(quota / 512)
    # The use is cut to whole MiB, and the percentage rounded to a digit.
    return usual if abs(usual * pct / 100 - used_mib) < 1 + usual / 1000 else round(quota)
