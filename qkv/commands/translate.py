"""`qkv translate`: text, a line at a time."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from qkv.commands.arguments import Commands, line_arguments, precision_argument, require_together, search_arguments
from qkv.commands.decoding import (
    asked_arguments,
    drawn_arguments,
    how_of,
    prefixes_of,
    require_sound,
    reranking_arguments,
    terms_of_each,
)
from qkv.commands.files import extensions, models_and_files, require_files, translate_files
from qkv.commands.lines import helpings, input_lines, one_line, open_output, values
from qkv.commands.models import load_any, model_arguments, refuse_text, tell_of_usual_heads
from qkv.errors import ConfigError, RuleError, TextError
from qkv.progress import Progress, warn
from qkv.text.cleaning import normalise, says_nothing

if TYPE_CHECKING:
    from qkv.translate import Relay, Terms, Translation, Translator


_NAMED = 10
_QUOTED = 40

_OF_USE_ONLY_WITH = {
    ("sample", "mbr"): ("temperature", "top_k", "top_p", "epsilon", "seed"),
    ("mbr",): ("samples",),
    ("rerank",): ("weight", "backward"),
    ("document",): ("tags",),
    ("file",): ("again",),
}
"""Options that say how, by those that say what."""

_OF_SEARCH = ("beam", "length_penalty", "coverage_penalty")
"""What is drawn is not searched for."""
_NOT_WITH = {
    "stream": ("n_best", "scores", "json", "sample", "mbr", "rerank", "beam", "length_penalty", "glossary", "keep"),
    "file": (
        *("n_best", "scores", "json", "stream", "prefix", "prefixes", "document", "tags", "input", "sample", "mbr"),
        *("rerank", "whole_lines"),
    ),
    "document": ("n_best", "scores", "json", "stream", "prefix", "prefixes", "whole_lines"),
    "mbr": ("sample", "rerank", *_OF_SEARCH),
    "sample": ("rerank", *_OF_SEARCH),
    "prefix": ("prefixes",),
}
_OF_SENTENCES = ("n_best", "scores", "json", "stream", "prefix", "prefixes", "whole_lines")
"""What is asked for or told of one sentence: a line is one then."""


def add_translate(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "translate",
        help="translate lines, files or whole folders",
        description="Translates standard input to standard output: one line in, one line out, in order, however many "
        "sentences it has. Several runs with one vocabulary translate together, as an ensemble.",
        epilog="examples:\n"
        "  qkv translate --from en --to de < in.en > out.de    with the model that is here\n"
        "  qkv translate run/ < in.en > out.fr\n"
        "  echo 'Good morning.' | qkv translate run/\n"
        "  qkv translate run-a/ run-b/ < in.en                 an ensemble: the mean of their probabilities\n"
        "  qkv translate run/ --beam 8 --n-best 4 < in.en      number, score and text of each, separated by tabs\n"
        "  qkv translate run/ --json < in.en                   tokens and their log-probabilities too\n"
        "  qkv translate run/ --prefix 'Chère Madame,' < in.en\n"
        "  qkv translate run/ --coverage-penalty 0.2 --no-repeat 3 --min-length 4 < in.en\n"
        "  qkv translate run/ --glossary terms.tsv --keep placeholders,urls,numbers < in.en\n"
        "  qkv translate run/ --sample --top-p 0.9 --seed 7 < in.en\n"
        "  qkv translate run/ --mbr chrf --samples 64 < in.en  of 64 drawn, the one most like the others\n"
        "  qkv translate run/ --rerank backwards/ --weight 0.3 < in.en\n"
        "  qkv translate run/ --document < report.txt          lines are paragraphs, however long\n"
        "  qkv translate run/ --document --tags < report.txt   tags, <b>…</b>, go where their words went\n"
        "  qkv translate run/ --whole-lines < test.en          lines as the model alone would translate them\n"
        "  qkv translate run/ --file report.docx --to fr       writes report.fr.docx; HTML and more work too\n"
        "  qkv translate run/ site/ --to fr                    every page of a folder, to site.fr/\n"
        "  qkv translate run/ --stream                         each translation is shown as it grows",
    )
    model_arguments(parser)
    line_arguments(parser)
    search_arguments(parser)
    precision_argument(parser)
    asked_arguments(parser)
    _shown_arguments(parser)
    _text_arguments(parser)
    drawn_arguments(parser)
    reranking_arguments(parser)
    parser.set_defaults(run=_translate)


def _shown_arguments(parser: argparse.ArgumentParser) -> None:
    shown = parser.add_argument_group("what is shown")
    shown.add_argument("--n-best", type=int, metavar="N", help="the N best of each line, with their scores")
    shown.add_argument("--scores", action="store_true", help="put each translation's score before it")
    shown.add_argument("--json", action="store_true", help="a JSON object a line: all scores, of each token too")
    shown.add_argument("--stream", action="store_true", help="show each translation as it grows; a greedy search")


def _text_arguments(parser: argparse.ArgumentParser) -> None:
    long = parser.add_argument_group("text of any length")
    long.add_argument("--document", action="store_true", help="the input is one text: white space stays as it is")
    long.add_argument(
        "--whole-lines",
        action="store_true",
        help="each line is one sentence, and nothing of it is kept or checked unless --keep says so",
    )
    long.add_argument("--tags", action="store_true", help="carry inline tags, <b>…</b>, to where their words went")
    files = parser.add_argument_group("files")
    files.add_argument(
        "--file",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="files, or folders of them, that are translated as they are: " + ", ".join(extensions()),
    )
    files.add_argument(
        "--again", action="store_true", help="translate what is translated already: files, and entries of .po and .xlf"
    )


def _translate(options: argparse.Namespace) -> None:
    refuse_text(options)
    if options.target_language and not options.file:
        options.directories, options.file = models_and_files(options.directories)
    require_together(options, of_use_only_with=_OF_USE_ONLY_WITH, not_with=_NOT_WITH)
    if options.n_best is not None and options.n_best < 1:
        raise ConfigError(f"--n-best is {options.n_best}; it must be at least 1")
    lines = input_lines(options, with_ends=options.document) if not options.file else iter(())
    prefixes = prefixes_of(options)
    terms = terms_of_each(options, usual=not _asks_of_sentences(options))
    require_sound(options)
    if options.file:
        require_files(options.file)
    translator = load_any(options, options.precision)
    if not translator.holds_to_terms and options.glossary is None and options.keep is None:
        terms = None
    if options.file:
        translate_files(translator, options, how_of(options), terms)
        return
    if options.tags:
        tell_of_usual_heads(translator)
    show = _way(options)(translator, terms, options)
    # Whoever types lines wants to see each translated; a file is quicker in large helpings.
    interactive = options.input is None and sys.stdin.isatty()
    done = 0
    with open_output(options.output) as output:
        try:
            for texts in helpings(lines, 1 if interactive or options.stream else translator.at_once):
                cut_off = show(done, texts, prefixes(done, len(texts)), output)
                done += len(texts)
                _tell_of_lines(cut_off, "the translation does not end by itself; the length limit cut it off")
            prefixes(done, 0)
        except RuleError as error:
            if options.document:
                raise
            number = done + error.sentence
            raise RuleError(number, f"line {number + 1:,}") from error
        except TextError as error:
            before = "nothing is written" if options.output else f"the {done:,} lines before it are translated"
            raise TextError(f"{error}; {before}") from error


AnyTranslator: TypeAlias = "Translator | Relay"
_MakeTerms: TypeAlias = "Callable[[str], Terms] | None"
"""What the translation of a sentence has to keep to."""

_Show = Callable[[int, list[str], list[str] | None, TextIO], list[int]]
"""Translates and writes some lines, of which the first has this number less one; gives the numbers of those that the
length limit cut off."""


def _in_order(translator: AnyTranslator, terms: _MakeTerms, options: argparse.Namespace) -> _Show:
    how = {"alternatives": (options.n_best or 1) - 1, **how_of(options)}
    # What is asked for wrongly is told before the output is touched.
    translator.translate([], **how)
    progress = Progress("translating", total=None, unit="lines")

    def show(done: int, texts: list[str], prefixes: list[str] | None, output: TextIO) -> list[int]:
        with progress:
            held_to = None if terms is None else [*map(terms, texts)]
            translations = translator.translate(
                texts, prefixes=prefixes, terms=held_to, progress=progress.advance, **how
            )
        cut_off = []
        for number, best in enumerate(translations, start=done + 1):
            output.writelines(_rows(number, best, options))
            if not all(one.complete for one in (best, *best.alternatives)):
                cut_off.append(number)
        output.flush()
        most = translator.longest_sentence
        long = [number for number, text in enumerate(texts, start=done + 1) if translator.measure(text) >= most]
        _tell_of_lines(
            long, f"longer than the {most - 1:,} tokens that the model has learned from; give it a sentence a line"
        )
        return cut_off

    return show


def _by_sentences(translator: AnyTranslator, terms: _MakeTerms, options: argparse.Namespace) -> _Show:
    from qkv.translate import translate_documents

    how = how_of(options)
    translator.translate([], **how)
    progress = Progress("translating", total=None, unit="sentences")

    def show(done: int, texts: list[str], prefixes: list[str] | None, output: TextIO) -> list[int]:  # noqa: ARG001
        lines = ["" if says_nothing(text) else text for text in map(normalise, texts)]
        with progress:
            found = translate_documents(translator, lines, terms=terms, apart=True, progress=progress.advance, **how)
        output.writelines(one_line(one.text) + "\n" for one in found)
        output.flush()
        return [number for number, one in enumerate(found, start=done + 1) if one.cut_off]

    return show


def _document(translator: AnyTranslator, terms: _MakeTerms, options: argparse.Namespace) -> _Show:
    from qkv.translate import translate_document

    how = how_of(options)
    translator.translate([], **how)
    progress = Progress("translating", total=None, unit="sentences")

    def show(done: int, texts: list[str], prefixes: list[str] | None, output: TextIO) -> list[int]:  # noqa: ARG001
        with progress:
            found = translate_document(
                translator,
                "".join(texts),
                tags=options.tags,
                terms=terms,
                progress=progress.advance,
                **how,
            )
        output.write(found.text)
        output.flush()
        for sentence in found.cut_off:
            warn(f"a sentence was cut off by the length limit: {sentence[:_QUOTED]!r}…")
        return []

    return show


def _asks_of_sentences(options: argparse.Namespace) -> bool:
    return any(getattr(options, name) not in (None, False) for name in _OF_SENTENCES)


def _way(options: argparse.Namespace) -> Callable[[AnyTranslator, _MakeTerms, argparse.Namespace], _Show]:
    """How lines become lines."""
    if options.stream:
        return _stream
    if options.document:
        return _document
    return _in_order if _asks_of_sentences(options) else _by_sentences


def _stream(translator: AnyTranslator, _: _MakeTerms, options: argparse.Namespace) -> _Show:
    controls = how_of(options)["controls"]

    def show(done: int, texts: list[str], prefixes: list[str] | None, output: TextIO) -> list[int]:
        cut_off = []
        for number, text in enumerate(texts, start=done + 1):
            stream = translator.stream(text, prefix=prefixes[number - done - 1] if prefixes else "", controls=controls)
            for part in stream:
                output.write(one_line(part))
                output.flush()
            output.write("\n")
            output.flush()
            if stream.translation is not None and not stream.translation.complete:
                cut_off.append(number)
        return cut_off

    return show


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
