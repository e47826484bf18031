"""Documents that hold several records keep the lines of each."""

from __future__ import annotations

import io

import gctrace_analyzer as gca
from tests.helpers.logs import KILL, records


def exported(**fields: str) -> str:
    return "".join(f"{name}={value}\n" for name, value in fields.items()) + "\n"


def test_rows_of_a_document_have_the_lines_of_its_records() -> None:
    """`journalctl -o export` has several lines for each message."""
    kernel = {"_TRANSPORT": "kernel", "SYSLOG_IDENTIFIER": "kernel", "_HOSTNAME": "h"}
    head = "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name"
    messages = [
        *records(2),
        "api invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        head,
        "[      7]     0     7    20000       100   900000        0             0 api",
        KILL.format(pid=7, comm="api", kb=400),
        records(3)[2][:40],
    ]
    texts = [
        exported(__CURSOR=str(n), **kernel, MESSAGE=text) for n, text in enumerate(messages)
    ]
    run = gca.read(io.BytesIO("".join(texts).encode()))
    begins = [1 + 6 * n for n in range(len(messages))]
    assert run.cycles["line_no"].to_list() == begins[:2]
    assert run.oom_kills["line_no"].to_list() == [begins[5]]
    assert run.table("oom_tasks").select("line_no", "kill_line_no").rows() == [
        (begins[4], begins[5])
    ]
    assert run.rejected["line_no"].to_list() == [begins[6]]
