"""The programs whose profiles are kept: ours, with exact counters, and four of others."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lab.own import HERE

# The paths in a profile are those of the build, so that this one means nothing.
BUILT = Path(tempfile.gettempdir()) / "lab-profiles"
REMOVED_FROM_SHARE = 0.2
"""Share of the allocation from which on a site is removed too."""


@dataclass(frozen=True, slots=True)
class Own:
    """A program of `lab/go` that counts what each of its functions allocates.

    Attributes:
        name: the folder.
        words: its arguments.
        removed: functions that allocate at least a fifth, each removed in turn.
    """

    name: str
    words: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Real:
    """A program of a public module.

    Attributes:
        package: the main package.
        version: of its module.
        words: its arguments; `{profile}` is the file for its profile, `{inputs}` a folder.
        serves: the port of its /debug/pprof, if it is a server.
    """

    package: str
    version: str
    words: tuple[str, ...]
    serves: int = 0

    @property
    def name(self) -> str:
        """The executable."""
        return self.package.rpartition("/")[2]


OWN = (
    Own("requests", ("-seconds", "8"), ("main.decode", "main.render", "main.(*session).touch")),
    Own(
        "ledger",
        (),
        ("main.(*worker).parse", "main.(*worker).sorted", "main.(*worker).render"),
    ),
)

REAL = (
    # With one input it turns GC off.
    Real(
        "github.com/evanw/esbuild/cmd/esbuild",
        "v0.25.9",
        ("{inputs}/script.js", "{inputs}/copy.js", "--minify", "--log-level=error",
         "--outdir={inputs}/out", "--heap={profile}"),
    ),
    # One sample per 64 KiB instead of 512 KiB.
    Real(
        "golang.org/x/tools/cmd/goimports",
        "v0.38.0",
        ("-l", "-memrate", "65536", "-memprofile", "{profile}", "{goroot}/src/net",
         "{goroot}/src/cmd/compile/internal/ssa", "{goroot}/src/runtime"),
    ),
    Real(
        "honnef.co/go/tools/cmd/staticcheck",
        "v0.6.1",
        ("-debug.memprofile", "{profile}", "-tests=false", "go/types", "net/http"),
    ),
    Real(
        "github.com/prometheus/node_exporter",
        "v1.9.1",
        ("--web.listen-address=127.0.0.1:19100", "--log.level=error"),
        serves=19100,
    ),
)  # fmt: skip

LEAKS = {
    "sessions": "https://github.com/stacklok/toolhive/pull/4079",
    "substring": "https://github.com/betterleaks/betterleaks/pull/308",
    "goroutine": "https://github.com/hellofresh/health-go/issues/224",
    "timer": "https://github.com/jellydator/ttlcache/pull/18",
    "cache": "https://github.com/SigNoz/signoz/pull/10967",
    "finalizer": "https://github.com/milvus-io/milvus/issues/15098",
}
"""The leaks of `lab/go/leaks`, and the report that each follows."""


def built(name: str) -> Path:
    """Builds a program of `lab/go`, and returns its path."""
    program = BUILT / name
    go(["build", "-trimpath", "-o", str(program), "."], HERE / "go" / name)
    return program


def installed(program: Real) -> Path:
    """Builds a program of others, unless that is done, and returns its path."""
    path = BUILT / program.name
    if not path.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        os.environ["GOBIN"] = str(BUILT)
        go(["install", "-trimpath", f"{program.package}@{program.version}"], BUILT)
    return path


def go(words: list[str], folder: Path) -> str:
    """Runs the go command; returns what it printed."""
    done = subprocess.run(
        ["go", *words], cwd=folder, text=True, capture_output=True, check=False
    )
    if done.returncode:
        sys.exit(f"go {' '.join(words)}: {done.stderr}")
    return done.stdout
