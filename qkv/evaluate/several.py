"""Scores of a model on several test sets, each in every direction that it has translations for."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from qkv.errors import ConfigError
from qkv.evaluate.scores import Score, moses_languages, require_packages, require_text, score
from qkv.evaluate.systems import read_pairs
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
    # All that is needed first: what cannot be done is found before others have been translated for an hour.
    require_packages()
    asked = _asked(catalogue.directions(), tests, only)
    translators = [catalogue.translator(one.route.source, one.route.target, domain=domain) for one in asked]
    return [_row(translator, one, **how) for translator, one in zip(translators, asked, strict=True)]


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


class _Asked(NamedTuple):
    """A test set in one direction."""

    test: Path
    route: Route
    sources: list[str]
    references: list[str]


def _asked(routes: Sequence[Route], tests: Sequence[Path], only: Sequence[Direction]) -> list[_Asked]:
    """Before anything is translated: which test sets in which directions, each turned as it is asked for."""
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
        sides = dict(zip(pair, read_pairs(test), strict=True))
        for route in fitting:
            require_text(sides[route.target], f" of {test}")
            found.append(_Asked(test, route, sides[route.source], sides[route.target]))
    return found


def _row(translator: Translator | Relay, asked: _Asked, **how: Any) -> Row:
    test, route, sources, references = asked
    with Progress(f"translating {test.name}, {route}", total=len(sources), unit="lines") as progress:
        found = translator.translate(sources, progress=progress.advance, **how)
    language = route.target if route.target in moses_languages() else None
    scores = score([one.text for one in found], references, language=language)
    return Row(test.name.partition(".")[0], route, len(sources), scores)
