"""Scores of a model on several test sets, each in every direction that it has translations for."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qkv.errors import ConfigError
from qkv.evaluate.scores import Score, moses_languages, score
from qkv.evaluate.systems import read_test
from qkv.progress import Progress
from qkv.text.languages import Direction, named_pair
from qkv.translate import Catalogue, Relay, Route, Translator


@dataclass(frozen=True)
class Row:
    """The scores on one test set in one direction."""

    test: str
    route: Route
    sentences: int
    scores: dict[str, Score]

    @property
    def values(self) -> dict[str, Any]:
        return {
            "test": self.test,
            "direction": f"{self.route.source}-{self.route.target}",
            "through": self.route.through,
            "sentences": self.sentences,
            "scores": {metric: dataclasses.asdict(one) for metric, one in self.scores.items()},
        }


def evaluate_several(
    catalogue: Catalogue,
    tests: Sequence[Path],
    only: Sequence[Direction] = (),
    *,
    domain: str | None = None,
    **how: Any,
) -> list[Row]:
    """Translates each test set and scores that, in the directions between its languages, or in `only` those.

    `domain` is a kind of text that the models have learned to tell apart.
    """
    asked = _asked(catalogue.directions(), tests, only)
    # All of them first: one that cannot do this is found before others have translated for an hour.
    translators = [catalogue.translator(route.source, route.target, domain=domain) for _, route, _ in asked]
    return [
        _row(translator, route, test, turned=turned, **how)
        for translator, (test, route, turned) in zip(translators, asked, strict=True)
    ]


def table(rows: Sequence[Row]) -> str:
    """The scores as lines to print, and the signature of each kind once."""
    metrics = list(dict.fromkeys(metric for row in rows for metric in row.scores))
    names = {metric: next(row.scores[metric].name for row in rows if metric in row.scores) for metric in metrics}
    first = max(len(row.test) for row in rows)
    second = max(len(str(row.route)) for row in rows)
    head = f"{'test':<{first}}  {'':<{second}}  {'sentences':>9}"
    lines = [head + "".join(f"  {names[metric]:>10}" for metric in metrics)]
    for row in rows:
        numbers = [f"{row.scores[metric].value:.2f}" if metric in row.scores else "" for metric in metrics]
        cells = "".join(
            f"  {number:>{max(10, len(names[metric]))}}" for metric, number in zip(metrics, numbers, strict=True)
        )
        lines.append(f"{row.test:<{first}}  {row.route!s:<{second}}  {row.sentences:>9,}{cells}")
    signatures = dict.fromkeys(f"{one.name}: {one.signature}" for row in rows for one in row.scores.values())
    return "\n".join([*lines, "", *signatures])


def _asked(routes: Sequence[Route], tests: Sequence[Path], only: Sequence[Direction]) -> list[tuple[Path, Route, bool]]:
    """Before anything is translated: which test sets in which directions, and which way round they stand."""
    found = []
    for test in tests:
        pair = named_pair([test])
        if pair is None:
            raise ConfigError(f"{test} does not tell its languages; name it like newstest2014.en-de.tsv")
        wanted = [one for one in (pair, pair.turned) if not only or one in only]
        fitting = [route for one in wanted for route in routes if (route.source, route.target) == one]
        if not fitting:
            there = ", ".join(map(str, routes)) or "none"
            raise ConfigError(f"no model here translates between the languages of {test}; the directions are {there}")
        found += [(test, route, (route.source, route.target) != pair) for route in fitting]
    return found


def _row(translator: Translator | Relay, route: Route, test: Path, *, turned: bool, **how: Any) -> Row:
    sources, references = read_test(test, None, None)
    assert sources is not None
    if turned:
        sources, references = references, sources
    with Progress(f"translating {test.name}, {route}", total=len(sources), unit="lines") as progress:
        found = translator.translate(sources, progress=progress.advance, **how)
    language = route.target if route.target in moses_languages() else None
    scores = score([one.text for one in found], references, language=language)
    return Row(test.name.partition(".")[0], route, len(sources), scores)
