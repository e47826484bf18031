"""A table that lacks a column, or has it elsewhere or under another name, breaks nothing."""

from __future__ import annotations

import re

import pytest

from tests.fuzz import surfaces

TABLES = {
    "top": "POD  NAME  CPU(cores)  MEMORY(bytes)\napi-1  api  250m  498Mi\n",
    "top pods": "NAMESPACE  NAME  CPU(cores)  MEMORY(bytes)\nprod  api-1  250m  498Mi\n",
    "top nodes": "NAME  CPU(cores)  CPU%  MEMORY(bytes)  MEMORY%\nnode-3  3521m  44%  15000Mi  97%\n",
    "pods": "NAMESPACE  NAME  READY  STATUS  RESTARTS  AGE\nprod  api-1  0/1  OOMKilled  3  5d\n",
    "events": "LAST SEEN  TYPE  REASON  OBJECT  MESSAGE\n"
    "5m  Warning  OOMKilling  node/node-3  Memory cgroup out of memory: Killed process 7 (api)\n",
    "stats": "CONTAINER ID  NAME  CPU %  MEM USAGE / LIMIT  MEM %  NET I/O  BLOCK I/O  PIDS\n"
    "3f2a1b9c8d7e  api  12.5%  498MiB / 512MiB  97.3%  1kB / 1kB  0B / 0B  12\n",
    "docker ps": "CONTAINER ID  IMAGE  COMMAND  CREATED  STATUS  PORTS  NAMES\n"
    '3f2a1b9c8d7e  api:1  "/api"  2 days ago  Exited (137) 3 minutes ago  80/tcp  api\n',
    "ps": "USER  PID  %CPU  %MEM  VSZ  RSS  TTY  STAT  START  TIME  COMMAND\n"
    "root  7  1.0  9.9  1806896  498000  ?  Ssl  10:00  0:01  /api\n",
    "process": "PID  USER  PR  NI  VIRT  RES  SHR  S  %CPU  %MEM  TIME+  COMMAND\n"
    "7  root  20  0  1806896  498000  9120  S  1.0  9.9  0:01.22  api\n",
    "free": "       total  used  free  shared  buff/cache  available\n"
    "Mem:  16000  15000  500  10  500  600\nSwap:  0  0  0\n",
    "kernel": "[ 9.1] app invoked oom-killer: gfp_mask=0xcc0, order=0, oom_score_adj=0\n"
    "[ 9.2] [ pid ]  uid  tgid  total_vm  rss  pgtables_bytes  swapents  oom_score_adj  name\n"
    "[ 9.2] [ 7]  0  7  451724  127488  1122304  0  0  api\n"
    "[ 9.3] Out of memory: Killed process 7 (api) total-vm:1806896kB, anon-rss:509952kB\n",
    "sacct": "JobID  JobName  State  ExitCode  MaxRSS  ReqMem\n"
    "12.batch  batch  OUT_OF_MEMORY  0:125  8388004K  8G\n",
    "memstats": "HeapAlloc  HeapSys  Sys  NumGC\n104857600  209715200  314572800  12\n"
    "108003328  209715200  314572800  13\n",
}


def _variants(table: str) -> set[str]:
    """Returns the table without each column, with it renamed, and with it before its neighbour."""
    lines = [re.split(r" {2,}", line) for line in table.splitlines()]
    found = set()
    for place in range(max(map(len, lines))):
        found.add(_joined([cells[:place] + cells[place + 1 :] for cells in lines]))
        found.add(_joined([[*lines[0][:place], "OTHER", *lines[0][place + 1 :]], *lines[1:]]))
        swapped = [
            [*cells[:place], *cells[place : place + 2][::-1], *cells[place + 2 :]]
            for cells in lines
        ]
        found.add(_joined(swapped))
        found.add(_joined([swapped[0], *lines[1:]]))
    return found


def _joined(lines: list[list[str]]) -> str:
    return "".join("   ".join(cells) + "\n" for cells in lines)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_with_other_columns_is_read_or_refused(name: str) -> None:
    for table in _variants(TABLES[name]):
        found = surfaces.failure(table.encode(), ("read", "text"))
        assert found is None, table
