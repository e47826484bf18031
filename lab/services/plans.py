"""The settings that a program is recorded with, and in which order."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from lab.services import programs
from lab.services.programs import Load, Module, Program

if TYPE_CHECKING:
    from collections.abc import Iterator

Plan = Literal["grid", "versions", "procs", "states", "advised"]
GOGC = ("50", "100", "200", "400")
# The memory limit covers more than the heap: about 11 MiB in a small program (measured).
NON_HEAP_MIB = 11
# What the limit leaves for the heap, as a multiple of the live heap: 0.8 is impossible.
LIMIT_FACTORS = (0.8, 1.2, 1.6, 3.0)
PACED_LIMIT_FACTOR = 1.4
FIRST_GO_WITH_LIMIT = 19
ADVISED = "advised"


@dataclass(frozen=True, slots=True)
class Setting:
    """What one run is started with; a limit is given as a multiple of the live heap."""

    label: str
    env: dict[str, str] = field(default_factory=dict)
    limit_factor: float = 0
    # In CPUs, by the cgroup's quota.
    cpu_quota: float = 0
    # Further words of the command, and further load.
    words: tuple[str, ...] = ()
    load: tuple[Load, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One recording to make."""

    program: Program
    setting: Setting
    repeat: int

    @property
    def folder(self) -> str:
        """The folder of the recording, relative to the manifest."""
        again = f"-r{self.repeat}" if self.repeat > 1 else ""
        return f"{self.program.name}/{self.setting.label}{again}"


def plan(name: Plan) -> tuple[Program, ...]:
    """Returns the programs of a plan."""
    match name:
        case "grid" | "advised":
            return programs.PROGRAMS
        case "versions":
            return programs.versions()
        case "procs":
            return programs.procs()
        case "states":
            return tuple(each for each in programs.PROGRAMS if each.name in STATES)


def runs(name: Plan, chosen: list[Program], repeats: int) -> Iterator[Run]:
    """Yields the recordings: each round goes over all programs, GOGC=100 first."""
    for repeat in range(1, repeats + 1):
        for program in chosen:
            first, *others = settings(name, program)
            random.Random(f"{program.name} {repeat}").shuffle(others)
            yield from (Run(program, setting, repeat) for setting in (first, *others))


def settings(name: Plan, program: Program) -> list[Setting]:
    """Returns the settings for a program, the one that gives the live heap first."""
    match name:
        case "grid":
            return [*by_gogc(), *by_limit(LIMIT_FACTORS), paced_limit()]
        case "versions":
            return [*by_gogc(), *(by_limit((1.6,)) if knows_limit(program) else ())]
        case "procs":
            return by_procs()
        case "states":
            return [Setting("gogc100", {"GOGC": "100"}), *STATES[program.name]]
        case "advised":
            return [Setting(ADVISED)]


def low_gogc() -> Setting:
    return Setting("low-gogc", {"GOGC": "10"})


def low_limit(factor: float = 0.9) -> Setting:
    return Setting("low-limit", {"GOGC": "100"}, factor)


def few_cpus() -> Setting:
    return Setting("few-cpus", {"GOGC": "100", "GOMAXPROCS": "16"}, cpu_quota=0.5)


def forced(address: str, *words: str) -> Setting:
    """A heap profile with `gc=1`, four times a second: each forces a collection."""
    load = programs.hey(f"{address}/debug/pprof/heap?gc=1", 1, 4)
    return Setting("forced", {"GOGC": "100"}, words=words, load=(load,))


def leak(words: tuple[str, ...] = (), load: tuple[Load, ...] = ()) -> tuple[Setting, ...]:
    """Memory that only grows: without a limit, and into one."""
    return (
        Setting("leak", {"GOGC": "100"}, words=words, load=load),
        Setting("leak-limit", {"GOGC": "100"}, 2.5, words=words, load=load),
    )


# What ails a program: the settings and the load that cause it.
STATES: dict[str, tuple[Setting, ...]] = {
    "caddy-proxy": (low_gogc(), low_limit(), few_cpus(), forced("12019")),
    "coredns": (low_gogc(), low_limit(), few_cpus()),
    "etcd": (low_gogc(), low_limit(), forced("23790", "--enable-pprof")),
    "gojq": (low_gogc(), low_limit()),
    "influxdb": (low_gogc(), forced("18086")),
    "nats": (low_gogc(), *leak(load=(programs.UNBOUNDED_STREAM,))),
    "nsqd": (
        low_gogc(),
        forced("14151"),
        *leak(("--mem-queue-size=10000000",), (programs.UNREAD_TOPIC,)),
    ),
    "prometheus": (low_gogc(), low_limit(), forced("19090")),
    "pushgateway": (low_gogc(), few_cpus()),
    "restic": (low_gogc(), low_limit()),
    "victoria-metrics": (low_gogc(), low_limit(), forced("18428")),
}


def by_gogc() -> list[Setting]:
    ordered = sorted(GOGC, key=lambda gogc: gogc != "100")
    return [Setting(f"gogc{gogc}", {"GOGC": gogc}) for gogc in ordered]


def by_limit(factors: tuple[float, ...]) -> list[Setting]:
    return [Setting(f"off-x{factor}", {"GOGC": "off"}, factor) for factor in factors]


def paced_limit() -> Setting:
    return Setting(f"gogc100-x{PACED_LIMIT_FACTOR}", {"GOGC": "100"}, PACED_LIMIT_FACTOR)


def knows_limit(program: Program) -> bool:
    source = program.source
    return not isinstance(source, Module) or int(source.go.split(".")[1]) >= FIRST_GO_WITH_LIMIT


def by_procs() -> list[Setting]:
    """GOMAXPROCS below, at and above the number of CPUs, and a CPU quota below it."""
    free = [
        Setting(f"gogc{gogc}-procs{procs}", {"GOGC": gogc, "GOMAXPROCS": procs})
        for procs in ("2", "1", "4", "8")
        for gogc in ("100", "400")
    ]
    limited = [
        Setting(f"gogc{gogc}-procs4-quota1", {"GOGC": gogc, "GOMAXPROCS": "4"}, cpu_quota=1)
        for gogc in ("100", "400")
    ]
    return free + limited


def environment(setting: Setting, live_mib: float | None) -> dict[str, str] | None:
    """Returns the variables of a setting; None if its limit needs an unknown live heap."""
    if not setting.limit_factor:
        return dict(setting.env)
    if live_mib is None:
        return None
    limit = round(NON_HEAP_MIB + setting.limit_factor * live_mib)
    return {**setting.env, "GOMEMLIMIT": f"{limit}MiB"}


def promised_environment(promise: dict[str, Any]) -> dict[str, str]:
    """Returns the variables of a recommended setting."""
    gogc, limit = promise["gogc"], promise["memory_limit_mib"]
    env = {"GOGC": "off" if gogc is None else f"{gogc:g}"}
    return env if limit is None else {**env, "GOMEMLIMIT": f"{limit:.0f}MiB"}
