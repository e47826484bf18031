"""Removes log prefixes from lines, which leaves the message and its metadata.

Log formats that add a prefix ("wrappers") can be nested, as when CRI lines contain journald
text, so prefixes are removed repeatedly. A sample of the lines shows which wrappers occur.
Then each line is matched by itself, and a line that matches none of them stays unchanged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from gctrace_analyzer.ingest import identity_names
from gctrace_analyzer.ingest.wrappers.formats import RECORD, WRAPPERS, Wrapper, ascii_only
from gctrace_analyzer.ingest.wrappers.json_lines import JSON_LINE, decode
from gctrace_analyzer.ingest.wrappers.metadata import METADATA, completed, detached, origin_of
from gctrace_analyzer.ingest.wrappers.quoting import COMMENTED_BY, margin_of
from gctrace_analyzer.ingest.wrappers.tally import SAMPLE_LINES, Tally
from gctrace_analyzer.ingest.wrappers.timestamps import TIMESTAMP_COLUMNS

if TYPE_CHECKING:
    from collections import Counter

DEEPEST = 4
_RECORD = r"gc #?[0-9]+ @[0-9]"
_ANY_RECORD = re.compile(ascii_only(RECORD))
_STEP = " > "
QUOTED = "quoted"
_LABEL = r'(?:^|[ ,])(?:{})="([^"]*)"'
_PAIR = r'(?:^| )(?:{})="?([^" ]+)'
_NAMES = {
    column: "|".join(map(re.escape, identity_names.LABELS[column]))
    for column in ("host", "pod", "container", "namespace", "stream", "unit")
}
"""Names of labels and fields that identify a process; a service may belong to a peer."""


class Stripped(NamedTuple):
    """Messages without log prefixes.

    Attributes:
        lines: `line_no text`, and if there were any prefixes the columns of `METADATA` and
            `path`, the names of the wrappers.
        wrappers: number of lines by wrapper.
        depth: how many wrappers were nested at most.
        has_pieces: whether pieces of long lines were rejoined.
        messages: the lines that other readers may understand, if known; all other lines are then
            cycles.
    """

    lines: pl.DataFrame
    wrappers: Counter[str]
    depth: int
    has_pieces: bool = False
    messages: pl.DataFrame | None = None

    @property
    def is_wrapped(self) -> bool:
        """Whether any line had a prefix; if not, the lines have only `line_no text`."""
        return "path" in self.lines.columns


def strip_prefixes(lines: pl.DataFrame, tally: Tally | None = None) -> Stripped:
    """Returns the lines without their prefixes, however many are nested."""
    tally = tally or Tally()
    # Lines without a record are sampled separately, because they are rare and may have other
    # wrappers.
    record = lines["text"].str.contains(_RECORD) if tally.size(lines) > SAMPLE_LINES else None
    groups = [lines] if record is None else [lines.filter(record), lines.filter(~record)]
    levels = [_level(group, DEEPEST, tally) for group in groups]
    counts = tally.counts
    if all(level is None for level in levels):
        return Stripped(lines, counts, 0)
    stripped = pl.concat(
        completed(group) if level is None else level
        for group, level in zip(groups, levels, strict=True)
    )
    if not stripped["line_no"].is_sorted():
        stripped = stripped.sort("line_no", maintain_order=True)
    has_pieces = bool((stripped["tag"] == "P").any())
    stripped = _with_pieces_joined(stripped) if has_pieces else stripped.drop("tag")
    depth = int(stripped["path"].str.count_matches(_STEP).max() or 0)  # type: ignore[arg-type]
    counts.pop(QUOTED, None)
    return Stripped(stripped, counts, depth, has_pieces)


def unwrapped(text: str) -> str | None:
    """Returns a text without its comment marks or one log prefix, indented; None if unchanged."""
    lines = text.split("\n")
    if margin := margin_of(text, COMMENTED_BY):
        return "\n".join(line[len(margin) :] for line in lines)
    numbered = pl.DataFrame({"line_no": range(len(lines)), "text": lines})
    level = _level(numbered, 1, Tally())
    if level is None:
        return None
    wrapped = level.filter(pl.col("path").is_not_null() & (pl.col("path") != QUOTED))
    if len(wrapped) < _NEARLY_ALL * sum(map(bool, map(str.strip, lines))):
        return None
    messages = dict(zip(wrapped["line_no"], wrapped["text"], strict=True))
    prefixes = {at: lines[at].removesuffix(text) for at, text in messages.items() if text}
    blanks = {at: len(prefix) - len(prefix.rstrip()) for at, prefix in prefixes.items()}
    least = min(blanks.values(), default=0)
    return "\n".join(
        " " * (blanks.get(at, least) - least) + messages.get(at, "") for at in range(len(lines))
    )


_NEARLY_ALL = 0.9
"""Share of the lines that have a prefix if the whole text has it."""


def by_depth(lines: pl.DataFrame, depth: int) -> pl.DataFrame:
    """Returns the lines with no prefix removed, with one removed, and so on up to `depth`.

    The parts of a torn record are searched for among lines with the same prefixes removed.
    """
    plain = lines.with_columns(pl.col("line_no").cast(pl.Int64), origin=pl.lit(""))
    if not depth:
        return detached(plain)
    frames = [completed(lines)]
    frames += [
        frame for d in range(1, depth + 1) if (frame := _level(lines, d, Tally())) is not None
    ]
    levels = pl.concat(frame.drop("tag") for frame in frames)
    return detached(levels.with_columns(pl.col("line_no").cast(pl.Int64), origin_of()))


def _level(lines: pl.DataFrame, depth: int, tally: Tally) -> pl.DataFrame | None:
    """Returns the lines without one level of wrappers; None if no wrapper fits any of them."""
    if lines.is_empty() or not depth:
        return None
    parts: list[pl.DataFrame] = []
    rest = lines
    json = rest["text"].str.contains(JSON_LINE)
    if json.any():
        decoded, others = decode(rest.filter(json), tally)
        if len(decoded):
            parts.append(_with_inner(decoded, depth, tally, "JSON"))
        rest = pl.concat([rest.filter(~json), others])
    for wrapper in _wrappers_of(tally.sample(rest)):
        fits = rest["text"].str.contains(wrapper.regex)
        if wrapper.before_name and fits.any():
            fits &= ~rest["text"].str.contains(wrapper.unless)
        if not fits.any():
            continue
        matching, rest = (
            (rest, rest.clear()) if fits.all() else (rest.filter(fits), rest.filter(~fits))
        )
        tally.add(wrapper.name, matching)
        parts.append(_with_inner(_cut(matching, wrapper), depth, tally, wrapper.name))
    if not parts:
        return None
    if len(rest):
        parts.append(completed(rest))
    return pl.concat(parts)


def _wrappers_of(sample: list[str]) -> list[Wrapper]:
    """Returns the wrappers that occur in a sample of lines."""
    records = sum(_ANY_RECORD.search(text) is not None for text in sample)
    wrappers = []
    # No format fits a record itself, and compiling all of them takes longer than reading a short
    # log.
    sample = [text for text in sample if not _ANY_RECORD.match(text)]
    for wrapper in WRAPPERS:
        if not sample:
            break
        left = [text for text in sample if not wrapper.matches(text)]
        fits = len(sample) - len(left)
        if fits and not (wrapper.message and 2 * fits < records):
            wrappers.append(wrapper)
            sample = left
    return wrappers


def _cut(lines: pl.DataFrame, wrapper: Wrapper) -> pl.DataFrame:
    """Returns lines with one wrapper removed: metadata in columns, and the message as `text`."""
    text = lines["text"]
    groups = text.str.extract_groups(wrapper.cutting).struct.unnest()
    parts = pl.DataFrame({"text": text, "wrapping": groups["wrapping"]}).select(
        pl.col("text")
        .cast(pl.Binary)
        .bin.slice(pl.col("wrapping").str.len_bytes())
        .cast(pl.String)
    )
    cut = parts.to_series()
    metadata = groups.drop("wrapping")
    if wrapper.name == QUOTED:
        # Quote marks may be repeated (a reply to a reply), and a quoted comment may be indented.
        cut = cut.str.replace(r"^(?:> ?|[ \t]|`{1,3})+", "")
    if "labels" in metadata.columns:
        metadata = metadata.hstack(_named(metadata["labels"], _LABEL))
    if wrapper.name == "logfmt":
        metadata = metadata.hstack(_named(text, _PAIR))
    return completed(lines.select("line_no").hstack([cut.rename("text")]).hstack(metadata))


def _named(texts: pl.Series, pattern: str) -> pl.DataFrame:
    """Returns the identity columns from Loki's labels or logfmt fields."""
    return pl.DataFrame(
        {
            column: texts.str.extract(pattern.format(names))
            for column, names in _NAMES.items()
            if texts.str.contains(pattern.format(names)).any()
        }
    )


def _with_inner(outer: pl.DataFrame, depth: int, tally: Tally, name: str) -> pl.DataFrame:
    """Returns the messages of `outer` without inner prefixes.

    Metadata of the outer prefix takes precedence; that of inner prefixes fills the gaps.
    """
    outer = outer.with_columns(path=pl.lit(_STEP + name))
    inner = _level(outer.select("line_no", "text"), depth - 1, tally)
    if inner is None:
        return outer
    inner = inner.join(
        outer.drop("text"), on="line_no", how="left", suffix="_outer", maintain_order="left"
    )
    # The outer wrapper has a better clock than the application's own text, so its time is used
    # unless it lacks a time zone, or was printed long after the event.
    own = pl.col("local_time").is_null() | pl.col("zone_outer").is_not_null()
    own &= pl.col("local_time").is_null() | ~pl.col("text").str.contains(_ROW_OF_EVENTS)
    take = pl.col("local_time_outer").is_not_null() & own
    times = [
        pl.when(take).then(f"{name}_outer").otherwise(name).alias(name)
        for name in TIMESTAMP_COLUMNS
    ]
    others = [name for name in (*METADATA, "tag") if name not in TIMESTAMP_COLUMNS]
    return inner.select(
        "line_no",
        "text",
        *times,
        *(pl.coalesce(f"{name}_outer", name).alias(name) for name in others),
        path=pl.concat_str("path_outer", pl.col("path").fill_null("")),
    ).select("line_no", "text", *METADATA, "tag", "path")


_ROW_OF_EVENTS = (
    r"^\s*(?:Received|Task Setup|Driver|Started|Terminated|"
    r"Kill(?:ing|ed)|(?:Not )?Restarting)  "
)
"""A row below the head `Time  Type  Description` of Nomad, the newest first."""


def _with_pieces_joined(lines: pl.DataFrame) -> pl.DataFrame:
    """Rejoins the pieces of long lines, because container runtimes split lines at 16 KiB."""
    stream = ["stream", "pod", "container", "container_id"]
    continues = (pl.col("tag") == "P").fill_null(value=False)
    follows = continues.shift(1, fill_value=False).over(stream)
    pieces = lines.with_columns(part=(~follows).cum_sum().over(stream))
    whole = pieces.group_by([*stream, "part"], maintain_order=True).agg(
        pl.col("text").str.join(""), pl.exclude("text", "tag").first()
    )
    return whole.select("line_no", "text", *METADATA, "path").sort(
        "line_no", maintain_order=True
    )
