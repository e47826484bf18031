"""Makes the inputs of the programs: the same bytes every time."""

from __future__ import annotations

import base64
import json
import random
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WORDS = [
    "garbage", "collection", "heap", "marking", "sweep", "assist", "goroutine", "channel",
    "select", "interface", "slice", "map", "pointer", "stack", "limit", "target", "pause",
    "worker", "memory", "server", "client", "request", "response", "buffer", "index",
]  # fmt: skip


def make(folder: Path, goroot: Path) -> None:
    """Writes every input that is missing into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in FILES.items():
        path = folder / name
        if not path.exists():
            unfinished = path.with_name(f"{name}.part")
            with unfinished.open("w") as file:
                file.writelines(lines())
            unfinished.rename(path)
    if not (folder / "site").exists():
        site(folder / "site")
    if not (folder / "tree").exists():
        shutil.copytree(goroot, folder / "tree", symlinks=True)


def sentence(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(WORDS, k=words))


def page() -> Iterator[str]:
    """A page with Caddy's template actions."""
    chance = random.Random(1)
    yield "<!doctype html><title>Page</title><p>{{now | date `2006-01-02`}}</p>\n"
    for each in range(120):
        yield f"<p>{{{{.Req.Method}}}} {each} {{{{.Host}}}}: {sentence(chance, 40)}</p>\n"


def data() -> Iterator[str]:
    chance = random.Random(2)
    rows = [{"id": each, "text": sentence(chance, 20)} for each in range(400)]
    yield json.dumps(rows)


def metrics() -> Iterator[str]:
    """Metrics in Prometheus' text format."""
    chance = random.Random(3)
    for name in range(20):
        yield f"# TYPE lab_{name} gauge\n"
        for label in range(40):
            yield f'lab_{name}{{path="/{label}",code="200"}} {chance.random():.6f}\n'


def line_protocol(lines: int) -> Iterator[str]:
    """Points without timestamps in InfluxDB's line protocol, one per series."""
    chance = random.Random(4)
    for each in range(lines):
        tags = f"host=host-{each % 500:04},region=eu-{each % 7},service=api-{each // 500}"
        yield f"cpu,{tags} user={chance.random():.4f},system={chance.random():.4f},n={each}i\n"


def functions_go() -> Iterator[str]:
    """A package without imports, for the compilers of all releases."""
    yield "package functions\n"
    for each in range(3000):
        yield f"""
func F{each}(a []int, m map[string]int, s string) (n int) {{
	for i, x := range a {{
		switch {{
		case x > {each}:
			n += len(s) * i
			m[s+"{each}"] = n
		case x%3 == 1:
			n -= m[s] << uint(i&7)
			a = append(a, n)
		default:
			func(b []int) {{ n ^= cap(b) + len(m) }}(a[i:])
		}}
	}}
	return n + {each}
}}
"""


def functions_js() -> Iterator[str]:
    for each in range(30_000):
        yield f"""
export class C{each} extends Map {{
  static [`n${{{each}}}`] = {each};
  f{each}({{ a = {each}, ...rest }}, ...b) {{
    const sum = b.map((x) => x ** 2 + a).reduce((x, y) => x + y, 0);
    return {{ sum, text: `${{sum}} {sentence(random.Random(each), 8)}`, ...rest }};
  }}
}}
"""


def zone() -> Iterator[str]:
    yield "$ORIGIN example.test.\n$TTL 3600\n"
    yield "@ IN SOA ns.example.test. admin.example.test. 1 7200 3600 1209600 3600\n"
    yield "@ IN NS ns.example.test.\nns IN A 127.0.0.1\n"
    for each in range(100_000):
        yield f"host{each} IN A 10.{each >> 16}.{each >> 8 & 255}.{each & 255}\n"


def queries() -> Iterator[str]:
    chance = random.Random(5)
    for _ in range(100_000):
        kind = chance.choice(("A", "A", "A", "AAAA"))
        yield f"host{chance.randrange(110_000)}.example.test {kind}\n"


def openmetrics() -> Iterator[str]:
    """Samples of 400 series, ten hours long, in the OpenMetrics format."""
    chance = random.Random(6)
    yield "# TYPE lab counter\n"
    for series in range(400):
        total = 0.0
        for each in range(4800):
            total += chance.random()
            at = 1_700_000_000 + each * 15
            yield f'lab_total{{path="/{series}",code="200"}} {total:.3f} {at}\n'
    yield "# EOF\n"


def orders() -> Iterator[str]:
    """One JSON document with an array of objects."""
    chance = random.Random(7)
    yield "["
    for each in range(200_000):
        order = {"id": each, "user": f"u{chance.randrange(20_000)}", "n": chance.randrange(9)}
        order |= {"tags": chance.choices(WORDS, k=3), "price": round(chance.random() * 99, 2)}
        yield ("," if each else "") + json.dumps(order)
    yield "]"


def puts() -> Iterator[str]:
    """An etcd transaction that writes twenty keys."""
    value = base64.b64encode(sentence(random.Random(9), 60).encode()).decode()
    keys = [base64.b64encode(f"key-{each:04}".encode()).decode() for each in range(20)]
    yield json.dumps({"success": [{"requestPut": {"key": k, "value": value}} for k in keys]})


def key_range() -> Iterator[str]:
    first, last = (base64.b64encode(key).decode() for key in (b"key-", b"key."))
    yield json.dumps({"key": first, "range_end": last})


def site(folder: Path) -> None:
    """Writes a Hugo site of a few thousand pages with taxonomies and syntax highlighting."""
    chance = random.Random(10)
    unfinished = folder.with_name("site.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    layouts = {
        "_default/baseof.html": (
            "<html><head><title>{{ .Title }}</title></head><body>"
            '{{ range first 30 site.RegularPages }}<a href="{{ .RelPermalink }}">{{ .Title }}</a>'
            '{{ end }}{{ block "main" . }}{{ end }}</body></html>'
        ),
        "_default/single.html": (
            '{{ define "main" }}<h1>{{ .Title }}</h1>{{ .Content }}{{ .Summary }}'
            "{{ range first 5 (site.RegularPages.Related .) }}{{ .Title }}{{ end }}{{ end }}"
        ),
        "_default/list.html": (
            '{{ define "main" }}{{ range (.Paginate .Pages).Pages }}<h2>{{ .Title }}</h2>'
            "{{ .Summary }}{{ end }}{{ end }}"
        ),
    }
    for name, layout in layouts.items():
        path = unfinished / "layouts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(layout)
    (unfinished / "config.toml").write_text(
        'baseURL = "http://example.test/"\ntitle = "Lab"\n'
        '[taxonomies]\ntag = "tags"\ncategory = "categories"\n'
    )
    posts = unfinished / "content" / "posts"
    posts.mkdir(parents=True)
    for each in range(3000):
        tags = ", ".join(f'"{word}"' for word in chance.sample(WORDS, 3))
        body = "\n\n".join(
            f"## {sentence(chance, 4)}\n\n{sentence(chance, 90)}\n\n"
            f"```go\nfunc f{part}(a int) int {{ return a + {part} }}\n```"
            for part in range(5)
        )
        (posts / f"post-{each:04}.md").write_text(
            f'---\ntitle: "{sentence(chance, 5)}"\ndate: 2024-01-{each % 28 + 1:02}\n'
            f'tags: [{tags}]\ncategories: ["{chance.choice(WORDS)}"]\n---\n\n{body}\n'
        )
    unfinished.rename(folder)


PROMETHEUS = """\
global: {scrape_interval: 1s, scrape_timeout: 900ms, evaluation_interval: 1s}
scrape_configs:
"""
PROMETHEUS += "".join(
    f"- job_name: self{each}\n  static_configs: [{{targets: ['127.0.0.1:19090']}}]\n"
    for each in range(24)
)
PROMETHEUS += (
    "- job_name: caddy\n  static_configs: [{targets: ['127.0.0.1:12019', 'localhost:12019']}]\n"
)

CADDY_TEMPLATES = """\
{
    admin 127.0.0.1:12019
    auto_https off
}
http://127.0.0.1:18080 {
    root * inputs
    templates
    encode gzip
    file_server
    log {
        output discard
    }
}
"""
CADDY_PROXY = """\
{
    admin 127.0.0.1:12019
    auto_https off
    metrics
}
http://127.0.0.1:18080 {
    encode zstd gzip
    reverse_proxy 127.0.0.1:18081
    log {
        output file run/access.log
    }
}
http://127.0.0.1:18081 {
    root * inputs
    file_server browse
}
"""
INFLUXDB = """\
reporting-disabled = true
bind-address = "127.0.0.1:18089"
[meta]
dir = "run/meta"
[data]
dir = "run/data"
wal-dir = "run/wal"
query-log-enabled = false
index-version = "inmem"
[http]
bind-address = "127.0.0.1:18086"
log-enabled = false
[monitor]
store-enabled = false
"""
COREDNS = """\
example.test:15353 {
    bind 127.0.0.1
    file inputs/example.zone
    prometheus 127.0.0.1:19153
    errors
}
"""
REGISTRY = """\
version: 0.1
storage: {filesystem: {rootdirectory: "run/data"}}
log: {level: error, accesslog: {disabled: true}}
http: {addr: "127.0.0.1:15000", debug: {addr: "127.0.0.1:15001"}}
"""
NATS = """\
listen: 127.0.0.1:14222
http: 127.0.0.1:18222
jetstream { store_dir: run/jetstream, max_mem: 2G }
"""

FILES: dict[str, Callable[[], Iterator[str]]] = {
    "page.html": page,
    "data.json": data,
    "metrics.txt": metrics,
    "influx-4000.txt": lambda: line_protocol(4000),
    "functions.go": functions_go,
    "functions.js": functions_js,
    "example.zone": zone,
    "queries.txt": queries,
    "openmetrics.txt": openmetrics,
    "orders.json": orders,
    "puts.json": puts,
    "range.json": key_range,
    "message.txt": lambda: iter([sentence(random.Random(11), 290)]),
    "prometheus.yml": lambda: iter([PROMETHEUS]),
    "templates.caddyfile": lambda: iter([CADDY_TEMPLATES]),
    "proxy.caddyfile": lambda: iter([CADDY_PROXY]),
    "influxdb.toml": lambda: iter([INFLUXDB]),
    "coredns.conf": lambda: iter([COREDNS]),
    "nats.conf": lambda: iter([NATS]),
    "registry.yml": lambda: iter([REGISTRY]),
}
