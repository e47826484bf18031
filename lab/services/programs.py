"""The programs of the lab: where each comes from, how it runs and what load it gets.

Paths are relative to .services, where everything runs; `run/` is empty before each run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["server", "database", "queue", "batch"]


@dataclass(frozen=True, slots=True)
class Debian:
    """A Debian package, unpacked without being installed."""

    package: str
    binary: str
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Module:
    """A main package of a Go module, built with one toolchain."""

    module: str
    version: str
    package: str
    go: str
    replace: str = ""
    experiment: str = ""


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A program of a Go module whose process also serves all of runtime/metrics.

    `package` has the function `call` that is its `main`; METRICS names the address. One that is
    `retuned` serves none, but changes its settings as PLAN says (lab/go/settings/plan.go).
    """

    name: str
    module: str
    version: str
    package: str
    call: str
    go: str
    # Packages that only register themselves.
    plugins: tuple[str, ...] = ()
    retuned: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that comes with the Go toolchain."""

    path: str
    go: str


Source = Debian | Module | Wrapped | Tool


@dataclass(frozen=True, slots=True)
class Load:
    """A load generator; `{seconds}` in its words is the length of the load."""

    source: Source
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """One program with its command, its preparation and its load."""

    name: str
    kind: Kind
    source: Source
    words: tuple[str, ...]
    port: int = 0
    load: tuple[Load, ...] = ()
    # Fills the program before the load window begins.
    fill: tuple[Load, ...] = ()
    # Other programs it works with, started before it.
    sidecars: tuple[Load, ...] = ()
    # Commands of the program itself that precede it, without gctrace.
    first: tuple[tuple[str, ...], ...] = ()
    # The address of Prometheus or expvar metrics, if it serves any about its own runtime.
    metrics: str = ""
    env: dict[str, str] = field(default_factory=dict)
    # Whether `run/` lies in memory, for programs that write thousands of files: where many were
    # deleted within minutes, ext4 without a journal is slower in creating new ones (measured:
    # 1.1, 1.7 and 2.7 s of CPU for the same 3,500 files).
    in_memory: bool = False


HEY = Debian("hey", "usr/bin/hey")
DNSPERF = Debian("dnsperf", "usr/bin/dnsperf", ("libldns3", "libnghttp2-14"))
NSQ_FIX = "github.com/judwhite/go-svc => github.com/mreiferson/go-svc v1.2.2-0.20210815184239-7a96e00010f6"  # noqa: E501  # one line of go.mod
NSQD = Module(
    "github.com/nsqio/nsq", "v1.3.0", "github.com/nsqio/nsq/apps/nsqd", "1.26.8", NSQ_FIX
)
CADDY = Module(
    "github.com/caddyserver/caddy/v2",
    "v2.10.0",
    "github.com/caddyserver/caddy/v2/cmd/caddy",
    "1.26.8",
)
NATS_SERVER = Module(
    "github.com/nats-io/nats-server/v2",
    "v2.11.3",
    "github.com/nats-io/nats-server/v2",
    "1.24.10",
)
NATS = Module(
    "github.com/nats-io/natscli", "v0.1.5", "github.com/nats-io/natscli/nats", "1.26.8"
)
ETCD = Module("go.etcd.io/etcd/server/v3", "v3.6.0", "go.etcd.io/etcd/server/v3", "1.24.10")
COREDNS = Module(
    "github.com/coredns/coredns", "v1.12.1", "github.com/coredns/coredns", "1.24.10"
)
STATICCHECK = Module(
    "honnef.co/go/tools", "v0.6.1", "honnef.co/go/tools/cmd/staticcheck", "1.26.8"
)
BADGER = Module(
    "github.com/dgraph-io/badger/v4",
    "v4.9.6",
    "github.com/dgraph-io/badger/v4/badger",
    "1.26.8",
)
GOJQ = Module(
    "github.com/itchyny/gojq", "v0.12.16", "github.com/itchyny/gojq/cmd/gojq", "1.22.12"
)


def hey(url: str, workers: int, per_worker: int = 0, body: str = "", method: str = "") -> Load:
    """Requests for the whole window; `per_worker` a second, or as many as possible."""
    words = ["-z", "{seconds}s", "-t", "4", "-c", str(workers)]
    words += ["-q", str(per_worker)] if per_worker else []
    words += ["-H", "Accept-Encoding: gzip"]
    if body:
        words += ["-m", method or "POST", "-D", f"inputs/{body}"]
    return Load(HEY, (*words, f"http://127.0.0.1:{url}"))


def hey_fill(url: str, requests: int, body: str) -> Load:
    words = ("-n", str(requests), "-t", "10", "-c", "10", "-m", "POST", "-D", f"inputs/{body}")
    return Load(HEY, (*words, f"http://127.0.0.1:{url}"))


def nats(*words: str) -> Load:
    return Load(NATS, ("bench", "lab.jobs", "-s", "nats://127.0.0.1:14222", *words))


# A stream in memory that keeps every message, in addition to the one of the usual load.
UNBOUNDED_STREAM = Load(
    NATS,
    (
        "bench", "lab.kept", "-s", "nats://127.0.0.1:14222", "--js", "--stream=kept", "--pub=1",
        "--msgs=10000000", "--size=2048", "--storage=memory", "--maxbytes=1500MB",
        "--no-progress", "--pubbatch=10", "--pubsleep=2ms",
    ),
)  # fmt: skip
NSQD_WORDS = (
    "--tcp-address=127.0.0.1:14150", "--http-address=127.0.0.1:14151", "--data-path=run",
    "--mem-queue-size=15000", "--max-bytes-per-file=16777216",
)  # fmt: skip
NSQD_LOAD = (
    hey("14151/pub?topic=jobs", 10, 120, "message.txt"),
    hey("14151/stats?format=json", 1, 5),
)
NSQD_FILL = (hey_fill("14151/pub?topic=jobs", 16_000, "message.txt"),)
# A short queue keeps the live heap small: several cycles a second, so that GOGC=400 has enough.
SHORT_QUEUE = tuple(word.replace("size=15000", "size=3000") for word in NSQD_WORDS)
SHORT_FILL = (hey_fill("14151/pub?topic=jobs", 4_000, "message.txt"),)
# Nobody reads these messages, and the queue in memory has room for all of them.
UNREAD_TOPIC = hey("14151/pub?topic=unread", 10, 300, "message.txt")
ETCD_WORDS = (
    "--data-dir", "run", "--log-level", "error",
    "--listen-client-urls", "http://127.0.0.1:23790",
    "--advertise-client-urls", "http://127.0.0.1:23790",
    "--listen-peer-urls", "http://127.0.0.1:23800",
    "--initial-advertise-peer-urls", "http://127.0.0.1:23800",
    "--initial-cluster", "default=http://127.0.0.1:23800",
)  # fmt: skip
ETCD_LOAD = (
    hey("23790/v3/kv/txn", 8, 10, "puts.json"),
    hey("23790/v3/kv/range", 4, 25, "range.json"),
)
ORDERS = (
    "-c",
    "group_by(.user) | map({user: .[0].user, spent: (map(.price * .n) | add),"
    ' tags: (map(.tags[]) | unique | join(","))}) | sort_by(-.spent)'
    " | (.[0:3], length)",
    *["inputs/orders.json"] * 2,
)

PROGRAMS = (
    Program(
        "caddy", "server", Debian("caddy", "usr/bin/caddy"),
        ("run", "--config", "inputs/templates.caddyfile", "--adapter", "caddyfile"),
        port=18080,
        # As fast as it answers: almost no idle CPU.
        load=(hey("18080/page.html", 12), hey("18080/data.json", 4)),
        metrics="http://127.0.0.1:12019/metrics",
    ),
    Program(
        "caddy-proxy", "server", CADDY,
        ("run", "--config", "inputs/proxy.caddyfile", "--adapter", "caddyfile"),
        port=18080,
        load=(hey("18080/data.json", 6, 40), hey("18080/page.html", 4, 40)),
        metrics="http://127.0.0.1:12019/metrics",
        env={"AUTOMEMLIMIT": "off"},
    ),
    Program(
        "etcd", "database", Debian("etcd-server", "usr/bin/etcd"),
        ("--logger", "zap", *ETCD_WORDS), port=23790, load=ETCD_LOAD,
        metrics="http://127.0.0.1:23790/metrics",
    ),
    Program(
        "etcd-3.6", "database", ETCD, ETCD_WORDS, port=23790, load=ETCD_LOAD,
        metrics="http://127.0.0.1:23790/metrics",
    ),
    Program(
        "prometheus", "database", Debian("prometheus", "usr/bin/prometheus"),
        (
            "--config.file=inputs/prometheus.yml", "--storage.tsdb.path=run/tsdb",
            "--web.listen-address=127.0.0.1:19090", "--log.level=error",
        ),
        port=19090,
        sidecars=(
            Load(CADDY, ("run", "--config", "inputs/proxy.caddyfile", "--adapter", "caddyfile")),
        ),
        load=(
            hey("19090/api/v1/query?query=sum%20by%20(job)(rate(go_gc_duration_seconds_sum[1m]))", 2, 5),  # noqa: E501  # an address
            hey("19090/api/v1/query?query=%7Bjob=~%22self.*%22%7D", 1, 4),
        ),
        metrics="http://127.0.0.1:19090/metrics",
    ),
    Program(
        "influxdb", "database", Debian("influxdb", "usr/bin/influxd"),
        ("run", "-config", "inputs/influxdb.toml"),
        port=18086,
        fill=(hey_fill("18086/query?q=CREATE%20DATABASE%20lab", 10, "message.txt"),),
        load=(
            hey("18086/write?db=lab", 3, 6, "influx-4000.txt"),
            hey("18086/query?db=lab&q=SELECT%20mean(%22user%22)%20FROM%20cpu%20WHERE%20time%20%3E%20now()-5s%20GROUP%20BY%20region", 1, 4),  # noqa: E501  # an address
        ),
        metrics="http://127.0.0.1:18086/debug/vars",
    ),
    Program(
        "victoria-metrics", "database", Debian("victoria-metrics", "usr/bin/victoria-metrics"),
        (
            "-storageDataPath=run/data", "-httpListenAddr=127.0.0.1:18428",
            "-loggerLevel=ERROR", "-memory.allowedBytes=256MB",
        ),
        port=18428,
        load=(
            hey("18428/write", 3, 10, "influx-4000.txt"),
            hey("18428/api/v1/query?query=sum%20by%20(region)(cpu_user)", 2, 5),
        ),
        metrics="http://127.0.0.1:18428/metrics",
    ),
    Program(
        "nats", "queue", NATS_SERVER, ("-c", "inputs/nats.conf"),
        port=14222,
        load=(
            nats(
                "--js", "--pub=2", "--sub=1", "--pull", "--msgs=10000000", "--size=256",
                "--storage=memory", "--maxbytes=32MB", "--no-progress", "--pubbatch=50",
                "--pubsleep=200us",
            ),
        ),
        metrics="http://127.0.0.1:18222/varz",
    ),
    Program(
        "nsqd", "queue", NSQD, NSQD_WORDS, port=14151, load=NSQD_LOAD, fill=NSQD_FILL,
        metrics="http://127.0.0.1:14151/stats?format=json",
    ),
    Program(
        "coredns", "server", COREDNS, ("-conf", "inputs/coredns.conf"),
        port=19153,
        load=(
            Load(
                DNSPERF,
                (
                    "-p", "15353", "-d", "inputs/queries.txt", "-l", "{seconds}", "-Q", "8000",
                    "-t", "2", "-c", "8",
                ),
            ),
        ),
        metrics="http://127.0.0.1:19153/metrics",
    ),
    Program(
        "rclone", "server", Debian("rclone", "usr/bin/rclone"),
        (
            "serve", "http", "inputs/site/content/posts", "--addr", "127.0.0.1:18085",
            "--config", "run/rclone.conf", "--dir-cache-time", "1h", "--read-only", "-q",
        ),
        port=18085,
        load=(hey("18085/post-0001.md", 5, 30), hey("18085/", 1, 3)),
    ),
    Program(
        "pushgateway", "server",
        Debian("prometheus-pushgateway", "usr/bin/prometheus-pushgateway"),
        ("--web.listen-address=127.0.0.1:19091", "--log.level=error"),
        port=19091,
        load=(
            hey("19091/metrics/job/one", 1, 4, "metrics.txt", "PUT"),
            hey("19091/metrics/job/two", 1, 3, "metrics.txt", "PUT"),
            hey("19091/metrics", 1, 2),
        ),
        metrics="http://127.0.0.1:19091/metrics",
    ),
    Program(
        "restic", "batch", Debian("restic", "usr/bin/restic"),
        ("-r", "run/repo", "--no-cache", "-q", "backup", "inputs/tree"),
        first=(("-r", "run/repo", "--no-cache", "-q", "init"),),
        env={"RESTIC_PASSWORD": "lab"},
    ),
    Program(
        "promtool", "batch", Debian("prometheus", "usr/bin/promtool"),
        ("tsdb", "create-blocks-from", "openmetrics", "inputs/openmetrics.txt", "run/blocks"),
    ),
    Program(
        "hugo", "batch", Debian("hugo", "usr/bin/hugo", ("libsass1",)),
        ("-s", "inputs/site", "-d", "../../run/public", "--quiet"),
        in_memory=True,
    ),
    Program("gojq", "batch", GOJQ, ORDERS),
    Program(
        "badger", "batch", BADGER,
        ("benchmark", "write", "--dir", "run/d", "--keys-mil", "1.5", "--val-size", "512"),
    ),
    Program(
        "staticcheck", "batch", STATICCHECK, ("-tests=false", "-checks", "SA*", "std"),
        in_memory=True,
    ),
    Program(
        "gofmt", "batch", Tool("bin/gofmt", "1.26.8"), ("-l", "inputs/tree/src", "inputs/tree/src"),
    ),
    Program(
        "compile", "batch", Tool("pkg/tool/linux_amd64/compile", "1.18.10"),
        (
            "-o", "run/ssa.a", "-p", "cmd/compile/internal/ssa", "-c=2", "-trimpath", "inputs",
            "-importcfg", "inputs/importcfg", "@inputs/ssa.files",
        ),
    ),
)  # fmt: skip

# Old enough for Go 1.12 and still fit for Go 1.27.
VERSIONS = (
    "1.12.17", "1.16.15", "1.19.13", "1.22.12", "1.24.10", "1.24.10-noswissmap", "1.26.8", "1.27.1",
)  # fmt: skip


def versions() -> tuple[Program, ...]:
    """Two programs, each built with every generation of the garbage collector."""
    return tuple(
        program
        for version in VERSIONS
        for program in (nsqd_built_with(version), gojq_built_with(version))
    )


def nsqd_built_with(version: str) -> Program:
    source = built_with(version, "github.com/nsqio/nsq", "v1.2.0", "/apps/nsqd")
    name = f"nsqd-go{short(version)}"
    return Program(name, "queue", source, SHORT_QUEUE, 14151, NSQD_LOAD, SHORT_FILL)


def gojq_built_with(version: str) -> Program:
    source = built_with(version, "github.com/itchyny/gojq", "v0.10.4", "/cmd/gojq")
    return Program(f"gojq-go{short(version)}", "batch", source, ORDERS)


def built_with(version: str, module: str, tag: str, package: str) -> Module:
    go, _, experiment = version.partition("-")
    return Module(module, tag, module + package, go, experiment=experiment)


def short(version: str) -> str:
    """Returns 1.24-noswissmap for 1.24.10-noswissmap."""
    go, dash, experiment = version.partition("-")
    return ".".join(go.split(".")[:2]) + dash + experiment


def procs() -> tuple[Program, ...]:
    """Three programs for runs with other numbers of CPUs."""
    chosen = ("caddy-proxy", "victoria-metrics", "staticcheck")
    return tuple(program for program in PROGRAMS if program.name in chosen)
