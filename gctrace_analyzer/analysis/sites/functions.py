"""The package of a function, and whether it belongs to the program itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from gctrace_analyzer.schema import Row

_STANDARD = (
    "archive", "arena", "bufio", "builtin", "bytes", "cmp", "compress", "container", "context",
    "crypto", "database", "debug", "embed", "encoding", "errors", "expvar", "flag", "fmt", "go",
    "hash", "html", "image", "index", "internal", "io", "iter", "log", "maps", "math", "mime",
    "net", "os", "path", "plugin", "reflect", "regexp", "runtime", "simd", "slices", "sort",
    "strconv", "strings", "structs", "sync", "syscall", "testing", "text", "time", "unicode",
    "unique", "unsafe", "vendor", "weak",
)  # fmt: skip
"""The first elements of the import paths of the standard library (`ls $(go env GOROOT)/src`)."""

_PACKAGE = r"^((?:[^\[]*/)?[^./\[]*)\."
"""The import path: up to the first point after the last slash, outside of type arguments."""

_LONG_PATH = re.compile(r"^(?:[^\[/]*/)+(?=[^/\[]*/)")


def is_standard(names: pl.Series) -> pl.Series:
    """Returns whether functions belong to the runtime or standard library, or have no package.

    >>> import polars as pl
    >>> is_standard(pl.Series(["fmt.Sprint", "main.main", "go.uber.org/zap.L"])).to_list()
    [True, False, False]
    """
    package = names.str.extract(_PACKAGE)
    first = package.str.extract(r"^([^/]*)")
    return (first.is_in(_STANDARD) | package.is_null()).rename("standard")


def short_name(function: str) -> str:
    """Returns a short name: without type arguments and the path of the module.

    >>> short_name("github.com/acme/shop/cart.(*Cart).Add"), short_name("main.Map[go.shape.int]")
    ('shop/cart.(*Cart).Add', 'main.Map[...]')
    """
    begin, end = function.find("["), function.rfind("]")
    if 0 <= begin < end:
        function = f"{function[:begin]}[...]{function[end + 1 :]}"
    return _LONG_PATH.sub("", function)


def place(site: Row) -> str:
    """Returns a function with its heaviest line; `…` stands for others: `main.get (a.go:8, …)`."""
    function, file = short_name(site["function"]), re.split(r"[/\\]", site["file"])[-1]
    return f"{function} ({file}:{site['lines'] or site['line']})" if file else function
