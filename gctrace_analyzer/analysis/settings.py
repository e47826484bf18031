"""What is known of the program's settings, and who says so."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Known:
    """A setting's value and its source."""

    value: float | str | None
    source: str


@dataclass(frozen=True, slots=True)
class Settings:
    """GOGC in percent (`off` if it is off), limits in MiB, CPUs; None: not known."""

    gogc: Known | None = None
    memory_limit_mib: Known | None = None
    container_limit_mib: Known | None = None
    cpu_limit: Known | None = None
    go_version: Known | None = None

    def value(self, name: str) -> Any:
        """The value of a setting; None if it is not known."""
        known = getattr(self, name)
        return None if known is None else known.value

    def to_dict(self) -> dict[str, Any]:
        """The known settings, ready for JSON."""
        return {
            field.name: {"value": known.value, "source": known.source}
            for field in fields(self)
            if (known := getattr(self, field.name)) is not None
        }


def _container(containers: pl.DataFrame, processes: pl.DataFrame) -> dict[str, Any] | None:
    """The container the program ran in: named like it, else the one that died."""
    rows = containers.to_dicts()
    names = {
        name
        for column in ("container", "ident", "pod")
        for name in processes[column].drop_nulls()
    }
    settings = ("gomemlimit_bytes", "memory_limit_bytes", "cpu_limit", "gogc")

    def fitness(row: dict[str, Any]) -> tuple[bool, bool, int]:
        mine = bool({row["name"], row["container"]} & names)
        return mine, bool(row["oom_killed"]), sum(row[name] is not None for name in settings)

    return max(rows, key=fitness, default=None)


def known(
    given: Settings, containers: pl.DataFrame, memstats: pl.DataFrame, processes: pl.DataFrame
) -> Settings:
    """What the reader gave, else what container states and dumps say."""
    found = {field.name: getattr(given, field.name) for field in fields(given)}
    row = _container(containers, processes)
    if row is not None:
        where = f"docker or kubectl, {row['name'] or row['container'] or 'container'}"
        for name, column, factor in (
            ("memory_limit_mib", "gomemlimit_bytes", MIB),
            ("container_limit_mib", "memory_limit_bytes", MIB),
            ("cpu_limit", "cpu_limit", 1),
        ):
            if found[name] is None and row[column] is not None:
                found[name] = Known(row[column] / factor, where)
        if found["gogc"] is None and row["gogc"] is not None:
            found["gogc"] = Known(row["gogc"], where)
    for name, column, factor in (
        ("gogc", "gogc_pct", 1),
        ("memory_limit_mib", "gomemlimit_bytes", MIB),
    ):
        values = memstats[column].drop_nulls()
        if found[name] is None and len(values):
            found[name] = Known(values[-1] / factor, "metrics")
    return Settings(**found)
