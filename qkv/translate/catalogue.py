"""The models that are here, by the directions they translate in: `Catalogue.open().translator("en", "de")`."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import qkv
from qkv.directories import CONFIG, TOKENIZER
from qkv.errors import CheckpointError, ConfigError, QkvError
from qkv.progress import warn
from qkv.settings import from_json
from qkv.text.languages import Direction
from qkv.translate.directions import directions_of, fitting, one_of
from qkv.translate.options import Precision
from qkv.translate.relay import Relay
from qkv.translate.translator import Translator

MODELS_VARIABLE = "QKV_MODELS"
"""The environment's list of directories to look for models in."""

_BETWEEN = "en"
"""What a direction goes through that no model has learned: the language that most corpora are in."""


class Route(NamedTuple):
    """A direction that can be translated in, and the language that it goes through where no model has it directly."""

    source: str
    target: str
    through: str | None = None

    def __str__(self) -> str:
        return f"{self.source}-{self.target}" + (f" (through {self.through})" if self.through else "")


class Catalogue:
    """Models that are loaded when they are first needed, and once."""

    def __init__(self, models: Mapping[Direction, Callable[[], Translator]]) -> None:
        self._models = models

    @classmethod
    def open(
        cls, directories: Sequence[Path] | None = None, *, device: str = "auto", precision: Precision = "float32"
    ) -> Catalogue:
        """The models in these directories, or where models are usually kept; of two for one direction, the first."""
        found = map(_models_in, usual_places()) if directories is None else map(_named_models, directories)
        models: dict[Direction, Callable[[], Translator]] = {}
        damaged: list[CheckpointError] = []
        for model in itertools.chain.from_iterable(found):
            load = functools.cache(partial(Translator.load, model, device=device, precision=precision))
            try:
                directions = _directions(model)
            except CheckpointError as error:
                damaged.append(error)
                continue
            for direction in directions:
                models.setdefault(direction, load)
        if damaged and not models:
            raise damaged[0]
        for damage in damaged:
            warn(f"{damage}; it is left out")
        return cls(models)

    @classmethod
    def of(cls, translator: Translator) -> Catalogue:
        """What one translator does alone: its own directions, and those through a language that it knows."""
        return cls(dict.fromkeys(translator.directions, lambda: translator))

    def directions(self) -> list[Route]:
        """Those that a model has learned, and then those that go through a language between."""
        direct = [Route(*direction) for direction in self._models]
        languages = sorted({language for direction in self._models for language in direction})
        pairs = [Direction(*pair) for pair in itertools.permutations(languages, 2)]
        return direct + [Route(*pair, _BETWEEN) for pair in pairs if pair not in self._models and self._goes(pair)]

    def route(self, source: str | None, target: str | None) -> Route:
        """The one that is meant; a side that nobody names is found where only one fits, or only one directly."""
        routes = self.directions()
        if not routes:
            own = _own_place()
            raise ConfigError(
                f"there is no model here; copy the folder models/ of qkv's repository to {own}, or make one with `qkv "
                f"export run/ --output {own / 'NAME'}`: models are looked for there and in the directories of "
                f"{MODELS_VARIABLE}, and --model names one that is elsewhere"
            )
        direct = fitting([route for route in routes if route.through is None], source, target)
        return direct[0] if len(direct) == 1 else one_of(routes, source, target, "translator")

    def translator(self, source: str | None, target: str | None, *, domain: str | None = None) -> Translator | Relay:
        """What translates from one language into another, directly or through a language between."""
        first, *second = self.steps(source, target, domain=domain)
        return Relay(first, *second) if second else first

    def steps(self, source: str | None, target: str | None, *, domain: str | None = None) -> tuple[Translator, ...]:
        """The one translator of a direction, or the two that it takes through a language between."""
        route = self.route(source, target)
        stops = [route.source, *([route.through] if route.through else []), route.target]
        return tuple(self._direct(Direction(*step), domain) for step in itertools.pairwise(stops))

    def _direct(self, direction: Direction, domain: str | None) -> Translator:
        return self._models[direction]().between(*direction, domain=domain)

    def _goes(self, direction: Direction) -> bool:
        steps = Direction(direction.source, _BETWEEN), Direction(_BETWEEN, direction.target)
        return all(step in self._models for step in steps)


def usual_places() -> list[Path]:
    """Where models are looked for, in order: the environment's list, the checkout qkv runs from, the user's data."""
    named = [Path(place) for place in os.environ.get(MODELS_VARIABLE, "").split(os.pathsep) if place]
    for place in named:
        if not _models_in(place):
            warn(f"{MODELS_VARIABLE}: {_lacks_a_model(place)}; mend it, or unset it")
    checkout = Path(qkv.__file__).parent.parent
    own = [checkout / "models"] if (checkout / "pyproject.toml").is_file() else []
    return [*named, *own, _own_place()]


def _own_place() -> Path:
    """Where a user keeps models."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "qkv" / "models"


def _models_in(place: Path) -> list[Path]:
    """The directory itself where it is a model, else those in it."""
    if _is_model(place):
        return [place]
    return sorted(path for path in place.iterdir() if _is_model(path)) if place.is_dir() else []


def _named_models(place: Path) -> list[Path]:
    """The same, of a place that somebody named, and so must have some."""
    models = _models_in(place)
    if not models:
        raise ConfigError(
            f"{_lacks_a_model(place)}; name a model of `qkv export`, a run of `qkv train`, or a folder of such"
        )
    return models


def _lacks_a_model(place: Path) -> str:
    return f"there is no model in {place}" if place.is_dir() else f"no such directory: {place}"


def _is_model(path: Path) -> bool:
    """Be it damaged: whoever has one that lacks a file is to hear of that file, and not that there is none."""
    return any(path.glob("*.onnx")) or all((path / name).is_file() for name in (CONFIG, TOKENIZER))


def _directions(model: Path) -> Sequence[Direction]:
    try:
        return directions_of(from_json((model / CONFIG).read_text(encoding="utf-8")).text)
    except (QkvError, OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise CheckpointError(f"{model / CONFIG} cannot be read: {why}; put the model there anew") from error
