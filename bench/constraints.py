"""What terms cost: BLEU and seconds with terms that must appear, beside those without.

    python -m bench.constraints run/ --test test.tsv

For each sentence of a test set, one to three terms of one or two words are drawn: of its own reference, as a glossary
that knows best would give them, or of the reference of another sentence, which no translation would have by itself.
That all of them appear is counted on the text, by regular expressions.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from pathlib import Path

from bench.held_out import read_held_out, score, sentence_arguments
from qkv import Translation
from qkv.translate import Terms

_WORD = re.compile(r"\w+")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4, 8])
    sentence_arguments(parser)
    options = parser.parse_args()

    translator, sources, references = read_held_out(options)
    others = references[1:] + references[:1]
    print(f"{len(sources):,} sentences: all terms met, BLEU and seconds, without asking for terms and with it")
    for beam in options.beams:
        begin = time.perf_counter()
        plain = translator.translate(sources, beam=beam)
        before = time.perf_counter() - begin
        for kind, texts in (("own", references), ("other", others)):
            for count in (1, 2, 3):
                draw = random.Random(count)
                wanted = [some_terms(text, count, draw) for text in texts]
                begin = time.perf_counter()
                held = translator.translate(
                    sources, beam=beam, terms=[Terms(required=tuple((one,) for one in some)) for some in wanted]
                )
                after = time.perf_counter() - begin
                figures = (
                    f"{share_met(plain, wanted):6.1%} {share_met(held, wanted):7.1%}",
                    f"{score(plain, references):6.2f} {score(held, references):6.2f}",
                    f"{before:6.1f} {after:6.1f}",
                )
                print(f"beam {beam}, {count} {kind:6}", *figures, sep="   ", flush=True)


def some_terms(text: str, count: int, draw: random.Random) -> list[str]:
    """As many parts of a text as it has, of one or two words, none inside another."""
    words = [match.span() for match in _WORD.finditer(text)]
    taken: set[int] = set()
    found = []
    for _ in range(count):
        length = draw.choice((1, 1, 2))
        free = [
            place for place in range(len(words) - length + 1) if not taken.intersection(range(place, place + length))
        ]
        if free:
            place = draw.choice(free)
            taken.update(range(place, place + length))
            found.append(text[words[place][0] : words[place + length - 1][1]])
    return found


def share_met(translations: list[Translation], wanted: list[list[str]]) -> float:
    """The share of sentences that have all their terms, each in a place of its own."""
    return sum(has_all(one.text, some) for one, some in zip(translations, wanted, strict=True)) / len(wanted)


def has_all(text: str, wanted: list[str]) -> bool:
    for term in sorted(wanted, key=len, reverse=True):
        # Where a sentence begins with it, the first letter may be a capital.
        start = re.match(rf"\W*(?:{re.escape(term[0].upper() + term[1:])})(?!\w)", text)
        match = re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text) or start
        if not match:
            return False
        text = text[: match.start()] + "\x00" + text[match.end() :]
    return True


if __name__ == "__main__":
    main()
