"""Peels carriers off lines: what remains is the message, its stamp and whose it is.

Carriers stack (a compressed file of CRI lines that hold journald text), so a peeled message
is peeled again. Which carriers occur is asked of a sample of the lines; each line is then
read by itself, and one that fits none of them stays as it is.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import polars as pl

from gctrace_analyzer.ingest.wrappers.formats import CARRIERS, Wrapper
from gctrace_analyzer.ingest.wrappers.json_lines import JSON_LINE, decode
from gctrace_analyzer.ingest.wrappers.metadata import METADATA, completed, detached, origin_of
from gctrace_analyzer.ingest.wrappers.timestamps import STAMPED

SAMPLE_LINES = 64
SAMPLE_CHARS = 512
DEEPEST = 4
_RECORD = r"gc #?[0-9]+ @[0-9]"
_STEP = " > "
_QUOTED = "quoted"


class Peeled(NamedTuple):
    """Messages: `line_no text path` and the columns of `METADATA`; lines by carrier; the depth.

    `path` names the carriers that were peeled off.
    """

    lines: pl.DataFrame
    wrappers: Counter[str]
    depth: int

    @property
    def is_wrapped(self) -> bool:
        """Whether the lines have what a carrier says; without any they are `line_no text`."""
        return "path" in self.lines.columns


def peel(lines: pl.DataFrame, deepest: int = DEEPEST) -> Peeled:
    """Peels `line_no text` as deep as carriers go; `lines` comes back as it is without any."""
    counts: Counter[str] = Counter()
    # The rare lines beside gctrace may be wrapped in their own way, so they are asked apart.
    record = lines["text"].str.contains(_RECORD) if len(lines) > SAMPLE_LINES else None
    groups = [lines] if record is None else [lines.filter(record), lines.filter(~record)]
    levels = [_level(group, deepest, counts) for group in groups]
    if all(level is None for level in levels):
        return Peeled(lines, counts, 0)
    peeled = pl.concat(
        completed(group) if level is None else level
        for group, level in zip(groups, levels, strict=True)
    )
    if not peeled["line_no"].is_sorted():
        peeled = peeled.sort("line_no", maintain_order=True)
    peeled = _joined(peeled)
    depth = int(peeled["path"].str.count_matches(_STEP).max() or 0)  # type: ignore[arg-type]
    counts.pop(_QUOTED, None)
    return Peeled(peeled, counts, depth)


def by_depth(lines: pl.DataFrame, depth: int) -> pl.DataFrame:
    """The lines as they are, and peeled of one carrier, of two, … of `depth`, below each other.

    The parts of a torn record are sought among lines peeled as far as its first part was.
    """
    plain = lines.with_columns(pl.col("line_no").cast(pl.Int64), origin=pl.lit(""))
    if not depth:
        return detached(plain)
    found = [completed(lines)]
    found += [
        frame for d in range(1, depth + 1) if (frame := _level(lines, d, Counter())) is not None
    ]
    levels = pl.concat(frame.drop("tag") for frame in found)
    return detached(levels.with_columns(pl.col("line_no").cast(pl.Int64), origin_of()))


def _level(lines: pl.DataFrame, depth: int, counts: Counter[str]) -> pl.DataFrame | None:
    """The lines without one level of wrappers; None if no wrapper fits any of them."""
    if lines.is_empty() or not depth:
        return None
    parts: list[pl.DataFrame] = []
    rest = lines
    json = rest["text"].str.contains(JSON_LINE)
    if json.any():
        decoded, others, carried = decode(rest.filter(json))
        counts += carried
        if len(decoded):
            parts.append(_inner(decoded, depth, counts, "JSON"))
        rest = pl.concat([rest.filter(~json), others])
    for wrapper in _likely(rest):
        if rest.is_empty():
            break
        fits = rest["text"].str.contains(wrapper.regex)
        if not fits.any():
            continue
        mine, rest = (
            (rest, rest.clear()) if fits.all() else (rest.filter(fits), rest.filter(~fits))
        )
        counts[wrapper.name] += len(mine)
        parts.append(_inner(_cut(mine, wrapper), depth, counts, wrapper.name))
    if not parts:
        return None
    if len(rest):
        parts.append(completed(rest))
    return pl.concat(parts)


def _likely(lines: pl.DataFrame) -> list[Wrapper]:
    """The carriers of a sample of lines: the first, the last, and others evenly between."""
    step = max(1, len(lines) // SAMPLE_LINES)
    texts = lines["text"].gather_every(step).append(lines["text"].tail(4)).to_list()
    sample = [text[:SAMPLE_CHARS] for text in texts if text]
    found = []
    for wrapper in CARRIERS:
        left = [text for text in sample if not wrapper.compiled.match(text)]
        if len(left) < len(sample):
            found.append(wrapper)
            sample = left
        if not sample:
            break
    return found


def _cut(lines: pl.DataFrame, wrapper: Wrapper) -> pl.DataFrame:
    """Lines of one carrier with what it says in their columns, and the message as `text`."""
    text = lines["text"]
    groups = text.str.extract_groups(f"^(?P<wrapping>{wrapper.regex[1:]})").struct.unnest()
    parts = pl.DataFrame({"text": text, "wrapping": groups["wrapping"]}).select(
        pl.col("text")
        .cast(pl.Binary)
        .bin.slice(pl.col("wrapping").str.len_bytes())
        .cast(pl.String)
    )
    cut = parts.to_series()
    said = groups.drop("wrapping")
    if wrapper.name == _QUOTED:
        # An e-mail may be quoted again, and a comment indented.
        cut = cut.str.replace(r"^(?:> ?|[ \t])+", "")
    if "labels" in said.columns:
        said = said.hstack(_labels(said["labels"]))
    return completed(lines.select("line_no").hstack([cut.rename("text")]).hstack(said))


def _labels(labels: pl.Series) -> pl.DataFrame:
    """Loki's labels, as far as they say whose the line is."""
    names = {
        "host": "host|node|hostname|instance",
        "pod": "pod|pod_name",
        "container": "container|container_name",
        "namespace": "namespace",
        "stream": "stream",
        "unit": "unit|systemd_unit",
    }
    return pl.DataFrame(
        {
            column: labels.str.extract(rf'(?:^|[ ,])(?:{keys})="([^"]*)"')
            for column, keys in names.items()
        }
    )


def _inner(outer: pl.DataFrame, depth: int, counts: Counter[str], name: str) -> pl.DataFrame:
    """The messages of `outer` peeled further; what it leaves open, the outer says."""
    outer = outer.with_columns(path=pl.lit(_STEP + name))
    inner = _level(outer.select("line_no", "text"), depth - 1, counts)
    if inner is None:
        return outer
    inner = inner.join(
        outer.drop("text"), on="line_no", how="left", suffix="_outer", maintain_order="left"
    )
    # The carrier nearest to the disk has the better clock than the application's own text.
    own = pl.col("stamp").is_null() | pl.col("zone_outer").is_not_null()
    take = pl.col("stamp_outer").is_not_null() & own
    stamped = [
        pl.when(take).then(f"{name}_outer").otherwise(name).alias(name) for name in STAMPED
    ]
    others = [name for name in (*METADATA, "tag") if name not in STAMPED]
    return inner.select(
        "line_no",
        "text",
        *stamped,
        *(pl.coalesce(f"{name}_outer", name).alias(name) for name in others),
        path=pl.concat_str("path_outer", pl.col("path").fill_null("")),
    ).select("line_no", "text", *METADATA, "tag", "path")


def _joined(lines: pl.DataFrame) -> pl.DataFrame:
    """Pieces of one line, which container runtimes cut at 16 KiB, put together again."""
    if not (lines["tag"] == "P").any():
        return lines.drop("tag")
    whose = ["stream", "pod", "container", "container_id"]
    continues = (pl.col("tag") == "P").fill_null(value=False)
    follows = continues.shift(1, fill_value=False).over(whose)
    pieces = lines.with_columns(part=(~follows).cum_sum().over(whose))
    whole = pieces.group_by([*whose, "part"], maintain_order=True).agg(
        pl.col("text").str.join(""), pl.exclude("text", "tag").first()
    )
    return whole.select("line_no", "text", *METADATA, "path").sort(
        "line_no", maintain_order=True
    )
