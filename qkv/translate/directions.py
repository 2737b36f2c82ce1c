"""Which of a model's directions is meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from qkv.config import TextConfig
from qkv.errors import ConfigError
from qkv.text.languages import Direction, closest, language, parse_directions


def directions_of(text: TextConfig) -> tuple[Direction, ...]:
    """From which languages a model translates into which; none where nobody said what its languages are."""
    if text.directions is not None:
        return parse_directions(text.directions)
    if text.source_language is None or text.target_language is None:
        return ()
    return (Direction(text.source_language, text.target_language),)


def every(directions: Sequence[Direction]) -> tuple[Direction, ...]:
    """These, and those that nobody has learned from a language that is read into one that is written."""
    sources, targets = dict.fromkeys(one.source for one in directions), dict.fromkeys(one.target for one in directions)
    others = [Direction(source, target) for source in sources for target in targets if source != target]
    return tuple(dict.fromkeys([*directions, *others]))


def chosen(directions: Sequence[Direction], source: str | None, target: str | None) -> tuple[str | None, str | None]:
    """The languages that are meant, as the model calls them; what it does not know is taken as it is given."""
    if not directions:
        return source and language(source), target and language(target)
    if not fitting(directions, source, target):
        raise ConfigError(
            f"this model does not translate {_asked_for(source, target)}; there is {_listed(directions)}, and "
            "qkv.translate.Catalogue goes through English where that is possible"
        )
    return one_of(directions, source, target)


class _Way(Protocol):
    @property
    def source(self) -> str: ...

    @property
    def target(self) -> str: ...


Way = TypeVar("Way", bound=_Way)


class SeveralDirectionsError(ConfigError):
    """Nobody said which of several directions is meant; `what` is the message without how to say it.

    The message is for who calls from Python, by this method: other surfaces have ways of their own.
    """

    def __init__(self, ways: Sequence[_Way], method: str = "between") -> None:
        self.first = ways[0]
        """One that may be meant, for an example."""
        self.what = f"there are several directions, {_listed(ways)}"
        super().__init__(f'{self.what}; say which: .{method}("{self.first.source}", "{self.first.target}")')


def one_of(ways: Sequence[Way], source: str | None, target: str | None, method: str = "between") -> Way:
    """The one that is meant; a side that nobody names is found where only one fits."""
    found = fitting(ways, source, target)
    if not found:
        raise ConfigError(f"no model here translates {_asked_for(source, target)}; there is {_listed(ways)}")
    if len(found) > 1:
        raise SeveralDirectionsError(found, method)
    return found[0]


def fitting(ways: Sequence[Way], source: str | None, target: str | None) -> list[Way]:
    """Those between these languages, of which either may be left open."""
    sources, targets = {way.source for way in ways}, {way.target for way in ways}
    return [
        way
        for way in ways
        if (source is None or way.source == closest(source, sources))
        and (target is None or way.target == closest(target, targets))
    ]


def _listed(ways: Iterable[_Way]) -> str:
    return ", ".join(map(str, ways))


def _asked_for(source: str | None, target: str | None) -> str:
    parts = [f"from {language(source)}" if source else "", f"into {language(target)}" if target else ""]
    return " ".join(part for part in parts if part)
