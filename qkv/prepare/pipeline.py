"""`prepare`: the steps from files of text to a directory of ids, in order."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qkv.config import Config
from qkv.data.corpus import Corpus
from qkv.directories import TOKENIZER
from qkv.errors import ConfigError, TextError
from qkv.prepare.check import check_request
from qkv.prepare.clean import CleanCorpus, clean_corpus
from qkv.prepare.directory import (
    DROPPED,
    MENDED,
    REPORT,
    WORK,
    Prepared,
    Request,
    existing,
    held,
    publish,
    space_needed,
    text_bytes,
    workplace,
    write_json,
)
from qkv.prepare.duplicates import mark_duplicates
from qkv.prepare.encode import Encoder, fitting_tokenizer, learn_vocabulary
from qkv.prepare.foreign import mark_foreign
from qkv.prepare.mix import Mix
from qkv.prepare.mixing import Mixing, draw, told
from qkv.prepare.report import LineLog, Places, reasons
from qkv.prepare.split import find_overlap, hold_out
from qkv.prepare.workers import Workers
from qkv.processors import usable_cores
from qkv.storage import explained, require_utf8
from qkv.text.cleaning import PAIR_RULES
from qkv.text.files import pair_files
from qkv.text.subwords import Tokenizer

# Text for which starting one more process pays.
_BYTES_A_WORKER = 4 << 20


def prepare(
    files: Sequence[Path],
    output: Path,
    config: Config,
    *,
    valid: Sequence[Path] = (),
    test: Sequence[Path] = (),
    tokenizer: Path | None = None,
    workers: int | None = None,
) -> Prepared:
    """Cleans, splits and encodes parallel text, or what a mix names, into `output`; asked again, uses what is there.

    The result does not depend on the number of workers, which is by default what the work and the machine allow.
    """
    if workers is not None and workers < 1:
        raise ConfigError(f"{workers} workers cannot prepare anything; give 1 or more")
    mix = Mix.of(files, config.text)
    config = mix.applied_to(config)
    files = mix.files
    roles = {"training": files, "validation": valid, "test": test}
    given = {**roles, "tokenizer": [tokenizer] if tokenizer is not None else []}
    require_utf8([output, *itertools.chain(*given.values())])
    check_request(config, roles, tokenizer)
    held_out = mix.beside(valid, test, config.text)
    with explained(output):
        request = Request.of(config, given, mix)
        if (there := existing(output, request)) is not None:
            return there
        with held(output):
            # Once more: another process may have finished it between the look and the lock.
            if (there := existing(output, request)) is not None:
                return there
            with (
                workplace(output, space_needed(files)) as place,
                Workers(workers or min(usable_cores(), 1 + text_bytes(files) // _BYTES_A_WORKER)) as pool,
                LineLog(dropped=place / DROPPED, mended=place / MENDED) as log,
            ):
                preparation = _Preparation(place, config, mix, held_out, pool, log)
                report, places = preparation.run(files, valid, test, tokenizer)
                write_json(place / REPORT, report)
                log.close()
                publish(place, output, request, places)
    return Prepared.open(output)


@dataclass(frozen=True)
class _Preparation:
    place: Path
    config: Config
    mix: Mix
    held_out: Mix
    """Of the validation files, where there are some."""
    workers: Workers
    log: LineLog

    def run(
        self, files: Sequence[Path], valid: Sequence[Path], test: Sequence[Path], tokenizer: Path | None
    ) -> tuple[dict[str, Any], Places]:
        """What happened to all lines, and where those of the training corpus stand."""
        training = self._clean("training", files, tuple(PAIR_RULES))
        validation = self._clean("validation", valid, ()) if valid else None
        if self.config.data.check_language:
            mark_foreign(training, self.mix, self.workers)
        if not self.config.data.keep_duplicates:
            mark_duplicates(training, self.place / WORK / "buckets")
        watched = self._clean("test", test, ()) if test else None
        overlaps, warnings = self._overlaps(training, {"validation": validation, "test": watched})
        warnings += [f"the mix names {one}, but no corpus teaches it; it is left out" for one in self.mix.untaught]
        notes = training.tally.mixed_marks()
        if validation is None:
            note = hold_out(training, self.config.data.held_out, self.config.training.seed)
            notes += [note] if note else []
        draw(training, self.mix)
        training.log_fates(self.log)
        _require_some(training, "training")
        lines = self._vocabulary(training, tokenizer)
        results = self._encode(training, validation)
        report = {
            "corpora": self._told(training),
            "training": {**training.tally.as_json(), **results["train"]},
            "validation": {**(validation.tally.as_json() if validation else _NOTHING), **results["valid"]},
            "test": watched.tally.as_json() if watched else _NOTHING,
            "vocabulary": {"size": self.config.text.vocabulary, "learned_from_lines": lines},
            "segmentations": self.config.text.segmentations,
            "overlap": overlaps,
            "notes": notes,
            "warnings": warnings,
        }
        return report, training.tally.places

    def _clean(self, name: str, files: Sequence[Path], rules: Sequence[str]) -> CleanCorpus:
        corpus = clean_corpus(
            pair_files(files), self.place / WORK / name, self.config.data, rules, self.workers, self.log
        )
        _require_some(corpus, name)
        return corpus

    def _overlaps(
        self, training: CleanCorpus, others: Mapping[str, CleanCorpus | None]
    ) -> tuple[dict[str, Any], list[str]]:
        overlaps: dict[str, Any] = {}
        warnings = []
        for what, other in others.items():
            if other is None:
                continue
            drop = what == "test" and self.config.data.drop_test_lines
            overlap = find_overlap(training, other, drop=drop)
            overlaps[what] = overlap.as_json()
            if warning := overlap.warning(what, dropped=drop):
                warnings.append(warning)
        return overlaps, warnings

    def _vocabulary(self, training: CleanCorpus, tokenizer: Path | None) -> int:
        if tokenizer is None:
            return learn_vocabulary(training, self.config.text, self.place / WORK / "sample", self.place / TOKENIZER)
        (self.place / TOKENIZER).write_bytes(fitting_tokenizer(tokenizer, self.config.text).model)
        return 0

    @property
    def _encoded(self) -> Path:
        """Where pairs go when they are encoded: where the mix asks for nothing else, that is all."""
        return self.place if self.mix.is_plain else self.place / WORK

    def _told(self, training: CleanCorpus) -> list[dict[str, Any]]:
        encoded, learned = (Corpus.open(directory, "train") for directory in (self._encoded, self.place))
        return told(training, self.mix, encoded, learned, cuts=self.config.text.segmentations)

    def _encode(self, training: CleanCorpus, validation: CleanCorpus | None) -> dict[str, dict[str, int]]:
        plain, directory = self.mix.is_plain, self._encoded
        tags = 0 if plain else self.mix.tags_before_a_source
        with Encoder(directory, self.place / TOKENIZER, self.config, self.workers, self.log, tags=tags) as encoder:
            encoder.encode(training, {"training": "train", "held out": "valid"})
            if validation is not None:
                encoder.encode(validation, {"training": "valid"})
            results = {name: encoder.result(name) for name in ("train", "valid")}
        if not plain:
            mixing = Mixing(directory, self.place, self.mix, Tokenizer.load(self.place / TOKENIZER))
            results["train"] = mixing.write("train", self.mix, training, repeat=True)
            held_out = validation or training
            results["valid"] = mixing.write("valid", self.held_out if validation else self.mix, held_out, repeat=False)
            mixing.write_texts("valid")
        for name, corpus in (("train", training), ("valid", validation or training)):
            if not results[name]["pairs"]:
                raise TextError(
                    f"no pair of the {name} set fits data.row_width {self.config.data.row_width}; left out: "
                    f"{reasons(corpus.tally)}"
                )
        return results


_NOTHING: dict[str, Any] = {"read": 0, "dropped": {}, "mended": {}}


def _require_some(corpus: CleanCorpus, name: str) -> None:
    if not corpus.count("training"):
        read = corpus.tally.read
        why = f"left out: {reasons(corpus.tally)}" if read else "its files are empty"
        raise TextError(f"no {name} pairs are left of {read:,}; {why}")
