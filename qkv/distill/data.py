"""Prepared data whose targets are a teacher's: what else was prepared stays as it was."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qkv.config import DataConfig
from qkv.data.corpus import CorpusWriter, Sentences
from qkv.distill.parts import Parts, Taught
from qkv.distill.request import Lesson
from qkv.prepare import Prepared
from qkv.prepare.directory import REPORT, publish, workplace, write_json
from qkv.prepare.encode import TOO_MANY_TOKENS
from qkv.prepare.report import Part, Places
from qkv.progress import Progress
from qkv.text.cleaning import PAIR_RULES, READINGS, SIDE_RULES, Pair
from qkv.text.subwords import Tokenizer

CUT_OFF = "cut off"


class _Pair(NamedTuple):
    source: list[int]
    target: list[int]
    line: int


def write_data(lesson: Lesson, parts: Parts, output: Path) -> Prepared:
    """Writes the student's data, all at once; where a translation is of no use, the original target stays."""
    prepared = lesson.prepared
    described = prepared.manifest["files"]
    targets_each = 1 + lesson.distilling.also_original
    with workplace(output, targets_each * sum(one["bytes"] for one in described.values())) as place:
        for name in described:
            if not name.startswith("train.") and name != REPORT:
                shutil.copyfile(prepared.directory / name, place / name)
        kept: Counter[str] = Counter()
        tokenizer = prepared.tokenizer()
        with (
            CorpusWriter(place, "train", vocabulary=tokenizer.size) as writer,
            Progress("writing", total=lesson.cuts * lesson.sources, unit="pairs") as progress,
        ):
            for numbers, taught in parts.read():
                targets = list(_targets(lesson, tokenizer, numbers, taught, kept))
                for cut in range(lesson.cuts):
                    some = list(_pairs(lesson, [cut * lesson.sources + number for number in numbers], targets))
                    writer.extend(
                        Sentences.of([pair.source for pair in some]),
                        Sentences.of([pair.target for pair in some]),
                        np.array([pair.line for pair in some], np.int64),
                    )
                    progress.advance(len(numbers))
        training = {**prepared.report["training"], **writer.counts}
        distilled = {"translated": lesson.sources, "original_kept": dict(sorted(kept.items()))}
        write_json(place / REPORT, {**prepared.report, "training": training, "distilled": distilled})
        publish(place, output, lesson.data, _places(prepared))
    return Prepared.open(output)


def summary(lesson: Lesson, made: Prepared) -> str:
    """What became of the teacher's translations, for a person."""
    distilled, training = made.report["distilled"], made.report["training"]
    kept = distilled["original_kept"]
    why = ", ".join(f"{reason} {count:,}" for reason, count in sorted(kept.items(), key=lambda one: -one[1]))
    originals = f"the original is kept of {sum(kept.values()):,}: {why}" if kept else "all are taken"
    return (
        f"{distilled['translated']:,} sources translated by {lesson.teacher.path}; {originals}\n"
        f"{training['pairs']:,} pairs to learn from, {training['source_tokens']:,} source and "
        f"{training['target_tokens']:,} target tokens"
    )


def fault(source: str, taught: Taught, ids: list[int], data: DataConfig) -> str | None:
    """Why nobody should learn from a translation: it was cut off, or the corpus would have been cleaned of it."""
    pair = Pair(source, taught.text)
    reasons = {
        CUT_OFF: not taught.complete,
        **{name: rule(taught.text, data) for name, rule in SIDE_RULES.items()},
        **{name: rule(pair, data) for name, rule in PAIR_RULES.items()},
        TOO_MANY_TOKENS: len(ids) >= data.row_width,
    }
    return next((name for name, holds in reasons.items() if holds), None)


def _targets(
    lesson: Lesson, tokenizer: Tokenizer, numbers: range, part: list[Taught], kept: Counter[str]
) -> Iterator[list[int] | None]:
    """The ids of each translation, None where it is of no use, which is counted."""
    corpus = lesson.corpus
    data = DataConfig(**lesson.prepared.manifest["settings"]["data"])
    read = READINGS[data.typography]
    mended = [Taught(read(one.text), one.complete) for one in part]
    encoded = tokenizer.encode_all([one.text for one in mended])
    for number, one, ids in zip(numbers, mended, encoded, strict=True):
        reason = fault(tokenizer.decode(corpus.pair(number)[0]), one, ids, data)
        if reason is not None:
            kept[reason] += 1
        yield lesson.turned(ids) if reason is None else None


def _pairs(lesson: Lesson, numbers: list[int], targets: list[list[int] | None]) -> Iterator[_Pair]:
    corpus = lesson.corpus
    for number, target in zip(numbers, targets, strict=True):
        source, original = corpus.pair(number)
        line = int(corpus.lines[number])
        yield _Pair(source, original if target is None else target, line)
        if lesson.distilling.also_original and target not in (None, original):
            yield _Pair(source, original, line)


def _places(prepared: Prepared) -> Places:
    # An older version did not keep them: what is left to name is the data itself.
    whole = [Part([str(prepared.directory)], 1)._asdict()]
    return Places.from_json(prepared.manifest.get("places", whole))
