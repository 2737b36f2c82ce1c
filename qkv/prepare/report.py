"""What happened to every line: a log of all that were left out, counts of the rules, and a summary of both."""

from __future__ import annotations

import bisect
import gzip
import io
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from qkv.text.cleaning import REPAIRS
from qkv.text.files import Fault, Side

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


class Tally:
    """Counts of one corpus: lines read, left out by each rule, and mended."""

    def __init__(self) -> None:
        self.places = Places()
        self.read = 0
        self.repairs: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.first: dict[str, list[dict[str, Any]]] = {}

    def as_json(self) -> dict[str, Any]:
        rules = {rule: {"count": count, "first": self.first[rule]} for rule, count in sorted(self.dropped.items())}
        return {"read": self.read, "dropped": rules, "repaired": dict(sorted(self.repairs.items()))}


class DropLog:
    """Writes every line that is left out, with its file, number and rule, and counts it."""

    def __init__(self, path: Path) -> None:
        self._raw = path.open("wb")
        # Without name and time, so that the same drops give the same bytes.
        packed = gzip.GzipFile(filename="", fileobj=self._raw, mode="wb", mtime=0)
        buffered = io.BufferedWriter(packed)
        self._text = io.TextIOWrapper(buffered, encoding="utf-8", errors="surrogateescape", newline="")

    def __enter__(self) -> DropLog:
        self._text.write("file\tline\tcolumn\trule\n")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the file; nothing more can be logged."""
        try:
            self._text.close()
        finally:
            self._raw.close()

    def drop(self, tally: Tally, line: int, fault: Fault) -> None:
        """Counts one line of the corpus that `tally` is for."""
        place = tally.places.find(line, fault.side)
        self._text.write(f"{place.file}\t{place.line}\t{place.column or ''}\t{fault.rule}\n")
        tally.dropped[fault.rule] += 1
        first = tally.first.setdefault(fault.rule, [])
        if len(first) < _FIRST:
            first.append(place.as_json())


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
    return ", ".join(f"{rule} {count:,}" for rule, count in tally.dropped.most_common()) or "there was nothing in them"


def summarise(report: Mapping[str, Any], dropped: str) -> str:
    """A report as a person reads it."""
    training, validation = report["training"], report["validation"]
    cuts = report["segmentations"]
    kept = f"{training['pairs'] // cuts:,} for training{f' in {cuts} cuts each' if cuts > 1 else ''}"
    lines = [
        f"{training['read']:,} pairs read: {kept}, "
        f"{validation['pairs']:,} for validation, {sum(_counts(training)):,} left out"
    ]
    for name in ("training", "validation"):
        lines += _table(f"left out of {name}", report[name]["dropped"])
        mended = report[name]["repaired"].items()
        lines += [f"mended in {name}: {rule} in {count:,} lines ({REPAIRS[rule]})" for rule, count in mended]
    if training["dropped"] or validation["dropped"]:
        lines.append(f"every line left out stands in {dropped}")
    vocabulary = report["vocabulary"]
    lines.append(
        f"vocabulary of {vocabulary['size']:,} subwords; "
        f"{training['source_tokens']:,} source and {training['target_tokens']:,} target tokens for training"
    )
    lines += [f"note: {note}" for note in report["notes"]]
    lines += [f"warning: {warning}" for warning in report["warnings"]]
    return "\n".join(lines)


def _line(place: Mapping[str, Any]) -> str:
    return f"{place['line']} (column {place['column']})" if "column" in place else str(place["line"])


def _counts(part: Mapping[str, Any]) -> list[int]:
    return [rule["count"] for rule in part["dropped"].values()]


def _table(title: str, rules: Mapping[str, Any]) -> list[str]:
    if not rules:
        return []
    rows = [f"{title}:"]
    for rule, found in sorted(rules.items(), key=lambda item: -item[1]["count"]):
        rows.append(f"  {rule:<22}{found['count']:>12,}   {named(found['first'], found['count'])}")
    return rows
