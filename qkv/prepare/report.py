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
from typing import Any

from qkv.text.cleaning import REPAIRS

_FIRST = 20
_SHOWN = 5


@dataclass
class Places:
    """Which file and line a line of the concatenated input is; both counted from 1."""

    files: list[str] = field(default_factory=list)
    first_lines: list[int] = field(default_factory=list)

    def begin(self, file: str, first_line: int) -> None:
        self.files.append(file)
        self.first_lines.append(first_line)

    def find(self, line: int) -> tuple[str, int]:
        part = bisect.bisect_right(self.first_lines, line) - 1
        return self.files[part], line - self.first_lines[part] + 1


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
        self._text.write("file\tline\trule\n")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the file; nothing more can be logged."""
        try:
            self._text.close()
        finally:
            self._raw.close()

    def drop(self, tally: Tally, line: int, rule: str) -> None:
        """Counts one line of the corpus that `tally` is for."""
        file, line_in_file = tally.places.find(line)
        self._text.write(f"{file}\t{line_in_file}\t{rule}\n")
        tally.dropped[rule] += 1
        first = tally.first.setdefault(rule, [])
        if len(first) < _FIRST:
            first.append({"file": file, "line": line_in_file})


def first_places(places: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    """The first few of many places, as they stand in a report."""
    return [{"file": file, "line": line} for file, line in places[:_FIRST]]


def named(first: Sequence[Mapping[str, Any]], count: int) -> str:
    """A few of `count` places as a person reads them: `a.en:3, 5, 8, ...`."""
    shown = list(first[:_SHOWN])
    parts = []
    for file, places in itertools.groupby(shown, key=lambda place: Path(place["file"]).name):
        parts.append(f"{file}:{', '.join(str(place['line']) for place in places)}")
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


def _counts(part: Mapping[str, Any]) -> list[int]:
    return [rule["count"] for rule in part["dropped"].values()]


def _table(title: str, rules: Mapping[str, Any]) -> list[str]:
    if not rules:
        return []
    rows = [f"{title}:"]
    for rule, found in sorted(rules.items(), key=lambda item: -item[1]["count"]):
        rows.append(f"  {rule:<22}{found['count']:>12,}   {named(found['first'], found['count'])}")
    return rows
