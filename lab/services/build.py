"""Gets the programs: Debian packages are unpacked, Go modules are built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from lab.own import ROOT
from lab.services import inputs
from lab.services.programs import Debian, Module, Program, Source, Tool, Wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HOME = ROOT / ".services"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
# What the compiler compiles: a package of some 40 MB of machine code and tables.
PLAIN_GO = HOME / "plain-go"
# The go command of staticcheck finds the standard library built there.
GO_CACHE = {
    "GOCACHE": str(HOME / "gocache"),
    "GOENV": "off",
    "GOTOOLCHAIN": "local",
    "CGO_ENABLED": "0",
}
# What the compiler compiles, and the compiler.
COMPILED, COMPILER = "cmd/compile/internal/ssa", "1.18.10"


class BuildError(Exception):
    """A program that cannot be downloaded or built here."""


def build(programs: Iterable[Program]) -> list[Program]:
    """Gets what the programs need; returns those that are ready to run."""
    HOME.mkdir(exist_ok=True)
    inputs.make(HOME / "inputs", goroot(COMPILER))
    prepare_compiler(HOME / "inputs")
    write_plain_go()
    if not (HOME / "gocache").exists():
        output(["nice", "go", "list", "-export", "std"], env=GO_CACHE)
    ready = []
    for program in programs:
        try:
            for source in sources(program):
                get(source)
        except BuildError as error:
            print(f"{program.name} is left out: {error}", file=sys.stderr, flush=True)
        else:
            ready.append(program)
    return ready


def sources(program: Program) -> list[Source]:
    loads = (*program.load, *program.fill, *program.sidecars)
    return list(dict.fromkeys([program.source, *(load.source for load in loads)]))


def get(source: Source) -> None:
    """Downloads or builds the program, unless that is done."""
    match source:
        case Debian():
            for package in (source.package, *source.libraries):
                unpack(package)
        case Module():
            if not binary(source).exists():
                build_module(source)
        case Wrapped():
            if not binary(source).exists():
                build_wrapped(source)
        case Tool():
            goroot(source.go)
        case _:
            assert_never(source)
    if not binary(source).exists():
        message = f"{binary(source).name} is missing after the build"
        raise BuildError(message)


def binary(source: Source) -> Path:
    """Returns the path of the executable."""
    match source:
        case Debian():
            return HOME / "deb" / source.package / source.binary
        case Module():
            name = Path(source.package).name
            if name.startswith("v") and name[1:].isdigit():
                name = Path(source.package).parent.name
            go = "-".join(filter(None, (source.go, source.experiment)))
            return HOME / "bin" / f"{name}-{source.version}-go{go}"
        case Wrapped():
            kind = "retuned" if source.retuned else "all"
            return HOME / "bin" / f"{source.name}-{kind}-{source.version}-go{source.go}"
        case Tool():
            return goroot(source.go) / source.path
        case _:
            assert_never(source)


def libraries(source: Source) -> dict[str, str]:
    """Returns the environment in which the program finds its shared libraries."""
    if not isinstance(source, Debian) or not source.libraries:
        return {}
    folders = (HOME / "deb" / each / LIBRARIES for each in source.libraries)
    return {"LD_LIBRARY_PATH": ":".join(map(str, folders))}


def title(source: Source) -> str:
    """Returns the program with its version."""
    match source:
        case Debian():
            version = (HOME / "deb" / f"{source.package}.version").read_text()
            return f"{source.package} {version} (Debian 12)"
        case Module():
            return f"{source.package} {source.version}"
        case Wrapped():
            more = "retuned while it runs" if source.retuned else "with all of runtime/metrics"
            return f"{source.module} {source.version}, {more}"
        case Tool():
            return f"{Path(source.path).name} go{source.go}"
        case _:
            assert_never(source)


def go_version(source: Source) -> str:
    """Returns the Go version, with its experiments, that the executable was built with."""
    try:
        printed = output(["go", "version", str(binary(source))])
    except BuildError:
        printed = ""
    version = printed.rpartition(": ")[2].strip()
    # `go version` cannot read executables of Go 1.12 and older.
    return version if version or isinstance(source, Debian) else f"go{source.go}"


def origin(source: Source) -> str:
    """Returns where the program comes from, in a few words."""
    match source:
        case Debian():
            return f"Debian package {source.package}"
        case Module():
            go = " ".join(filter(None, (source.go, source.experiment)))
            return f"{source.package} {source.version}, built with Go {go}"
        case Wrapped():
            return f"{source.module} {source.version}, built with Go {source.go}"
        case Tool():
            return f"{source.path} of Go {source.go}"
        case _:
            assert_never(source)


def unpack(package: str) -> None:
    folder = HOME / "deb" / package
    version = HOME / "deb" / f"{package}.version"
    if version.exists():
        return
    with tempfile.TemporaryDirectory() as temporary:
        output(["apt-get", "download", package], cwd=temporary)
        archive = next(Path(temporary).glob("*.deb"))
        folder.mkdir(parents=True, exist_ok=True)
        output(["dpkg", "-x", str(archive), str(folder)])
        version.write_text(output(["dpkg-deb", "-f", str(archive), "Version"]).strip())


WRAPPER = """\
package main

import (
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	program "{module}/{package}"
{plugins})

func main() {{
	all := collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)
	process := collectors.NewProcessCollector(collectors.ProcessCollectorOpts{{}})
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(all), process)
	page := promhttp.HandlerFor(registry, promhttp.HandlerOpts{{}})
	go http.ListenAndServe(os.Getenv("METRICS"), page)
	program.{call}
}}
"""


RETUNED_WRAPPER = """\
package main

import (
	"os"

	program "{module}/{package}"
{plugins})

var _ = os.Args

func main() {{
	go follow(func(string, float64) {{}})
	program.{call}
}}
"""
PLAN = ROOT / "lab" / "go" / "settings"


def build_wrapped(source: Wrapped) -> None:
    """Builds the program with a page of runtime/metrics, or with a plan of its settings."""
    plugins = "".join(f'\t_ "{source.module}/{each}"\n' for each in source.plugins)
    wrapper = RETUNED_WRAPPER if source.retuned else WRAPPER
    main = wrapper.format(
        module=source.module, package=source.package, plugins=plugins, call=source.call
    )
    module = Module(source.module, source.version, ".", source.go)
    extra = ("plan.go", "limit_new.go", "limit_old.go") if source.retuned else ()
    files = {name: (PLAN / name).read_text() for name in extra}
    build_module(module, target=binary(source), files={"main.go": main, **files})


def build_module(
    source: Module, *, target: Path | None = None, files: Mapping[str, str] | None = None
) -> None:
    """Builds the program in a temporary module that requires its version.

    Args:
        source: what to build.
        target: the executable; usually `binary` of the source.
        files: Go code of a main package in the temporary module, by the name of the file.
    """
    minor = int(source.go.split(".")[1])
    target = target or binary(source)
    print(f"building {target.name} …", file=sys.stderr, flush=True)
    if not source.module:
        # A program of this repository, with a module of its own.
        command = ["nice", "go", "build", "-p=1", "-buildvcs=false", "-o", str(target), "."]
        output(command, cwd=ROOT / source.package, env={"CGO_ENABLED": "0"}, go=source.go)
        return
    go_mod = f"module lab\n\ngo 1.{minor}\n\nrequire {source.module} {source.version}\n"
    go_mod += f"\nreplace {source.replace}\n" if source.replace else ""
    flags = ["-p=1"] if minor >= 11 else []
    # Go before 1.16 updates go.mod and go.sum by itself.
    flags += ["-mod=mod"] if minor >= 16 else []
    flags += ["-buildvcs=false"] if minor >= 18 else []
    env = {"CGO_ENABLED": "0", "GO111MODULE": "on"}
    env |= {"GOEXPERIMENT": source.experiment} if source.experiment else {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "go.mod").write_text(go_mod)
        for name, text in (files or {}).items():
            (Path(folder) / name).write_text(text)
        command = ["nice", "go", "build", *flags, "-o", str(target), source.package]
        output(command, cwd=folder, env=env, go=source.go)


def goroot(version: str) -> Path:
    """Returns the folder of a Go toolchain, downloaded if necessary."""
    if version not in GOROOTS:
        GOROOTS[version] = Path(output(["go", "env", "GOROOT"], go=version).strip())
    return GOROOTS[version]


GOROOTS: dict[str, Path] = {}


def prepare_compiler(folder: Path) -> None:
    """Writes which files the compiler reads: the package and those that it imports."""
    listed = folder / "ssa.files"
    if listed.exists():
        return
    export = "{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}"
    command = ["go", "list", "-export", "-deps", "-f", export, COMPILED]
    (folder / "importcfg").write_text(output(command, go=COMPILER))
    files = '{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\\n"}}{{end}}'
    listed.write_text(output(["go", "list", "-f", files, COMPILED], go=COMPILER))


def write_plain_go() -> None:
    """Writes a go command that does not inherit the settings of the program that calls it."""
    go = PLAIN_GO / "go"
    go.parent.mkdir(exist_ok=True)
    unset = "unset GODEBUG GOGC GOMEMLIMIT GOMAXPROCS"
    go.write_text(f'#!/bin/sh\n{unset}\nexec {shutil.which("go")} "$@"\n')
    go.chmod(0o755)


def output(
    command: list[str],
    *,
    cwd: str | Path | None = None,
    env: dict[str, str] | None = None,
    go: str = "",
) -> str:
    """Returns what a command prints; raises BuildError if it fails."""
    settings = {**os.environ, **(env or {})}
    if go:
        # Without the settings of `go env -w`: old versions reject what new ones accept.
        settings |= {"GOTOOLCHAIN": f"go{go}", "GOENV": "off"}
        settings |= {"GOPROXY": "https://proxy.golang.org", "GOFLAGS": ""}
    done = subprocess.run(
        command, cwd=cwd, env=settings, text=True, capture_output=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        message = f"{' '.join(command[:3])}: {last}"
        raise BuildError(message)
    return done.stdout
