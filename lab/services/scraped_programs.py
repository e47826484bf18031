"""The programs whose metrics are recorded, and in which groups they run at the same time.

`{a}`, `{b}` and `{c}` are free ports, `{run}` is an empty folder.
"""

# ruff: noqa: E501  # a program and its source are one line

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from lab.services.programs import DNSPERF, Debian, Load, Module, Source, Wrapped, hey

MINUTES = 360


@dataclass(frozen=True, slots=True)
class Target:
    """A program that serves its metrics, with its load."""

    name: str
    source: Source
    words: tuple[str, ...]
    load: tuple[Load, ...] = ()
    # Where Prometheus and, if it serves them, expvar metrics are.
    metrics: str = "127.0.0.1:{a}/metrics"
    expvar: str = ""
    env: dict[str, str] = field(default_factory=dict)
    # Files in `{run}`, by their name.
    files: dict[str, str] = field(default_factory=dict)
    # Live heap under this load and memory outside the heap, for limits (both measured).
    live_mib: float = 0
    beside_mib: float = 12


@dataclass(frozen=True, slots=True)
class Scraped:
    """One recording to make: a program under one setting."""

    target: Target
    label: str
    env: dict[str, str]

    @property
    def folder(self) -> str:
        """The folder of the recording, relative to the manifest."""
        return f"{self.target.name}/{self.label}"


@dataclass(frozen=True, slots=True)
class Wave:
    """Recordings that are made at the same time."""

    name: str
    seconds: float
    runs: tuple[Scraped, ...]


def etcd_words(*words: str) -> tuple[str, ...]:
    return (
        *words, "--data-dir", "{run}/data", "--log-level", "error",
        "--listen-client-urls", "http://127.0.0.1:{a}",
        "--advertise-client-urls", "http://127.0.0.1:{a}",
        "--listen-peer-urls", "http://127.0.0.1:{b}",
        "--initial-advertise-peer-urls", "http://127.0.0.1:{b}",
        "--initial-cluster", "default=http://127.0.0.1:{b}",
    )  # fmt: skip


ETCD_LOAD = (
    hey("{a}/v3/kv/txn", 1, 3, "puts.json"),
    hey("{a}/v3/kv/range", 1, 6, "range.json"),
)
# It scrapes itself under several names, so that it has series to keep.
PROMETHEUS_YML = """\
global: {scrape_interval: 2s, scrape_timeout: 1500ms, evaluation_interval: 2s}
scrape_configs:
""" + "".join(
    f"- job_name: self{each}\n  static_configs: [{{targets: ['127.0.0.1:{{a}}']}}]\n"
    for each in range(4)
)
# As in Prometheus' own go.mod, whose replacements do not count here.
KLOG = (
    "(\n\tk8s.io/klog => github.com/simonpasquier/klog-gokit v0.3.0\n"
    "\tk8s.io/klog/v2 => github.com/simonpasquier/klog-gokit/v3 v3.3.0\n)"
)
PROMETHEUS_WORDS = (
    "--config.file={run}/prometheus.yml", "--storage.tsdb.path={run}/data",
    "--web.listen-address=127.0.0.1:{a}", "--log.level=error",
)  # fmt: skip
PROMETHEUS_LOAD = (
    hey("{a}/api/v1/query?query=sum%20by%20(job)(rate(go_gc_duration_seconds_sum[1m]))", 1, 5),
    hey("{a}/api/v1/query?query=%7Bjob=~%22self.*%22%7D", 1, 1),
)
CADDYFILE = """\
{
    admin 127.0.0.1:{b}
    auto_https off
    metrics
}
http://127.0.0.1:{a} {
    encode gzip
    templates
    root * inputs
    file_server
    log {
        output discard
    }
}
"""
CADDY_OLD = CADDYFILE.replace("    metrics\n", "")
CADDY_LOAD = (hey("{a}/page.html", 1, 8), hey("{a}/data.json", 1, 10))
CADDY_WORDS = ("run", "--config", "{run}/Caddyfile", "--adapter", "caddyfile")
CADDY_ENV = {"AUTOMEMLIMIT": "off", "XDG_DATA_HOME": "{run}", "XDG_CONFIG_HOME": "{run}"}
COREFILE = """\
example.test:{b} {
    bind 127.0.0.1
    file inputs/example.zone
    prometheus 127.0.0.1:{a}
}
"""
DNS_LOAD = (
    Load(
        DNSPERF,
        ("-p", "{b}", "-d", "inputs/queries.txt", "-l", "{seconds}", "-Q", "300", "-c", "2"),
    ),
)
INFLUXDB = """\
reporting-disabled = true
bind-address = "127.0.0.1:{b}"
[meta]
dir = "{run}/meta"
[data]
dir = "{run}/data"
wal-dir = "{run}/wal"
query-log-enabled = false
index-version = "inmem"
[http]
bind-address = "127.0.0.1:{a}"
log-enabled = false
[monitor]
store-enabled = false
"""
REGISTRY = """\
version: 0.1
storage: {filesystem: {rootdirectory: "{run}/data"}}
http: {addr: "127.0.0.1:{a}", debug: {addr: "127.0.0.1:{b}", prometheus: {enabled: true}}}
"""
PUSH_LOAD = (
    hey("{a}/metrics/job/one", 1, 2, "metrics.txt", "PUT"),
    hey("{a}/metrics", 1, 1),
)
WITH_ALL = {"METRICS": "127.0.0.1:{c}"}
"""For a wrapped program: where it serves all of runtime/metrics."""
ALL = partial(Target, metrics="127.0.0.1:{c}/metrics")


def exporter(go: str, live_mib: int, rate_mib_s: int) -> Target:
    return Target(
        f"exporter-go{go.rpartition('.')[0]}",
        Module("", "1", "lab/go/exporter", go),
        ("-listen", "127.0.0.1:{a}", f"-live={live_mib}", f"-rate={rate_mib_s}"),
        metrics="127.0.0.1:{a}/all",
        live_mib=1.05 * live_mib,
        beside_mib=6,
    )


TARGETS = {
    target.name: target
    for target in (
        Target(
            "etcd-3.4", Debian("etcd-server", "usr/bin/etcd"),
            etcd_words("--logger", "zap"), ETCD_LOAD, live_mib=11, beside_mib=14.5,
        ),
        ALL(
            "etcd-3.6", Wrapped("etcd", "go.etcd.io/etcd/server/v3", "v3.6.0", "etcdmain", "Main(os.Args)", "1.24.10"),
            etcd_words(), ETCD_LOAD, env=WITH_ALL, live_mib=11, beside_mib=9,
        ),
        Target(
            "prometheus-2.42", Debian("prometheus", "usr/bin/prometheus"), PROMETHEUS_WORDS,
            PROMETHEUS_LOAD, files={"prometheus.yml": PROMETHEUS_YML}, live_mib=15, beside_mib=15,
        ),
        Target(
            "prometheus-2.54",
            Module("github.com/prometheus/prometheus", "v0.54.1", "github.com/prometheus/prometheus/cmd/prometheus", "1.22.12", KLOG),
            PROMETHEUS_WORDS, PROMETHEUS_LOAD, files={"prometheus.yml": PROMETHEUS_YML}, live_mib=20, beside_mib=12,
        ),
        Target(
            "caddy-2.6", Debian("caddy", "usr/bin/caddy"), CADDY_WORDS, CADDY_LOAD,
            metrics="127.0.0.1:{b}/metrics", expvar="127.0.0.1:{b}/debug/vars",
            env=CADDY_ENV, files={"Caddyfile": CADDY_OLD}, live_mib=6, beside_mib=14,
        ),
        ALL(
            "caddy-2.10", Wrapped("caddy", "github.com/caddyserver/caddy/v2", "v2.10.0", "cmd", "Main()", "1.26.8", ("modules/standard",)),
            CADDY_WORDS, CADDY_LOAD, expvar="127.0.0.1:{b}/debug/vars",
            env={**CADDY_ENV, **WITH_ALL}, files={"Caddyfile": CADDYFILE}, live_mib=7.5, beside_mib=8.5,
        ),
        Target(
            "coredns-1.12",
            Module("github.com/coredns/coredns", "v1.12.1", "github.com/coredns/coredns", "1.24.10"),
            ("-conf", "{run}/Corefile"), DNS_LOAD, files={"Corefile": COREFILE}, live_mib=56, beside_mib=13.5,
        ),
        Target(
            "victoria-metrics-1.79", Debian("victoria-metrics", "usr/bin/victoria-metrics"),
            (
                "-storageDataPath={run}/data", "-httpListenAddr=127.0.0.1:{a}",
                "-loggerLevel=ERROR", "-memory.allowedBytes=128MB",
            ),
            (
                hey("{a}/write", 1, 1, "influx-4000.txt"),
                hey("{a}/api/v1/query?query=sum%20by%20(region)(cpu_user)", 1, 1),
            ),
            live_mib=20, beside_mib=14,
        ),
        Target(
            "pushgateway-1.5", Debian("prometheus-pushgateway", "usr/bin/prometheus-pushgateway"),
            ("--web.listen-address=127.0.0.1:{a}", "--log.level=error"), PUSH_LOAD, live_mib=5, beside_mib=13,
        ),
        Target(
            "pushgateway-1.9",
            Module("github.com/prometheus/pushgateway", "v1.9.0", "github.com/prometheus/pushgateway", "1.21.13"),
            ("--web.listen-address=127.0.0.1:{a}", "--log.level=error"), PUSH_LOAD, live_mib=5, beside_mib=9,
        ),
        Target(
            "node-exporter-1.5",
            Debian("prometheus-node-exporter", "usr/bin/prometheus-node-exporter"),
            ("--web.listen-address=127.0.0.1:{a}", "--log.level=error"),
            (hey("{a}/metrics", 1, 2),), live_mib=2, beside_mib=13,
        ),
        Target(
            "registry-2.8", Debian("docker-registry", "usr/bin/docker-registry"),
            ("serve", "{run}/config.yml"), (hey("{a}/v2/_catalog", 1, 40), hey("{a}/v2/lab/manifests/none", 1, 40)),
            metrics="127.0.0.1:{b}/metrics", expvar="127.0.0.1:{b}/debug/vars",
            files={"config.yml": REGISTRY}, live_mib=2.5, beside_mib=14,
        ),
        Target(
            "rclone-1.60", Debian("rclone", "usr/bin/rclone"),
            (
                "rcd", "--rc-addr", "127.0.0.1:{a}", "--rc-enable-metrics", "--rc-no-auth",
                "--rc-serve", "--config", "{run}/rclone.conf", "-q",
            ),
            (
                hey("{a}/%5Binputs/site/content/posts%5D/post-0001.md", 1, 20),
                hey("{a}/operations/list?fs=inputs/site/content/posts&remote=", 1, 1, "range.json"),
            ),
            live_mib=53, beside_mib=20,
        ),
        Target(
            "influxdb-1.6", Debian("influxdb", "usr/bin/influxd"),
            ("run", "-config", "{run}/influxdb.toml"),
            (
                hey("{a}/query?q=CREATE%20DATABASE%20lab", 1, 1, "message.txt"),
                hey("{a}/write?db=lab", 1, 1, "influx-4000.txt"),
            ),
            expvar="127.0.0.1:{a}/debug/vars", files={"influxdb.toml": INFLUXDB}, live_mib=20, beside_mib=20,
        ),
        exporter("1.23.12", 20, 50),
        exporter("1.25.5", 40, 20),
        exporter("1.27.1", 8, 10),
    )
}  # fmt: skip


def gogc(name: str, value: str) -> Scraped:
    return Scraped(TARGETS[name], f"gogc{value}", {"GOGC": value})


def low(name: str, value: str) -> Scraped:
    """A run with so little room that it looks like a memory limit, but is none."""
    env = {"GOGC": value, "GOMAXPROCS": "1"}
    return Scraped(TARGETS[name], f"gogc{value}", env)


def limited(name: str, factor: float) -> Scraped:
    """A run under a limit that leaves so many times the live heap for the heap."""
    target = TARGETS[name]
    limit = round(target.beside_mib + factor * target.live_mib)
    env = {"GOGC": "100", "GOMEMLIMIT": f"{limit}MiB", "GOMAXPROCS": "1"}
    return Scraped(target, f"limit-x{factor:g}", env)


HOUR = {
    "etcd-3.4": "100", "etcd-3.6": "100", "prometheus-2.42": "100", "caddy-2.10": "200",
    "coredns-1.12": "50", "victoria-metrics-1.79": "100", "pushgateway-1.5": "100",
    "influxdb-1.6": "100", "registry-2.8": "100", "exporter-go1.27": "100",
}  # fmt: skip
HEALTHY = (
    ("etcd-3.4", "caddy-2.6", "pushgateway-1.9", "exporter-go1.23"),
    ("etcd-3.6", "coredns-1.12", "registry-2.8", "exporter-go1.25"),
    ("caddy-2.10", "prometheus-2.42", "rclone-1.60", "node-exporter-1.5"),
    ("victoria-metrics-1.79", "pushgateway-1.5", "exporter-go1.27"),
    ("prometheus-2.54", "influxdb-1.6"),
)
LIMITED = (
    ("etcd-3.4", "exporter-go1.27"),
    ("etcd-3.6", "coredns-1.12"),
    ("prometheus-2.42", "caddy-2.10"),
    ("exporter-go1.23", "exporter-go1.25"),
    ("prometheus-2.54", "rclone-1.60"),
)


def waves() -> list[Wave]:
    """Returns all groups of recordings."""
    minute = ("etcd-3.4", "caddy-2.10", "prometheus-2.54", "rclone-1.60")
    return [
        Wave("hour", 3600, tuple(gogc(*each) for each in HOUR.items())),
        *(
            Wave(
                f"minutes-{number}",
                MINUTES,
                tuple(gogc(name, value) for name in names for value in ("50", "100", "200")),
            )
            for number, names in enumerate(HEALTHY, 1)
        ),
        *(
            Wave(
                f"limits-{number}",
                150,
                tuple(limited(name, factor) for name in names for factor in (0.9, 1.3, 3)),
            )
            for number, names in enumerate(LIMITED, 1)
        ),
        Wave(
            "low",
            150,
            tuple(
                low(name, value)
                for name in ("etcd-3.4", "prometheus-2.42", "pushgateway-1.5", "rclone-1.60")
                for value in ("5", "10")
            ),
        ),
        Wave("minute", 70, tuple(gogc(name, "100") for name in minute)),
    ]


def chosen(names: list[str]) -> list[Wave]:
    """Returns the groups with these names: `minutes` is `minutes-1` and all that follow."""
    return [wave for wave in waves() if {wave.name, wave.name.partition("-")[0]} & set(names)]
