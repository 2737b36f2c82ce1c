"""Which of a model's directions is meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def chosen(directions: Sequence[Direction], source: str | None, target: str | None) -> tuple[str | None, str | None]:
    """The languages that are meant, as the model calls them; what it does not know is taken as it is given."""
    if not directions:
        return source and language(source), target and language(target)
    sources, targets = ({one[side] for one in directions} for side in (0, 1))
    found = [
        one
        for one in directions
        if (source is None or one.source == closest(source, sources))
        and (target is None or one.target == closest(target, targets))
    ]
    if not found:
        raise ConfigError(f"no model here translates {asked_for(source, target)}; there is {listed(directions)}")
    if len(found) > 1:
        raise which_direction(found)
    return found[0]


def which_direction(directions: Sequence[Direction]) -> ConfigError:
    """What to say where several are possible."""
    first = directions[0]
    return ConfigError(
        f"there are several directions, {listed(directions)}; say which: --from {first.source} --to {first.target}"
    )


def listed(directions: Iterable[Direction]) -> str:
    return ", ".join(map(str, directions))


def asked_for(source: str | None, target: str | None) -> str:
    parts = [f"from {language(source)}" if source else "", f"into {language(target)}" if target else ""]
    return " ".join(part for part in parts if part)
