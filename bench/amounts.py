"""How often an amount comes out as another one: as the model writes it, and held to what it was.

    python -m bench.amounts models/default
    python -m bench.amounts models/default --drawn 40 --show
    python -m bench.amounts --references newstest2013.en-de.tsv --languages en-de

Sentences about amounts of money, weights and counts, drawn with a seed and written as their language writes numbers.
Whether one came out right is read off its translation as a reader of that language would: 1,500 is one and a half to a
German. Nothing of how qkv looks for such faults is used for that.
With --references, how many translations that people made are called faulty by it, in both directions.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path

from bench.options import one_or_more, told
from qkv import Translator
from qkv.errors import ConfigError
from qkv.text.currencies import amounts_in, lost_currencies
from qkv.text.dates import dates_in, lost_dates
from qkv.text.numbers import changed_numbers, numbers_in
from qkv.text.times import lost_times, times_in
from qkv.translate import terms_of

SENTENCES = {
    "en": [
        "The laptop costs ${}.", "He owes me ${}.", "The ticket was €{}.", "We paid €{} for the repair last year.",
        "The company made a profit of ${}.", "The invoice is for €{} and is due on Friday.",
        "Her salary is ${} a month.", "The dose is {} mg per day.", "It weighs {} kg.",
        "The village has {} inhabitants.", "About {} people came to the concert.", "The river is {} metres long.",
    ],
    "de": [
        "Der Laptop kostet {} Euro.", "Er schuldet mir {} €.", "Die Karte kostete {} €.",
        "Wir haben letztes Jahr {} € für die Reparatur bezahlt.", "Das Unternehmen machte {} Dollar Gewinn.",
        "Die Rechnung beläuft sich auf {} € und ist am Freitag fällig.", "Ihr Gehalt beträgt {} Euro im Monat.",
        "Die Dosis beträgt {} mg pro Tag.", "Es wiegt {} kg.", "Das Dorf hat {} Einwohner.",
        "Etwa {} Menschen kamen zum Konzert.", "Der Fluss ist {} Meter lang.",
    ],
    "fr": [
        "L'ordinateur coûte {} euros.", "Il me doit {} €.", "Le billet a coûté {} €.",
        "Nous avons payé {} € pour la réparation l'année dernière.", "L'entreprise a fait un bénéfice de {} dollars.",
        "La facture s'élève à {} € et doit être payée vendredi.", "Son salaire est de {} euros par mois.",
        "La dose est de {} mg par jour.", "Il pèse {} kg.", "Le village compte {} habitants.",
        "Environ {} personnes sont venues au concert.", "Le fleuve a une longueur de {} mètres.",
    ],
}  # fmt: skip
COUNTED = 3
"""The last of each are of what is counted and not measured: whole numbers."""
MARKS = {"en": (",", "."), "de": (".", ","), "fr": ("\u00a0", ",")}
"""Between thousands, and before what is less than one."""
BLANKS = "\u00a0\u202f "


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("model", type=Path, nargs="?")
    asked.add_argument("--references", type=Path, metavar="TSV", help="pairs of which the second is right")
    parser.add_argument("--languages", default="en-de", help="those of the pairs (default: en-de)")
    parser.add_argument("--drawn", type=one_or_more, default=8, help="amounts for each of 12 sentences (default: 8)")
    parser.add_argument("--show", action="store_true", help="print what is wrong although it was held to its amount")
    options = parser.parse_args()
    return told("bench.amounts", lambda: _run(options) if options.model else _judge(options))


def _run(options: argparse.Namespace) -> None:
    translator = Translator.load(options.model)
    for source, target in translator.directions or ():
        if {source, target} <= {*SENTENCES}:
            _tell(translator.between(source, target), source, target, options)


def _tell(translator: Translator, source: str, target: str, options: argparse.Namespace) -> None:
    asked = [*drawn(source, options.drawn)]
    texts = [text for text, _ in asked]
    free = translator.translate(texts)
    held = translator.translate(texts, terms=[terms_of(text, keep=["amounts"]) for text in texts])
    wrong, still_wrong = (
        [one.text for (_, amount), one in zip(asked, found, strict=True) if amounts(one.text, target) != [amount]]
        for found in (free, held)
    )
    counted = f"{len(wrong)} wrong, {len(still_wrong)} where they are held to what they were"
    print(f"{source}-{target}: {len(asked)} amounts, {counted}", flush=True)
    if options.show:
        print("".join(f"  {text}\n" for text in still_wrong), end="")


def _judge(options: argparse.Namespace) -> None:
    source, _, target = options.languages.partition("-")
    if not source or not target:
        raise ConfigError(f"--languages {options.languages}: two are needed, such as en-de")
    pairs = [line.split("\t")[:2] for line in options.references.read_text(encoding="utf-8").splitlines()]
    for number, pair in enumerate(pairs, start=1):
        if len(pair) < 2:
            raise ConfigError(f"{options.references}, line {number}: a source, a tab and its translation are needed")
    for languages, some in (((source, target), pairs), ((target, source), [pair[::-1] for pair in pairs])):
        counts = called_faulty([(one, other) for one, other in some], languages)
        print(f"{'-'.join(languages)}: " + ", ".join(f"{kind} {bad} of {all_}" for kind, (bad, all_) in counts.items()))


def called_faulty(pairs: Sequence[tuple[str, str]], languages: tuple[str, str]) -> dict[str, tuple[int, int]]:
    """By what is compared, how many of the sources that have some are called badly translated."""
    kinds: dict[str, tuple[Callable[[str], object], Callable[[str, str], object]]] = {
        "numbers": (numbers_in, partial(changed_numbers, languages=languages)),
        "currencies": (amounts_in, partial(lost_currencies, languages=languages)),
        "dates": (dates_in, lost_dates),
        "times": (partial(times_in, language=languages[0]), partial(lost_times, languages=languages)),
    }
    return {
        kind: (sum(bool(lost(*pair)) for pair in pairs), sum(bool(found(source)) for source, _ in pairs))
        for kind, (found, lost) in kinds.items()
    }


def drawn(language: str, count: int) -> list[tuple[str, Decimal]]:
    """Each sentence with so many amounts, in the order that they are drawn."""
    draw = random.Random(1)
    sentences = SENTENCES[language]
    made = []
    for place, sentence in enumerate(sentences):
        for _ in range(count):
            largest = 10 ** draw.randint(2, 7)
            cents = 0 if place >= len(sentences) - COUNTED else draw.choice([0, 0, draw.randrange(1, 100)])
            amount = draw.randrange(largest // 10 + 13, largest + 13) + Decimal(cents) / 100
            made.append((sentence.format(written(amount, language)), amount))
    return made


def written(amount: Decimal, language: str) -> str:
    """An amount as this language writes it."""
    group, decimal = MARKS[language]
    whole, _, part = (f"{amount:,.2f}" if amount % 1 else f"{amount:,.0f}").partition(".")
    return whole.replace(",", group) + (decimal + part if part else "")


def amounts(text: str, language: str) -> list[Decimal | None]:
    """All amounts of a text as a reader of this language reads them; None where nobody would know what it says."""
    _, decimal = MARKS[language]
    # Whoever writes a comma before a fraction takes a point for what stands between thousands.
    groups = (BLANKS + ".,").replace(decimal, "")
    found = re.findall(rf"[\w.,]*\d[\w.,]*(?:[{BLANKS}]\d{{3}}(?!\w)[\w.,]*)*", text)
    return [_read(one.rstrip(".,"), groups, decimal) for one in found]


def _read(found: str, groups: str, decimal: str) -> Decimal | None:
    match = re.fullmatch(
        rf"(?P<whole>\d{{1,3}}(?:[{re.escape(groups)}]\d{{3}})+|\d+)(?:{re.escape(decimal)}(?P<part>\d+))?", found
    )
    if match is None:
        return None
    return Decimal(re.sub(r"\D", "", match["whole"]) + "." + (match["part"] or "0"))


if __name__ == "__main__":
    raise SystemExit(main())
