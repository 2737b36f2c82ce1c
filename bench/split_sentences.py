"""How well and how quickly text is split into sentences: `python -m bench.split_sentences newstest.de --language de`.

Lines of a file, each a sentence, are joined to paragraphs of five and split again. A line can hold two sentences, so
the figures are a lower bound. sentencex is measured beside ours where it is installed.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from qkv.text.files import read_lines
from qkv.text.sentences import split

Splitter = Callable[[str, str], set[int]]
_FINISHED = tuple('.!?…"”»“')


def ours(text: str, language: str) -> set[int]:
    """Where sentences begin."""
    pieces = split(text, language)
    return {start for start, _ in pieces.spans(pieces.sentences)}


def others() -> dict[str, Splitter]:
    """Peers that are installed."""
    try:
        sentencex = importlib.import_module("sentencex")
    except ImportError:
        return {}
    return {
        "sentencex": lambda text, language: {
            boundary["start_index"] for boundary in sentencex.get_sentence_boundaries(language, text)
        }
    }


def paragraphs(lines: Sequence[str], size: int) -> tuple[str, set[int], set[int]]:
    """A text of all lines, where a sentence begins inside a paragraph, and where a paragraph does."""
    gaps = ["\n\n" if number % size == 0 else " " for number in range(1, len(lines))]
    starts = itertools.accumulate((len(line) + len(gap) for line, gap in zip(lines, gaps, strict=False)))
    inside: set[int] = set()
    first: set[int] = {0}
    for gap, start in zip(gaps, starts, strict=True):
        (inside if gap == " " else first).add(start)
    text = "".join(itertools.chain.from_iterable(zip(lines, [*gaps, ""], strict=True)))
    return text, inside, first | {start - 2 for start in first}


def main() -> None:
    """Prints precision, recall and speed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="one sentence a line; of a TSV, --column says which")
    parser.add_argument("--language", required=True)
    parser.add_argument("--column", type=int, default=1)
    options = parser.parse_args()
    columns = (line.split("\t") for line in read_lines(options.file))
    lines = [" ".join(row[options.column - 1].split()) for row in columns if len(row) >= options.column]
    text, inside, outside = paragraphs([line for line in lines if line.endswith(_FINISHED)], 5)
    for name, splitter in {"ours": ours, **others()}.items():
        started = time.perf_counter()
        found = splitter(text, options.language) - outside
        seconds = time.perf_counter() - started
        right = len(found & inside)
        print(
            f"{name:10} {len(inside):,} boundaries: precision {100 * right / len(found):.2f} %, "
            f"recall {100 * right / len(inside):.2f} %, {len(text) / seconds / 1e6:.1f} million characters/s"
        )


if __name__ == "__main__":
    main()
