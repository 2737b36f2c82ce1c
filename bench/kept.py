"""What keeping things unchanged costs: BLEU and seconds with it, beside those without.

    python -m bench.kept run/ --test test.tsv
    python -m bench.kept models/default --from en --to fr --test test.tsv

Twice: with the test set as it is, where numbers, addresses and the like stand as people write them; and with one thing
more in every sentence, at a drawn place, as no model has seen them. Whether a translation is right is read off the text
by the finder itself: it sees there what it saw in the source, each as often.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.held_out import read_held_out, score, sentence_arguments
from qkv import Translation
from qkv.text.cleaning import normalise
from qkv.text.protect import find
from qkv.translate import terms_of
from qkv.translate.terms import KEPT

_ODD = (
    "{name}", "%d", "%(count)s", "{{ user }}", "<b>", '<a href="x y">', "&amp;", "https://a.b/c",
    "www.example.org/a?b=1", "tom@example.org", "/usr/bin/env", "src/main.py", "`rm -rf x`", "7", "1,250.50", "-3",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--beam", type=int, default=4)
    sentence_arguments(parser)
    options = parser.parse_args()

    translator, sources, references = read_held_out(options)
    draw = random.Random(1)
    holding = [place for place, text in enumerate(sources) if seen(text)]
    cases = {
        "as they are": (sources, references),
        "those that have any": ([sources[place] for place in holding], [references[place] for place in holding]),
        "one more in each": ([with_one_more(text, draw) for text in sources], references),
    }
    print("without keeping and with it: all right, cut off at the limit, BLEU, processor seconds")
    for name, (texts, wanted) in cases.items():
        if not texts:
            continue
        begin = time.process_time()
        plain = translator.translate(texts, beam=options.beam)
        middle = time.process_time()
        held = translator.translate(texts, beam=options.beam, terms=[terms_of(text, keep=[*KEPT]) for text in texts])
        end = time.process_time()
        print(
            f"{name:19} {len(texts):5,}",
            f"{share_right(texts, plain):6.1%} {share_right(texts, held):7.2%}",
            f"{cut_off(plain):3} {cut_off(held):3}",
            f"{score(plain, wanted):6.2f} {score(held, wanted):6.2f}",
            f"{middle - begin:6.1f} {end - middle:6.1f}",
            sep="   ",
            flush=True,
        )


def with_one_more(text: str, draw: random.Random) -> str:
    """The text with something odd between two of its words."""
    words = text.split()
    place = draw.randrange(len(words) + 1)
    return " ".join([*words[:place], draw.choice(_ODD), *words[place:]])


def seen(text: str) -> Counter[str]:
    return Counter(one.text for one in find(normalise(text), kinds=[*KEPT.values()]))


def share_right(texts: Sequence[str], translations: Sequence[Translation]) -> float:
    return sum(seen(text) == seen(one.text) for text, one in zip(texts, translations, strict=True)) / len(texts)


def cut_off(translations: Sequence[Translation]) -> int:
    return sum(not one.complete for one in translations)


if __name__ == "__main__":
    main()
