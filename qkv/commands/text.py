"""Text from standard input or --input, translated: a line at a time, as one document, or shown as it grows."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from qkv.commands.decoding import how_of
from qkv.commands.lines import helpings, one_line, open_output, values
from qkv.errors import RuleError, TextError
from qkv.progress import Progress, warn
from qkv.text.cleaning import normalise, says_nothing

if TYPE_CHECKING:
    from qkv.translate import Relay, Terms, Translation, Translator

OF_SENTENCES = ("n_best", "scores", "json", "stream", "prefix", "prefixes", "whole_lines")
"""What is asked for or told of one sentence: a line is one then."""
_NAMED = 10
_END_TAG = re.compile(r"</[a-zA-Z][\w:-]*>")
_QUOTED = 40


def asks_of_sentences(options: argparse.Namespace) -> bool:
    return any(getattr(options, name) not in (None, False) for name in OF_SENTENCES)


def translate_text(
    translator: Translator | Relay,
    lines: Iterable[str],
    prefixes: Callable[[int, int], list[str] | None],
    terms: Callable[[str], Terms] | None,
    options: argparse.Namespace,
) -> None:
    """Translates all lines, in helpings; where one cannot be, those before it are written, unless it is to a file."""
    how = how_of(options)
    # What is asked for wrongly is told before the output is touched.
    translator.translate([], **how)
    translate, unit = _way(options)
    task = _Task(translator, how, terms, options, Progress("translating", total=None, unit=unit))
    # Whoever types lines wants to see each translated; a file is quicker in large helpings.
    interactive = options.input is None and sys.stdin.isatty()
    done = 0
    with open_output(options.output) as output:
        try:
            for texts in helpings(lines, 1 if interactive or options.stream else translator.at_once):
                cut_off = translate(task, _Helping(done + 1, texts, prefixes(done, len(texts))), output)
                done += len(texts)
                _tell_of_lines(cut_off, "the translation does not end by itself; the length limit cut it off")
            prefixes(done, 0)
        except RuleError as error:
            if options.document:
                raise
            number = done + error.sentence
            raise RuleError(number, f"line {number + 1:,}") from error
        except TextError as error:
            some = done and not options.output
            before = f"the {done:,} lines before it are translated" if some else "nothing is written"
            raise TextError(f"{error}; {before}") from error


class _Task(NamedTuple):
    """What is to be done with all lines."""

    translator: Translator | Relay
    how: dict[str, Any]
    """How translations are looked for."""
    terms: Callable[[str], Terms] | None
    """What the translation of a sentence has to keep to."""
    options: argparse.Namespace
    progress: Progress


class _Helping(NamedTuple):
    """Lines that are translated together."""

    first: int
    """The number of the first of them."""
    texts: list[str]
    prefixes: list[str] | None
    """What their translations begin with."""


_Way = Callable[[_Task, _Helping, TextIO], list[int]]
"""Translates and writes some lines; gives the numbers of those that the length limit cut off."""


def _way(options: argparse.Namespace) -> tuple[_Way, str]:
    """How lines become lines, and what is counted meanwhile."""
    if options.stream:
        return _stream, "lines"
    if options.document:
        return _document, "sentences"
    return (_in_order, "lines") if asks_of_sentences(options) else (_by_sentences, "sentences")


def _in_order(task: _Task, helping: _Helping, output: TextIO) -> list[int]:
    """Each line as one sentence."""
    translator, texts = task.translator, helping.texts
    with task.progress as progress:
        terms = None if task.terms is None else [*map(task.terms, texts)]
        translations = translator.translate(
            texts, prefixes=helping.prefixes, terms=terms, progress=progress.advance, **task.how
        )
    cut_off = []
    for number, best in enumerate(translations, start=helping.first):
        output.writelines(_rows(number, best, task.options))
        if not all(one.complete for one in (best, *best.alternatives)):
            cut_off.append(number)
    output.flush()
    most = translator.longest_sentence
    long = [number for number, text in enumerate(texts, start=helping.first) if translator.measure(text) >= most]
    _tell_of_lines(
        long, f"longer than the {most - 1:,} tokens that the model has learned from; give it a sentence a line"
    )
    return cut_off


def _by_sentences(task: _Task, helping: _Helping, output: TextIO) -> list[int]:
    """Each line by itself, however many sentences it has."""
    from qkv.translate import translate_documents

    lines = ["" if says_nothing(text) else text for text in map(normalise, helping.texts)]
    with task.progress as progress:
        found = translate_documents(
            task.translator, lines, terms=task.terms, apart=True, progress=progress.advance, **task.how
        )
    output.writelines(one_line(one.text) + "\n" for one in found)
    output.flush()
    tagged = [number for number, text in enumerate(helping.texts, start=helping.first) if _END_TAG.search(text)]
    _tell_of_lines(
        tagged,
        "words between tags may stay as they are; --document --tags carries tags to where their words went, and --file "
        "takes whole pages",
    )
    return [number for number, one in enumerate(found, start=helping.first) if one.cut_off]


def _document(task: _Task, helping: _Helping, output: TextIO) -> list[int]:
    """All lines as one text."""
    from qkv.translate import translate_document

    text, tags = "".join(helping.texts), task.options.tags
    with task.progress as progress:
        found = translate_document(
            task.translator, text, tags=tags, terms=task.terms, progress=progress.advance, **task.how
        )
    output.write(found.text)
    output.flush()
    for sentence in found.cut_off:
        warn(f"a sentence was cut off by the length limit: {sentence[:_QUOTED]!r}…")
    return []


def _stream(task: _Task, helping: _Helping, output: TextIO) -> list[int]:
    """Each line as one sentence, which shows as it grows."""
    prefixes = helping.prefixes or [""] * len(helping.texts)
    cut_off = []
    for number, (text, prefix) in enumerate(zip(helping.texts, prefixes, strict=True), start=helping.first):
        stream = task.translator.stream(text, prefix=prefix, controls=task.how["controls"])
        for part in stream:
            output.write(one_line(part))
            output.flush()
        output.write("\n")
        output.flush()
        if stream.translation is not None and not stream.translation.complete:
            cut_off.append(number)
    return cut_off


def _rows(number: int, best: Translation, options: argparse.Namespace) -> Iterator[str]:
    if options.json:
        told = {"line": number, **values(best), "alternatives": [values(one) for one in best.alternatives]}
        yield json.dumps(told, ensure_ascii=False) + "\n"
        return
    several = options.n_best is not None and options.n_best > 1
    for one in (best, *best.alternatives):
        score = f"{one.score:.4f}\t" if options.scores or several else ""
        yield (f"{number}\t" if several else "") + score + one_line(one.text) + "\n"


def _tell_of_lines(numbers: Sequence[int], what: str) -> None:
    if numbers:
        named = ", ".join(f"{number:,}" for number in numbers[:_NAMED])
        more = f" and {len(numbers) - _NAMED:,} more" if len(numbers) > _NAMED else ""
        lines = "lines" if len(numbers) > 1 else "line"
        warn(f"{lines} {named}{more}: {what}")
