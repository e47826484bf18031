"""Well-known programs, by their names as the kernel and systemd print them."""

from __future__ import annotations

import pytest

from gctrace_analyzer.analysis.settings.known_programs import is_go, is_not_go
from gctrace_analyzer.testing import read_text


@pytest.mark.parametrize(
    "name",
    [
        "wkhtmltopdf", "soffice.bin", "convert", "magick", "gs", "vips", "clamscan", "tesseract",
        "cp", "python3.11", "php-fpm8.2", "postgres", "postgres: walwriter", "gcc-12", "g++",
        "chrome", "clickhouse-serv", "rabbitmq-server", "unattended-upgr",
        "postgresql@14-main.service", "nginx.service", "git-remote-http", "systemd-journald",
        "node-MainThread", "qemu-system-x86", "cc1plus",
    ],
)  # fmt: skip
def test_a_program_that_is_not_go_is_known_by_its_name(name: str) -> None:
    assert is_not_go(name)
    assert not is_go(name)


@pytest.mark.parametrize(
    "name",
    ["node_exporter", "node-problem-de", "git-lfs", "amazon-ssm-agen", "kubelet", "dockerd",
     "telegraf.service", "prometheus", "caddy_linux-amd64"],
)  # fmt: skip
def test_a_name_that_is_like_that_of_a_program_not_in_go(name: str) -> None:
    assert not is_not_go(name)


@pytest.mark.parametrize("name", ["api", "worker", "server", "main", "billing-api", "", None])
def test_the_name_of_a_service_shows_no_language(name: str | None) -> None:
    assert not is_go(name)
    assert not is_not_go(name)


def test_a_child_that_is_not_go_gets_no_setting_of_go() -> None:
    (death,) = read_text(
        "[ 1201.114502] Memory cgroup out of memory: Killed process 2047 (wkhtmltopdf) "
        "total-vm:6291456kB, anon-rss:520000kB, file-rss:0kB, shmem-rss:0kB\n"
    ).post_mortems()
    assert not [text for text in (*death.reading, *death.advice) if "If wkhtmltopdf is" in text]
