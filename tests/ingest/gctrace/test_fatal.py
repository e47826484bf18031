"""The Go runtime's own end: how many programs, how large the allocation, which system."""

from __future__ import annotations

import pytest

from gctrace_analyzer.testing import read_text
from tests.helpers.corpus import log_of

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (
            "Mar  4 02:11:09 nas app[410]: fatal error: runtime: out of memory\n"
            "Mar  4 05:40:31 nas app[622]: fatal error: runtime: out of memory\n"
            "Mar  4 09:02:55 nas app[815]: fatal error: runtime: out of memory\n",
            3,
        ),
        (
            "2026-03-04T02:11:09Z fatal error: runtime: out of memory\n"
            "2026-03-04T05:11:09Z fatal error: runtime: out of memory\n",
            2,
        ),
        ("crash-1.txt:fatal error: out of memory\ncrash-2.txt:fatal error: out of memory\n", 2),
        (
            "runtime: out of memory: cannot allocate 64-byte block (8 in use)\n"
            "fatal error: out of memory\n",
            1,
        ),
        (
            "2026-03-04T02:11:09.1Z runtime: out of memory: cannot allocate 64-byte block "
            "(8 in use)\n2026-03-04T02:11:09.2Z fatal error: out of memory\n" * 2,
            2,
        ),
    ],
)
def test_each_program_that_ended_counts_once(text: str, number: int) -> None:
    assert len(read_text(text).runtime_fatal) == number


@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("runtime.sysMap(0xc5b5b20000, 0x80000000, 0xc4204b2300, 0xf166f8)", 2 * GIB),
        ("runtime.sysMap(0xc000400000, 0x40000000, 0x1e?)", GIB),
        ("runtime.largeAlloc(0x80000000, 0x1, 0xc420)", 2 * GIB),
        ("runtime.(*mheap).allocSpan(0xe46c80, 0x60000, 0x0, 0x1)", 3 * GIB),
        ("runtime.sysUsedOS(0xcf5f028000, 0x40000000)", GIB),
        # The heap grows by arenas of 64 MiB; the allocation needs less.
        (
            "runtime.sysMap(0xc25c000000, 0x74000000, 0xe7c6f8)\n"
            "runtime.(*mheap).alloc_m(0xe639a0, 0x39780, 0x7f2f29810100, 0x7f2f29813f88)",
            0x39780 * 8192,
        ),
        # Its register was used for something else; the page size shows that.
        (
            "runtime.sysMap(0xc021800000, 0x429960, 0x7ffc)\nruntime.mallocgc(0x80000000, 0x0)",
            2 * GIB,
        ),
    ],
)
def test_the_size_is_an_argument_in_the_traceback(line: str, size: int) -> None:
    run = read_text(f"fatal error: runtime: out of memory\n\nruntime stack:\n{line}\n")
    assert run.runtime_fatal["requested_bytes"].to_list() == [size]
    shown = f"{size >> 20:,} MiB"
    assert shown in run.post_mortems()[0].reading[0]


@pytest.mark.parametrize(
    "size", ["-8289131749560221696", "8289131749560221696", "140737488355328"]
)
def test_a_size_that_no_memory_has_is_a_bug_and_no_shortage(size: str) -> None:
    run = read_text(
        f"runtime: out of memory: cannot allocate {size}-byte block (10485760 in use)\n"
        "fatal error: out of memory\n"
    )
    row = run.runtime_fatal.row(0, named=True)
    assert (row["kind"], row["requested_bytes"]) == ("impossible size", None)
    assert row["in_use_bytes"] == 10_485_760
    (death,) = run.post_mortems()
    assert "when its heap had obtained 10 MiB" in death.reading[0]
    assert "bug" in death.reading[0]
    assert death.preventable == "no"


def test_the_commit_limit_of_windows_is_named() -> None:
    line = "runtime: VirtualAlloc of 536870912 bytes failed with errno={}\nfatal error: out of memory\n"
    (death,) = read_text(line.format(1455)).post_mortems()
    assert "commit limit of Windows" in death.reading[0]
    assert "ulimit" not in " ".join((*death.reading, *death.advice))
    # What is committed has an address already, in a 32-bit program too.
    of_386 = line.format(1455) + "\truntime/asm_386.s:1363 +0x1\n"
    (death,) = read_text(of_386).post_mortems()
    assert "32-bit" not in death.reading[0]
    assert "64 bits" not in " ".join(death.advice)


def test_a_remark_may_follow_the_error() -> None:
    line = "runtime: VirtualAlloc of 1157685248 bytes failed with errno=1455   ← 1.08 GiB at once\n"
    (row,) = read_text(line).runtime_fatal.to_dicts()
    assert row["requested_bytes"] == 1157685248


def test_an_address_that_windows_refuses_is_no_lack_of_memory() -> None:
    (death,) = read_text(
        "runtime: VirtualAlloc of 1048576 bytes failed with errno=487\n"
        "fatal error: runtime: cannot map pages in arena address space\n"
    ).post_mortems()
    assert "an address that it cannot use" in death.reading[0]
    assert "ulimit" not in " ".join((*death.reading, *death.advice))


@pytest.mark.parametrize(
    ("goarch", "said"),
    [
        ("386", "32-bit program (386) is used up"),
        ("amd64", "the address space of the process (`ulimit -v`"),
    ],
)
def test_the_traceback_shows_the_architecture(goarch: str, said: str) -> None:
    (death,) = read_text(
        "runtime: out of memory: cannot allocate 67108864-byte block (1583972352 in use)\n"
        f"fatal error: out of memory\n\t/usr/local/go/src/runtime/asm_{goarch}.s:1373 +0x1\n"
    ).post_mortems()
    assert said in death.reading[0]
    assert ("32-bit" in death.reading[0]) is (goarch == "386")


def test_a_small_heap_has_not_used_up_the_address_space_of_a_32_bit_program() -> None:
    (death,) = read_text(
        "runtime: out of memory: cannot allocate 33554432-byte block (373063680 in use)\n"
        "fatal error: out of memory\n\t/usr/local/go/src/runtime/asm_386.s:1373 +0x1\n"
    ).post_mortems()
    assert "`ulimit -v`" in death.reading[0]
    assert "bits" not in " ".join((*death.reading, *death.advice))


_PANIC = "panic: runtime error: index out of range [5] with length 3\n\n"
_GOROUTINE = "goroutine 1 [running]:\nmain.main()\n\t/app/main.go:7 +0x1d\n"


@pytest.mark.parametrize(
    ("crashes", "said"),
    [
        (_PANIC + _GOROUTINE, "The program crashed with `panic: runtime error: index"),
        (
            "fatal error: concurrent map writes\n\n" + _GOROUTINE,
            "The program crashed with `fatal error: concurrent map writes`.",
        ),
        (2 * (_PANIC + _GOROUTINE), "The program crashed 2 times, first with `panic: runtime"),
        (_PANIC, ""),
        (_PANIC + 30 * "2026/11/21 07:40:52 GET /v1/users 200 12ms\n" + _GOROUTINE, ""),
        ("http: panic serving 10.0.0.1:80: boom\n" + _GOROUTINE, ""),
    ],
)
@pytest.mark.parametrize("prefix", ["", "2026-02-03T10:00:00.005000123Z stderr F "])
def test_a_crash_between_two_processes_is_reported(
    crashes: str, said: str, prefix: str
) -> None:
    cycles = log_of(20)
    text = "".join(f"{prefix}{line}\n" for line in (cycles + crashes + cycles).splitlines())
    notes = [note for note in read_text(text).summary().warnings if "crashed" in note]
    assert len(notes) == bool(said)
    assert all(said in note for note in notes)


FATAL = "fatal error: runtime: out of memory\n\nruntime stack:\n"
_REFUSED = (
    "runtime: out of memory: cannot allocate 4194304-byte block (1755381760 in use)\n"
    "fatal error: out of memory\n"
)


def test_two_threads_without_memory_are_one_death() -> None:
    assert len(read_text(_REFUSED * 2).runtime_fatal) == 1
    grown = _REFUSED.replace("1755381760", "1755385856")
    assert len(read_text(_REFUSED + grown).runtime_fatal) == 2


@pytest.mark.parametrize(
    ("frame", "limits"),
    [
        ("sysMap(0xc008000000, 0x4000000, 0x847798)", {"-d"}),
        ("sysMapOS(0xc000000000, 0x4000000)", {"-d"}),
        ("sysUsedOS(0xc008000000, 0x4000000)", {"-d"}),
        ("sysMap(0xc49d7c0000, 0x11ee0000, 0xc485f9c000, 0xefb058)", {"-v", "-d"}),
        ("mallocgc(0x80000000, 0x1)", {"-v", "-d"}),
    ],
)
def test_what_was_reserved_is_not_refused_by_a_limit_of_the_address_space(
    frame: str, limits: set[str]
) -> None:
    text = f"{FATAL}runtime.{frame}\n\tgo/src/runtime/mem_linux.go:165 +0xc7\n"
    (death,) = read_text(text).post_mortems()
    for said in (death.reading[0], " ".join(death.advice)):
        assert {each for each in ("-v", "-d") if f"`ulimit {each}`" in said} == limits


@pytest.mark.parametrize(
    "command", ["app3410.exe -t x", "C:\\work> .\\app.exe -t x", "PS C:\\> app.exe"]
)
def test_a_program_of_windows_gets_no_advice_for_linux(command: str) -> None:
    (death,) = read_text(f"{command}\n\n{_REFUSED}").post_mortems()
    text = " ".join((*death.reading, *death.advice))
    assert "commit limit of Windows" in text
    assert "ulimit" not in text


def test_a_full_32_bit_address_space_is_enlarged_before_an_allocation_is_looked_for() -> None:
    (death,) = read_text(
        "runtime: out of memory: cannot allocate 597164032-byte block (3378511872 in use)\n"
        "fatal error: out of memory\n\truntime/asm_386.s:1373 +0x1\n"
    ).post_mortems()
    assert death.advice[0] == "Build the program for 64 bits."


@pytest.mark.parametrize(
    ("text", "cause", "advice"),
    [
        (
            f"{FATAL}[00:11:11] \tC:/go/src/runtime/panic.go:605 +0x7c\n",
            "of Windows",
            "page file",
        ),
        (
            f"{FATAL}\tC:/Program Files/Go/src/runtime/panic.go:596 +0x9e\n",
            "of Windows",
            "page file",
        ),
        (f"Go 1.13.4 windows/amd64\n{FATAL}", "of Windows", "page file"),
        (f"go1.12.7.linux-386.tar.gz\n{FATAL}", "32-bit program is used", "for 64 bits"),
        (f"go version go1.21.1 linux/arm\n{FATAL}", "32-bit program is used", "for 64 bits"),
        (f"go version go1.21.1 linux/arm64\n{FATAL}", "ulimit -v", "GOMEMLIMIT (Go 1.19"),
        (
            f"{FATAL}cmd/compile/internal/syntax.(*source).fill(0xc0000)\n",
            "the program compile",
            "go build -p 1",
        ),
        (
            f"go version 1.17\n\n# example.com/shop/api\n{FATAL}",
            "the program compile",
            "go build -p 1",
        ),
        ("fatal error: failed to reserve page summary memory\n", "ulimit -v", "ulimit -v"),
        (
            "runtime: mmap: too much locked memory (check 'ulimit -l').\n",
            "the limit of locked memory",
            "LimitMEMLOCK",
        ),
    ],
)
def test_what_refused_the_memory_depends_on_the_platform(
    text: str, cause: str, advice: str
) -> None:
    run = read_text(text)
    (death,) = run.post_mortems()
    assert cause in f"the program {death.victim} {death.reading}"
    assert advice in " ".join(death.advice)


@pytest.mark.parametrize(
    "text",
    [
        f"go version go1.13.4 linux/amd64\n{FATAL}",
        f"I am running Go 1.18 linux/amd64\n{FATAL}",
        f"{FATAL}runtime.throw(0x26d9370, 0x16)\n",
    ],
)
def test_a_go_without_memory_limits_is_not_told_to_set_one(text: str) -> None:
    (death,) = read_text(text).post_mortems()
    assert "GOMEMLIMIT" not in " ".join((*death.reading, *death.advice))


@pytest.mark.parametrize(
    ("line", "at_start"),
    [
        ("runtime.schedinit()", True),
        ("runtime.doInit1(0x1913fe8)\n\truntime/asm_arm.s:884 +0x4", True),
        ("runtime.sysMap(0xc000000000, 0x4000000, 0x3afca58)", True),
        ("runtime.mallocgc(0x80000000, 0x0)\nruntime.doInit(...)", False),
        ("runtime.main()", False),
    ],
)
def test_a_program_that_got_no_memory_before_main_had_no_heap(
    line: str, at_start: bool
) -> None:
    (death,) = read_text(f"{FATAL}{line}\n").post_mortems()
    text = " ".join((*death.reading, *death.advice))
    assert ("before main" in text) is at_start
    assert ("gctrace=1" in text) is not at_start
    assert "32-bit" not in text


def test_the_heap_at_a_refused_allocation_is_known() -> None:
    line = "runtime: out of memory: cannot allocate 64-byte block (1048576 in use)"
    run = read_text(f"{line} fatal error: out of memory\n")
    assert run.runtime_fatal["in_use_bytes"].to_list() == [1 << 20]
    assert "unknown" not in " ".join(run.post_mortems()[0].reading)


@pytest.mark.parametrize(
    ("line", "heap"),
    [
        ("runtime.sysMap(0xc1e0000000, 0x4000000, 0x16b3e18)", "7,680 MiB"),
        ("runtime.sysMap(0xc49d7c0000, 0x11ee0000, 0xc485f9c000, 0xefb058)", "2,008 MiB"),
        ("runtime.sysMap(0xd800000, 0xc00000, 0x399208)", None),
        # Without `?`, an argument of the register ABI is right; that of sysMap was overwritten.
        (
            "runtime.sysMapOS(0xc001400000, 0xc000800000?)\n"
            "runtime.sysMap(0xe46c80?, 0x21b3a8000?, 0x42cb80?)",
            "20 MiB",
        ),
        # Up to Go 1.10, a table below the heap grows before the heap does.
        (
            "runtime.sysMap(0xc8159fc000, 0x8000, 0xc96bf50000, 0xaa8a98)\n"
            "runtime.mHeap_MapBits(0xa89ba0, 0xc96c050000)",
            "5,312 MiB",
        ),
        (
            "runtime.sysMap(0xc8a9fc0000, 0x100000, 0x0, 0x8a98)\nruntime.mHeap_Grow(0x1)",
            "2,208 MiB",
        ),
        (
            "runtime.sysMap(0xc0a9fc0000, 0x100000, 0x0, 0x8a98)\nruntime.mHeap_Grow(0x1)",
            "640 MiB",
        ),
        # Go 1.6 has the names of 1.7, and the addresses of 1.5.
        *(
            (
                f"runtime.throw(0x8ba570, 0x16)\n\t/go/src/runtime/panic.go:{throw} +0x90\n"
                "runtime.sysMap(0xc8a9fc0000, 0x100000, 0x0, 0x8a98)\nruntime.(*mheap).grow(0x1)",
                heap,
            )
            for throw, heap in ((547, "2,208 MiB"), (566, "18.2 GiB"))
        ),
    ],
)
def test_the_address_of_refused_memory_shows_the_size_of_the_heap(
    line: str, heap: str | None
) -> None:
    (death,) = read_text(f"{FATAL}{line}\n").post_mortems()
    text = " ".join(death.reading)
    assert ("whose heap had" in text) is (heap is not None)
    assert (heap or "") in text
    assert "32-bit" not in text


_UNDER_THROW = (
    "runtime stack:\nruntime.throw({0x12c5ba0?, 0xcf5f05a000?})\n\tgo/src/runtime/panic.go:1067 +0x4d\n"
    "runtime.sysUsedOS(0xcf5f028000, 0x220000)\n\tgo/src/runtime/mem_windows.go:83 +0x1bb\n\n"
)


def test_a_traceback_without_its_error_shows_that_memory_was_refused() -> None:
    run = read_text(_UNDER_THROW * 2)
    (row,) = run.runtime_fatal.to_dicts()
    assert (row["line_no"], row["requested_bytes"], row["goos"]) == (2, 0x220000, "windows")
    (death,) = run.post_mortems()
    assert "commit limit of Windows" in death.reading[0]


def test_a_traceback_of_another_error_is_no_lack_of_memory() -> None:
    run = read_text(
        f"fatal error: runtime: failed to commit pages\n\n{_UNDER_THROW}{log_of(2)}"
    )
    assert run.runtime_fatal.is_empty()


@pytest.mark.parametrize(
    ("file", "step"),
    [("bsd", "login.conf"), ("darwin", "vm.swapusage"), ("linux", "vm.overcommit_memory")],
)
def test_the_next_steps_are_those_of_the_operating_system(file: str, step: str) -> None:
    (death,) = read_text(f"{FATAL}\tgo/src/runtime/mem_{file}.go:71 +0x1\n").post_mortems()
    advice = " ".join(death.advice)
    assert step in advice
    assert ("/proc" in advice) is (file == "linux")


@pytest.mark.parametrize(
    "text",
    [
        "fatal error: out of memory allocating heap arena map\n",
        "fatal error: failed to reserve page summary memory\n",
        f"{FATAL}runtime.sysMapOS(0xc001400000, 0x4000000)\n"
        "runtime.(*mheap).alloc(0xe46c80, 0x6000292, 0x1)\nruntime.schedinit()\n",
        f"{FATAL}runtime.sysMapOS(0xc001400000, 0xc000000000)\n",
    ],
)
def test_an_earlier_gc_is_no_advice_where_it_could_not_free_what_was_asked_for(
    text: str,
) -> None:
    (death,) = read_text(text).post_mortems()
    assert "GOMEMLIMIT" not in " ".join(death.advice)


@pytest.mark.parametrize(
    ("what", "is_first"),
    [
        ("out of memory allocating heap arena map", True),
        ("runtime: cannot reserve arena virtual address space", True),
        ("failed to reserve page summary memory", True),
        ("out of memory allocating heap arena metadata", False),
    ],
)
def test_what_the_runtime_gets_once_is_refused_before_any_heap(
    what: str, is_first: bool
) -> None:
    (death,) = read_text(f"fatal error: {what}\n").post_mortems()
    text = f"{death.reading} {' '.join(death.advice)}"
    assert ("at the start of the program, before main" in text) is is_first
    assert ("gctrace" in text) is not is_first


@pytest.mark.parametrize(("frame", "known"), [("sysUsedOS", False), ("sysMapOS", True)])
def test_memory_that_had_been_returned_does_not_show_how_much_there_was(
    frame: str, known: bool
) -> None:
    text = (
        "fatal error: out of memory\n\nruntime stack:\nruntime.throw({0x60aa31?, 0x0?})\n"
        f"\truntime/panic.go:1023 +0x65\nruntime.{frame}(0xc870382000, 0x11dd2000)\n"
        "\truntime/mem_windows.go:83 +0x1bb\n"
    )
    row = read_text(text).runtime_fatal.row(0, named=True)
    assert (row["in_use_bytes"] is not None) is known


_PLAIN = "runtime: out of memory: cannot allocate {}-byte block ({} in use)\nfatal error: out of memory\n"
_GROWN = """fatal error: runtime: out of memory

runtime.throw({{0xa25205?, 0x20000?}})
runtime.sysMapOS(0xc001400000, 0xc000800000?)
runtime.(*mheap).grow(0xe46c80, {0}?)
runtime.(*mheap).allocSpan(0xe46c80, {0}, 0x0, 0x1)
"""


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        (0x6000292, "768 GiB, which is not a size but the value of an address"),
        (0x2000292, "256 GiB, which is not a size but the value of an address"),  # arm64
    ],
)
def test_a_length_that_is_an_address_is_a_bug(pages: int, said: str) -> None:
    (death,) = read_text(_GROWN.format(hex(pages))).post_mortems()
    assert said in death.reading[0]
    assert "ulimit" not in " ".join((*death.reading, *death.advice))
    assert "gctrace" not in " ".join(death.advice)


def test_a_large_request_of_whole_gib_is_one() -> None:
    (death,) = read_text(_GROWN.format(hex(0x6000000))).post_mortems()
    assert "needed 768 GiB for one allocation" in death.reading[0]


def test_a_request_that_no_machine_can_meet_is_a_bug() -> None:
    (death,) = read_text(_GROWN.format(hex(0x200000000))).post_mortems()
    assert "needed 65,536 GiB for one allocation" in death.reading[0]
    assert "more than any machine has" in death.reading[0]
    (advice,) = death.advice
    assert advice.startswith("Find what allocates that, and check the length")


def test_addresses_that_are_refused_are_no_matter_of_overcommit_or_the_data_limit() -> None:
    (death,) = read_text(_PLAIN.format(597164032, 3379036160)).post_mortems()
    assert (
        "most often it is a 32-bit program whose address space is used up" in death.reading[0]
    )
    said = " ".join((*death.reading, *death.advice))
    assert "`ulimit -v`" in said
    assert not {"overcommit", "`ulimit -d`"} & set(said.replace("_", " ").split())


@pytest.mark.parametrize(
    "text",
    [
        _PLAIN.format(67108864, 0),
        "fatal error: runtime: out of memory\nruntime.sysMap(0x4000000000, 0x4000000, 0x1e)\n",
        "fatal error: pageAlloc: out of memory\n"
        "runtime.(*pageAlloc).grow(0x87d928, 0x4000000000, 0x400000)\n",
    ],
)
def test_the_first_growth_of_the_heap_is_the_start_of_the_program(text: str) -> None:
    (death,) = read_text(text).post_mortems()
    assert "at the start of the program, before main" in death.reading[0]
    assert death.preventable == "no"
    said = " ".join((*death.reading, *death.advice))
    # A process that has just started has few mappings.
    assert not any(word in said for word in ("GOMEMLIMIT", "gctrace", "max_map_count"))


@pytest.mark.parametrize(
    "error",
    [
        "runtime: out of memory",
        "runtime: cannot allocate memory",
        "runtime: cannot map pages in arena address space",
        "out of memory",
    ],
)
def test_an_end_after_many_cycles_is_seen(error: str) -> None:
    run = read_text(f"{log_of(200)}fatal error: {error}\n")
    assert len(run.post_mortems()) == 1, "a log that is mostly gctrace has fatal errors, too"


def test_a_large_object_of_which_only_the_traceback_is_there_was_refused() -> None:
    run = read_text(
        "goroutine 1 [running]:\nruntime.throw({0x11116a9, 0xd})\n"
        "        C:/Program Files (x86)/Go/src/runtime/panic.go:1077 +0x4d fp=0x10f51434\n"
        "runtime.(*mcache).allocLarge(0xc202d8, 0xc200000, 0x1)\n"
        "        C:/Program Files (x86)/Go/src/runtime/mcache.go:236 +0x1c5 fp=0x10f51460\n"
        "runtime.mallocgc(0xc200000, 0x0, 0x0)\n"
        "        C:/Program Files (x86)/Go/src/runtime/asm_386.s:1363 +0x1 fp=0xa44aff4\n"
    )
    (row,) = run.runtime_fatal.to_dicts()
    assert (row["requested_bytes"], row["goarch"]) == (0xC200000, "386")


_OLD_THROW = "runtime.throw(0x561a8d, 0xd)\n\t{}/src/runtime/panic.go:{} +0x9c\n"


@pytest.mark.parametrize(
    ("asked", "used", "line", "root", "said"),
    [
        (
            31195136,
            34312716288,
            605,
            "C:/Go",
            "MiB: too much for its Go, whose heap has at most 32",
        ),
        (
            1 << 32,
            549621596160,
            605,
            "/usr/local/go",
            "MiB: too much for its Go, whose heap has at",
        ),
        (1 << 32, 549621596160, 774, "/usr/local/go", "probably too much for its Go"),
        (
            600 * GIB,
            GIB,
            616,
            "/usr/local/go",
            "GiB: too much for its Go, whose heap has at most",
        ),
        (1 << 26, 34312716288, 605, "/usr/local/go", "`ulimit -v`"),
        (1 << 26, 20 * GIB, 605, "C:/Go", "most often the commit limit of Windows"),
        (600 * GIB, GIB, 774, "/usr/local/go", "`ulimit -v`"),
    ],
)
def test_a_heap_that_has_all_addresses_of_an_old_go_was_not_refused_by_the_system(
    asked: int, used: int, line: int, root: str, said: str
) -> None:
    (death,) = read_text(
        _PLAIN.format(asked, used) + _OLD_THROW.format(root, line)
    ).post_mortems()
    assert said in death.reading[0]
    is_full = "whose heap has at most" in said or "too much" in said
    assert ("The operating system did not refuse it." in death.reading[0]) == is_full
    assert not (is_full and {"page", "ulimit"} & set(" ".join(death.advice).split()))


def test_a_newer_go_has_more_addresses() -> None:
    (death,) = read_text(
        "go version go1.21.1 linux/amd64\n" + _PLAIN.format(1 << 32, 549621596160)
    ).post_mortems()
    assert "too much" not in death.reading[0]


def test_webassembly_has_no_64_bit_build() -> None:
    trace = "runtime.throw({0x2f6d6, 0xd})\nwasm_exec_node.js:45\n"
    (death,) = read_text(_PLAIN.format(GIB, 3 * GIB) + trace).post_mortems()
    assert "WebAssembly has addresses for 4 GiB at most" in death.reading[0]
    assert "64 bits" not in " ".join(death.advice)
