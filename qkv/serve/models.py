"""Who translates in which directions: all models that are here, or those that the settings name."""

from __future__ import annotations

from pathlib import Path

from qkv.errors import ConfigError
from qkv.serve.settings import Settings
from qkv.text.languages import Direction, closest
from qkv.translate import Catalogue, Route, Translator

Steps = tuple[Translator, ...]
"""One translator, or two where a text goes through a language between."""


class Models:
    """Translators of every direction, loaded."""

    def __init__(self, steps: dict[Direction, Steps]) -> None:
        # Who goes through a language asks the very translators that others ask for that way alone.
        own: dict[tuple[str | None, str | None], Translator] = {}
        self._steps = {
            direction: tuple(own.setdefault((one.source_language, one.target_language), one) for one in some)
            for direction, some in steps.items()
        }

    def directions(self) -> list[Direction]:
        return [*self._steps]

    def steps(self, source: str, target: str) -> Steps:
        """Who has to be asked, one after the other."""
        return self._steps[Direction(source, target)]


def load(settings: Settings) -> Models:
    """The models that the settings name, or all that are where models are usually kept."""
    source, target = settings.source or None, settings.target or None
    catalogue = Catalogue.open([Path(settings.model)] if settings.model else None, device=settings.device)
    routes = catalogue.directions()
    if settings.model and not routes:
        return _nameless(Path(settings.model), settings)
    wanted = [route for route in routes if _is_meant(route, routes, source, target)]
    if not wanted:
        # There is none, or none of these languages: it says which of both, and what there is.
        catalogue.route(source, target)
    return Models({Direction(*route[:2]): catalogue.steps(*route[:2]) for route in wanted})


def _is_meant(route: Route, routes: list[Route], source: str | None, target: str | None) -> bool:
    return (source is None or route.source == closest(source, {one.source for one in routes})) and (
        target is None or route.target == closest(target, {one.target for one in routes})
    )


def _nameless(path: Path, settings: Settings) -> Models:
    """A model that does not say which languages it knows."""
    translator = Translator.load(path, device=settings.device)
    if not settings.source or not settings.target:
        raise ConfigError(f"{path} does not say which languages it knows; add --from and --to")
    translator = translator.between(settings.source, settings.target)
    assert translator.source_language and translator.target_language, "they were said"
    return Models({Direction(translator.source_language, translator.target_language): (translator,)})
