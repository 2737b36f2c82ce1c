"""The teacher at work: sources in, translations in parts out."""

from __future__ import annotations

import time

import torch

from qkv.data.corpus import Stretch
from qkv.devices import choose_device, choose_precision
from qkv.directories import TOKENIZER
from qkv.distill.parts import Parts, Taught
from qkv.distill.request import Lesson
from qkv.errors import ConfigError, NoTimeError
from qkv.evaluate.scores import sentence_bleu
from qkv.progress import Progress
from qkv.text.languages import Direction
from qkv.training.stopping import CAUTION, in_time
from qkv.translate import Translation, Translator


def load_teacher(lesson: Lesson, device: str) -> Translator:
    """The translator of the teacher, which must know the subwords of the data and read all of a source."""
    teacher, prepared = lesson.teacher.path, lesson.prepared
    # A GPU's quick numbers are good enough to learn from.
    quick = choose_precision("auto", choose_device(device)) == torch.bfloat16
    translator = Translator.load(teacher, device=device, precision="bfloat16" if quick else "float32")
    if translator.tokenizer.fingerprint != prepared.tokenizer().fingerprint:
        raise ConfigError(
            f"{prepared.directory} was prepared with another tokenizer than {teacher} was trained with; "
            f"`qkv prepare --tokenizer {teacher / TOKENIZER}` prepares it with that one"
        )
    if lesson.cuts > 1 and lesson.corpus.stretches:
        raise ConfigError(f"{prepared.directory} is a mix that was cut in several ways; prepare it with one to distill")
    longest = int(lesson.corpus.source_lengths().max())
    if longest >= translator.longest_source:
        raise ConfigError(
            f"a source of {prepared.directory} has {longest:,} tokens, and {teacher} reads only the first "
            f"{translator.longest_source - 1:,}; prepare the data with a smaller data.row_width"
        )
    return translator


def translate_sources(lesson: Lesson, translator: Translator, parts: Parts, size: int, deadline: float | None) -> bool:
    """Translates what is missing; False where time was up before it was all done."""
    missing = parts.missing(size)
    slowest = 0.0
    done = lesson.sources - sum(map(len, missing))
    too_late = NoTimeError(
        f"time was up before one part of {size:,} sentences was translated; give more time, or a smaller --part"
    )
    with Progress("translating", total=lesson.sources, unit="sentences", done=done) as progress:
        for numbers in missing:
            begun = time.monotonic()
            if slowest and deadline is not None and begun + CAUTION * slowest >= deadline:
                return False
            # Nobody knows yet how long the first part takes.
            with in_time(None if slowest else deadline, too_late):
                parts.write(numbers.start, _taught(lesson, translator, numbers, progress))
            slowest = max(slowest, time.monotonic() - begun)
    return True


def _taught(lesson: Lesson, translator: Translator, numbers: range, progress: Progress) -> list[Taught]:
    """What the student is to learn of the sources with these numbers."""
    corpus, decode = lesson.corpus, translator.tokenizer.decode
    pairs = [corpus.pair(number) for number in numbers]
    translations: list[Translation] = []
    for some, stretch in corpus.by_stretch(numbers):
        translations += _asked_as(stretch, translator).translate(
            [decode(pairs[number - numbers.start][0]) for number in some],
            beam=lesson.distilling.beam,
            length_penalty=lesson.length_penalty,
            alternatives=lesson.distilling.n_best_by_bleu - 1,
            progress=progress.advance,
        )
    references = [decode(lesson.turned(target)) for _, target in pairs]
    return [*map(_chosen, translations, references)]


def _asked_as(stretch: Stretch | None, translator: Translator) -> Translator:
    """The translator of a stretch's direction, and of its kind of text."""
    if stretch is None or not stretch.direction:
        return translator
    domains = [translator.tokenizer.domain_of(tag) for tag in stretch.tags]
    return translator.between(*Direction.parse(stretch.direction), domain=next(filter(None, domains), None))


def _chosen(translation: Translation, reference: str) -> Taught:
    """The best one; of several, the one closest to the reference, but a whole one before one that was cut off."""
    best = translation
    if translation.alternatives:
        best = max(
            (translation, *translation.alternatives),
            key=lambda one: (one.complete, sentence_bleu(one.text, reference)),
        )
    return Taught(best.text, best.complete)
