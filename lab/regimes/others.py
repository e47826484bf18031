"""Programs of others under settings that are known."""

# ruff: noqa: E501  # a recording is one line

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.regimes.cases import Case, settings
from lab.services.programs import (
    ETCD_LOAD,
    ETCD_WORDS,
    PROGRAMS,
    Debian,
    Kind,
    Program,
    Source,
    Tool,
    Wrapped,
    hey,
)

KNOWN = {program.name: program for program in PROGRAMS}


def real(name: str, program: Program, env: str = "", plan: str = "", **options: Any) -> Case:
    return Case(name, settings(env), plan, program=program, **options)


def debian(
    package: str, words: str, kind: Kind = "batch", path: str = "", **options: Any
) -> Program:
    source = Debian(package, path or f"usr/bin/{package}")
    return Program(package, kind, source, tuple(words.split()), **options)


def tool(path: str, go: str, words: str) -> Program:
    return Program(f"{path}-{go}", "batch", Tool(path, go), tuple(words.split()))


def gofmt(go: str) -> Program:
    return tool("bin/gofmt", go, "-l inputs/tree/src inputs/tree/src")


def compiler(go: str) -> Program:
    words = "-o run/f.a -p functions -c=2 inputs/functions.go"
    return tool("pkg/tool/linux_amd64/compile", go, words)


def objdump(go: str) -> Program:
    return tool("pkg/tool/linux_amd64/objdump", go, "inputs/tree/pkg/tool/linux_amd64/compile")


def retuned(
    name: str, module: str, version: str, package: str, call: str, go: str, *plugins: str
) -> Source:
    return Wrapped(name, module, version, package, call, go, plugins, retuned=True)


ESBUILD = debian(
    "esbuild",
    "inputs/functions.js --bundle --minify --sourcemap --outfile=run/out.js --log-level=error",
)
SHFMT = debian("shfmt", "-l /usr/share /usr/lib")
NATS = debian(
    "nats-server",
    "-c inputs/nats.conf",
    "queue",
    "usr/sbin/nats-server",
    port=14222,
    load=KNOWN["nats"].load,
)
ELVISH = Program(
    "elvish", "batch", Debian("elvish", "usr/bin/elvish"),
    ("-norc", "-c", "range 300000 | each {|x| to-json [[&a=$x &b=[$x]]] } | from-json | count"),
)  # fmt: skip
REGISTRY = debian(
    "docker-registry", "serve inputs/registry.yml", "server",
    port=15000, load=(hey("15000/v2/_catalog", 2), hey("15000/v2/lab/manifests/none", 1)),
)  # fmt: skip
NODE_EXPORTER = debian(
    "prometheus-node-exporter", "--web.listen-address=127.0.0.1:19100 --log.level=error",
    "server", port=19100, load=(hey("19100/metrics", 2),),
)  # fmt: skip
GOJQ = replace(KNOWN["gojq"], source=Debian("gojq", "usr/bin/gojq"))
GOJQ_RETUNED = replace(
    KNOWN["gojq"],
    source=retuned("gojq", "github.com/itchyny/gojq", "v0.12.16", "cli", "Run()", "1.22.12"),
    words=(*KNOWN["gojq"].words, *["inputs/orders.json"] * 20),
)
ETCD_RETUNED = Program(
    "etcd-retuned", "database",
    retuned("etcd", "go.etcd.io/etcd/server/v3", "v3.6.0", "etcdmain", "Main(os.Args)", "1.24.10"),
    ETCD_WORDS, port=23790, load=ETCD_LOAD,
)  # fmt: skip
CADDY_RETUNED = replace(
    KNOWN["caddy"],
    source=retuned(
        "caddy",
        "github.com/caddyserver/caddy/v2",
        "v2.10.0",
        "cmd",
        "Main()",
        "1.26.8",
        "modules/standard",
    ),
    env={"AUTOMEMLIMIT": "off"},
)


def tools() -> list[Case]:
    """What comes with every release of Go."""
    return [
        real("gofmt-go1.9", gofmt("1.9.7"), "GOGC=75"),
        real("gofmt-go1.12", gofmt("1.12.17"), "GOGC=50"),
        real("gofmt-go1.15", gofmt("1.15.15"), "GOGC=25"),
        real("gofmt-go1.17", gofmt("1.17.13"), "GOGC=400"),
        real("gofmt-go1.18", gofmt("1.18.10"), "GOGC=200"),
        real("gofmt-go1.19-off", gofmt("1.19.13"), "GOGC=off GOMEMLIMIT=24MiB"),
        real("gofmt-go1.21-impossible", gofmt("1.21.13"), "GOMEMLIMIT=5MiB"),
        real("gofmt-go1.22", gofmt("1.22.12"), ""),
        real("gofmt-go1.23", gofmt("1.23.12"), "GOGC=800"),
        real("gofmt-go1.25-off", gofmt("1.25.5"), "GOGC=off GOMEMLIMIT=32MiB"),
        real("gofmt-go1.26", gofmt("1.26.8"), "GOGC=10"),
        real("gofmt-go1.27", gofmt("1.27.1"), "GOGC=150"),
        real("gofmt-go1.27-never", gofmt("1.27.1"), "GOGC=50 GOMEMLIMIT=1GiB"),
        real("objdump-go1.9", objdump("1.9.7"), "GOGC=200"),
        real("objdump-go1.12", objdump("1.12.17")),
        real("objdump-go1.17", objdump("1.17.13"), "GOGC=60"),
        real("objdump-go1.19-off", objdump("1.19.13"), "GOGC=off GOMEMLIMIT=50MiB"),
        real("objdump-go1.21-limit", objdump("1.21.13"), "GOMEMLIMIT=20MiB"),
        real("objdump-go1.23", objdump("1.23.12"), "GOGC=40"),
        real("compile-go1.9", compiler("1.9.7"), "GOGC=25"),
        real("compile-go1.12", compiler("1.12.17"), "GOGC=10"),
        real("compile-go1.15", compiler("1.15.15"), "GOGC=50"),
        real("compile-go1.17", compiler("1.17.13"), "GOGC=75"),
        real("compile-go1.18", compiler("1.18.10"), "GOGC=100"),
        real("compile-go1.19", compiler("1.19.13"), "GOGC=50 GOMEMLIMIT=150MiB"),
        real("compile-go1.21", compiler("1.21.13"), "GOGC=25"),
        real("compile-go1.23", compiler("1.23.12"), "GOGC=10"),
        real("compile-go1.25-off", compiler("1.25.5"), "GOGC=off GOMEMLIMIT=120MiB"),
        real("compile-go1.26-impossible", compiler("1.26.8"), "GOGC=100 GOMEMLIMIT=40MiB"),
        real("compile-go1.27", compiler("1.27.1"), "GOGC=50"),
    ]  # fmt: skip


def packages() -> list[Case]:
    """Debian's packages."""
    return [
        real("caddy-gogc-25", KNOWN["caddy"], "GOGC=25"),
        real("caddy-gogc-1600", KNOWN["caddy"], "GOGC=1600", cycles=60),
        real("caddy-off-26", KNOWN["caddy"], "GOGC=off GOMEMLIMIT=26MiB"),
        real("caddy-below", KNOWN["caddy"], "GOMEMLIMIT=12MiB"),
        real("etcd-gogc-75", KNOWN["etcd"], "GOGC=75", cycles=120),
        real("etcd-off-40", KNOWN["etcd"], "GOGC=off GOMEMLIMIT=40MiB", cycles=120),
        real("etcd-gogc-200-limit", KNOWN["etcd"], "GOGC=200 GOMEMLIMIT=36MiB", cycles=120),
        real("prometheus-gogc-150", KNOWN["prometheus"], "GOGC=150", cycles=40),
        real("prometheus-off-130", KNOWN["prometheus"], "GOGC=off GOMEMLIMIT=130MiB", cycles=60),
        real("influxdb-gogc-10", KNOWN["influxdb"], "GOGC=10"),
        real("influxdb-limit", KNOWN["influxdb"], "GOGC=100 GOMEMLIMIT=90MiB", cycles=90),
        real("victoria-metrics", KNOWN["victoria-metrics"], cycles=90, sets={"GOGC": "30"}, note="it sets GOGC=30 where none is set"),
        real("victoria-metrics-off-70", KNOWN["victoria-metrics"], "GOGC=off GOMEMLIMIT=70MiB", cycles=90),
        real("rclone-gogc-400", KNOWN["rclone"], "GOGC=400", cycles=60),
        real("rclone-limit", KNOWN["rclone"], "GOGC=100 GOMEMLIMIT=32MiB", cycles=120),
        real("pushgateway", KNOWN["pushgateway"], "", cycles=80),
        real("pushgateway-gogc-50", KNOWN["pushgateway"], "GOGC=50", cycles=80),
        real("pushgateway-off-24", KNOWN["pushgateway"], "GOGC=off GOMEMLIMIT=24MiB", cycles=80),
        real("node-exporter-gogc-400", NODE_EXPORTER, "GOGC=400"),
        real("node-exporter-gogc-10", NODE_EXPORTER, "GOGC=10"),
        real("node-exporter-limit", NODE_EXPORTER, "GOMEMLIMIT=18MiB"),
        real("node-exporter-below", NODE_EXPORTER, "GOGC=off GOMEMLIMIT=8MiB"),
        real("registry-gogc-800", REGISTRY, "GOGC=800", cycles=60),
        real("registry", REGISTRY, ""),
        real("registry-off-20", REGISTRY, "GOGC=off GOMEMLIMIT=20MiB"),
        real("registry-limit", REGISTRY, "GOGC=200 GOMEMLIMIT=17MiB"),
        real("nats-gogc-50", NATS, "GOGC=50", cycles=90),
        real("nats-off-70", NATS, "GOGC=off GOMEMLIMIT=70MiB", cycles=90),
        real("restic-gogc-50", KNOWN["restic"], "GOGC=50"),
        real("restic-limit", KNOWN["restic"], "GOMEMLIMIT=80MiB"),
        real("promtool-gogc-25", KNOWN["promtool"], "GOGC=25"),
        real("promtool-off-40", KNOWN["promtool"], "GOGC=off GOMEMLIMIT=40MiB"),
        real("hugo-gogc-50", KNOWN["hugo"], "GOGC=50"),
        real("hugo-limit", KNOWN["hugo"], "GOGC=200 GOMEMLIMIT=150MiB"),
        real("gojq-gogc-25", GOJQ, "GOGC=25"),
        real("gojq-off-200", GOJQ, "GOGC=off GOMEMLIMIT=200MiB"),
        real("esbuild-limit", ESBUILD, "GOMEMLIMIT=150MiB", sets={"GOGC": "off"}, note="it turns GOGC off"),
        real("esbuild-limit-400", ESBUILD, "GOMEMLIMIT=400MiB", sets={"GOGC": "off"}, note="it turns GOGC off"),
        real("shfmt", SHFMT, "GOGC=100"),
        real("elvish", ELVISH),
        real("elvish-gogc-30", ELVISH, "GOGC=30"),
        real("elvish-off-20", ELVISH, "GOGC=off GOMEMLIMIT=20MiB"),
        real("elvish-gogc-1000", ELVISH, "GOGC=1000"),
        real("caddy-gogc-60", KNOWN["caddy"], "GOGC=60", cycles=200),
        real("etcd-gogc-120", KNOWN["etcd"], "GOGC=120", cycles=80),
        real("hugo-gogc-30", KNOWN["hugo"], "GOGC=30"),
        real("promtool", KNOWN["promtool"]),
        real("promtool-gogc-300-limit", KNOWN["promtool"], "GOGC=300 GOMEMLIMIT=60MiB"),
        real("gojq-gogc-15", GOJQ, "GOGC=15"),
        real("restic-off-120", KNOWN["restic"], "GOGC=off GOMEMLIMIT=120MiB"),
        real("node-exporter-gogc-60", NODE_EXPORTER, "GOGC=60", cycles=200),
    ]  # fmt: skip


def retuned_programs() -> list[Case]:
    """Programs of others whose settings change while they run."""
    return [
        real("gojq-change-gogc", GOJQ_RETUNED, "", "20 gogc=25,50 gogc=200,70 exit"),
        real("gojq-change-limit", GOJQ_RETUNED, "", "15 gogc=off limit=250,30 gogc=50 limit=off,60 exit"),
        real("etcd-change-gogc", ETCD_RETUNED, "", "30 gogc=50,80 gogc=400,100 exit"),
        real("etcd-change-limit", ETCD_RETUNED, "GOGC=off GOMEMLIMIT=50MiB", "30 limit=30,90 limit=off gogc=100,120 exit"),
        real("caddy-change-gogc", CADDY_RETUNED, "GOGC=50", "60 gogc=300,120 gogc=100 procs=1,200 exit"),
        real("caddy-change-limit", CADDY_RETUNED, "", "60 gogc=off limit=30,140 limit=60,200 exit"),
        real("caddy-automemlimit", CADDY_RETUNED, "", "0 gogc=off limit=40,120 exit"),
    ]  # fmt: skip


def every() -> list[Case]:
    """Returns every recording of a program of others."""
    return [*tools(), *packages(), *retuned_programs()]
