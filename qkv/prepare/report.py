"""What happened to every line: a log of all that were left out or mended, counts of the rules, and a summary."""

from __future__ import annotations

import bisect
import contextlib
import gzip
import io
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from qkv.text.cleaning import REPAIRS, Repair
from qkv.text.files import Fault, Side
from qkv.text.typography import mixture

_FIRST = 20
_SHOWN = 5


class Place(NamedTuple):
    """A line as the user knows it; the column too, where one of a file of several is meant."""

    file: str
    line: int
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value is not None}


class Part(NamedTuple):
    """One TSV or two parallel files, and the number of its first line, counted on from 1 over all parts."""

    files: Sequence[str]
    first_line: int


@dataclass
class Places:
    """Where each line of the concatenated input stands."""

    parts: list[Part] = field(default_factory=list)

    def find(self, line: int, side: Side | None = None) -> Place:
        """The place of a line; where no side is meant, it is told by its source file."""
        part = self.parts[bisect.bisect_right(self.parts, line, key=lambda part: part.first_line) - 1]
        within = line - part.first_line + 1
        number = ("source", "target").index(side or "source")
        if len(part.files) > 1:
            return Place(part.files[number], within)
        return Place(part.files[0], within, None if side is None else number + 1)

    def as_json(self) -> list[dict[str, Any]]:
        return [part._asdict() for part in self.parts]

    @classmethod
    def from_json(cls, parts: Sequence[Mapping[str, Any]]) -> Places:
        return cls([Part(**part) for part in parts])


class Found:
    """What was found in lines of one corpus: how often, and where first."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._first: dict[str, list[Place]] = {}

    def add(self, rule: str, place: Place) -> None:
        self.counts[rule] += 1
        first = self._first.setdefault(rule, [])
        if len(first) < _FIRST:
            first.append(place)

    def as_json(self) -> dict[str, Any]:
        return {
            rule: {"count": count, "first": first_places(self._first[rule])}
            for rule, count in sorted(self.counts.items())
        }


class Tally:
    """Counts of one corpus: lines read, left out by each rule, and mended."""

    def __init__(self) -> None:
        self.places = Places()
        self.read = 0
        self.dropped = Found()
        self.mended = Found()
        self.marks: dict[Side, Counter[str]] = {"source": Counter(), "target": Counter()}
        """Apostrophes and quotation marks of each kind, as they are after cleaning."""

    def as_json(self) -> dict[str, Any]:
        return {"read": self.read, "dropped": self.dropped.as_json(), "mended": self.mended.as_json()}

    def mixed_marks(self) -> list[str]:
        """What to know of the marks, where a side has two kinds for the same thing."""
        return [
            f"the {side} side has {', and '.join(told)} for the same thing, and what learns from it mixes them; "
            "--set data.typography=plain makes them one"
            for side, found in self.marks.items()
            if (told := mixture(found))
        ]


class LineLog:
    """Writes every line that is left out or mended, with its file, number and rule, and counts it."""

    def __init__(self, *, dropped: Path, mended: Path) -> None:
        self._paths = (dropped, mended)
        self._files = contextlib.ExitStack()

    def __enter__(self) -> LineLog:
        with contextlib.ExitStack() as opened:
            self._dropped, self._mended = (opened.enter_context(_table(path)) for path in self._paths)
            self._files = opened.pop_all()
        self._dropped.write("file\tline\tcolumn\trule\n")
        self._mended.write("file\tline\tcolumn\trule\tlost text\n")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the files; nothing more can be logged."""
        self._files.close()

    def drop(self, tally: Tally, line: int, fault: Fault) -> None:
        """Counts one line of the corpus that `tally` is for, which is left out."""
        place = tally.places.find(line, fault.side)
        self._dropped.write(f"{_columns(place)}\t{fault.rule}\n")
        tally.dropped.add(fault.rule, place)

    def mend(self, tally: Tally, line: int, repair: Repair) -> None:
        """Counts one line of the corpus that `tally` is for, which is used as it was mended."""
        place = tally.places.find(line, repair.side)
        lost = _readable(repair.lost)
        self._mended.write(f"{_columns(place)}\t{repair.rule}\t{lost}\n")
        tally.mended.add(repair.rule, place)


def first_places(places: Sequence[Place]) -> list[dict[str, Any]]:
    """The first few of many places, as they stand in a report."""
    return [place.as_json() for place in places[:_FIRST]]


def named(first: Sequence[Mapping[str, Any]], count: int) -> str:
    """A few of `count` places as a person reads them: `a.en:3, 5, b.tsv:8 (column 2), ...`."""
    shown = list(first[:_SHOWN])
    parts = []
    for file, places in itertools.groupby(shown, key=lambda place: Path(place["file"]).name):
        parts.append(f"{file}:{', '.join(map(_line, places))}")
    return ", ".join(parts) + (", ..." if count > len(shown) else "")


def reasons(tally: Tally) -> str:
    """Why lines were left out, in one line: `empty 3, duplicate 1`."""
    counts = tally.dropped.counts.most_common()
    return ", ".join(f"{rule} {count:,}" for rule, count in counts) or "there was nothing in them"


def summarise(report: Mapping[str, Any], *, dropped: Path, mended: Path) -> str:
    """A report as a person reads it; `dropped` and `mended` are the files that it names for more."""
    training, validation = report["training"], report["validation"]
    cuts = report["segmentations"]
    kept = f"{training['pairs'] // cuts:,} for training{f' in {cuts} cuts each' if cuts > 1 else ''}"
    held_out, left_out = f"{validation['pairs']:,} for validation", f"{sum(_counts(training)):,} left out"
    counted = _counted(report)
    lines = [
        f"{training['read']:,} pairs read, {left_out}; counted {counted}: {kept}, {held_out}"
        if counted
        else f"{training['read']:,} pairs read: {kept}, {held_out}, {left_out}"
    ]
    # Data of an older version does not tell of its test set.
    parts = {name: report[name] for name in ("training", "validation", "test") if name in report}
    for name, part in parts.items():
        lines += _rows(f"left out of {name}", part["dropped"])
        lines += _rows(f"mended in {name}", _repairs(part), REPAIRS)
    if any(part["dropped"] for part in parts.values()):
        lines.append(f"every line left out stands in {dropped}")
    if any(_repairs(part) for part in parts.values()):
        lines.append(f"every line mended stands in {mended}")
    vocabulary = report["vocabulary"]
    lines.append(
        f"vocabulary of {vocabulary['size']:,} subwords; "
        f"{training['source_tokens']:,} source and {training['target_tokens']:,} target tokens for training"
    )
    lines += [f"note: {note}" for note in report["notes"]]
    lines += [f"warning: {warning}" for warning in report["warnings"]]
    return "\n".join(lines)


@contextlib.contextmanager
def _table(path: Path) -> Iterator[TextIO]:
    """A compressed file to write: without name and time, so that the same rows give the same bytes."""
    with (
        path.open("wb") as raw,
        # Rows are so alike that the quickest level makes them nearly as small as the slowest.
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=1) as compressed,
        io.TextIOWrapper(io.BufferedWriter(compressed), encoding="utf-8", errors="surrogateescape", newline="") as text,
    ):
        yield text


def _columns(place: Place) -> str:
    return f"{place.file}\t{place.line}\t{place.column or ''}"


def _line(place: Mapping[str, Any]) -> str:
    return f"{place['line']} (column {place['column']})" if "column" in place else str(place["line"])


def _counted(report: Mapping[str, Any]) -> str | None:
    """How pairs are counted that are learned from more or less often than once."""
    # Data of an older version does not tell of its corpora.
    rows = report.get("corpora", [])
    ways = [
        (any(len(row["directions"]) > 1 for row in rows), "once for each direction"),
        (any(row["repetitions"] != 1 for row in rows), "as often as the mix repeats them"),
    ]
    return " and ".join(told for there, told in ways if there) or None


def _counts(part: Mapping[str, Any]) -> list[int]:
    return [rule["count"] for rule in part["dropped"].values()]


def _repairs(part: Mapping[str, Any]) -> Mapping[str, Any]:
    # An older version counted them and did not keep their places; its data is as good to train on.
    repairs: Mapping[str, Any] = part.get("mended", {})
    return repairs


def _rows(title: str, rules: Mapping[str, Any], how: Mapping[str, str] | None = None) -> list[str]:
    if not rules:
        return []
    rows = [f"{title}:"]
    for rule, found in sorted(rules.items(), key=lambda item: -item[1]["count"]):
        done = f"; {how[rule]}" if how else ""
        rows.append(f"  {rule:<22}{found['count']:>12,}   {named(found['first'], found['count'])}{done}")
    return rows


def _readable(lost: bytes) -> str:
    """The bytes as text; what is no text, or would break the table's lines, is escaped."""
    text = lost.decode(errors="backslashreplace")
    return "".join(one if one.isprintable() or one == "\t" else ascii(one)[1:-1] for one in text)
