"""What a translation can be asked for, beyond being likely."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal, get_args

from qkv.errors import ConfigError

if TYPE_CHECKING:
    from qkv.translate.translator import Translator

Likeness = Literal["chrf", "bleu"]
Precision = Literal["float32", "bfloat16"]

_MOST_SAMPLES = 1024


@dataclass(frozen=True)
class Controls:
    """What a translation is asked to be like."""

    coverage_penalty: float = 0.0
    """What it costs to look past a part of the source; 0.2 is much."""
    no_repeats_of: int = 0
    """No sequence of so many tokens comes twice; 0 allows all."""
    least_tokens: int = 0
    """A translation does not end before it has so many."""

    def __post_init__(self) -> None:
        if not 0 <= self.coverage_penalty <= 100:
            raise ConfigError(f"the coverage penalty is {self.coverage_penalty}; it must be from 0 to 100")
        for name in ("no_repeats_of", "least_tokens"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 0 or more")


@dataclass(frozen=True)
class Mbr:
    """Minimum Bayes risk: of so many drawn translations, the one that is most like the others."""

    likeness: Likeness = "chrf"
    samples: int = 32

    def __post_init__(self) -> None:
        if self.likeness not in get_args(Likeness):
            raise ConfigError(f"translations are compared by {' or '.join(get_args(Likeness))}, not {self.likeness!r}")
        if not 2 <= self.samples <= _MOST_SAMPLES:
            raise ConfigError(
                f"{self.samples} samples cannot be compared with one another; draw from 2 to {_MOST_SAMPLES}"
            )


@dataclass(frozen=True)
class Rerank:
    """All that a beam found is ranked again, by (1 - weight) times its score and weight times another model's."""

    translator: Translator
    weight: float = 0.5
    backward: bool = False
    """Whether the other model translates the other way: it scores the source, given the translation."""

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise ConfigError(f"the weight of the second model is {self.weight}; it must be from 0 to 1")

    def beside(self, source: str | None, target: str | None) -> Rerank:
        """The same beside a model that translates between these: of several directions the second takes the one."""
        if len(self.translator.directions) < 2 or self.translator.target_language is not None:
            return self
        ends = (target, source) if self.backward else (source, target)
        return replace(self, translator=self.translator.between(*ends))


def capitalised(text: str) -> str:
    """As a sentence may begin with it."""
    return text[:1].upper() + text[1:]


@dataclass(frozen=True)
class Terms:
    """Words that a translation must have, and such as it must not, as whole words."""

    required: tuple[tuple[str, ...], ...] = ()
    """Of each, one alternative appears; the first letter of one may be a capital where the sentence begins with it."""
    once: tuple[str, ...] = ()
    """Each appears unchanged, as many times as it is given here and no more."""
    forbidden: tuple[str, ...] = ()
    """None appears, in small letters or capitals."""
    kinds: tuple[str, ...] = ()
    """Kinds of `text.protect`: its finder sees nothing of these in the translation but what `once` asks for."""
    apart: tuple[str, ...] = ()
    """Such of `once` as touches no letter or digit, and no sign that belongs to something else, if there are kinds."""
    amounts: bool = False
    """Whether a number that became another is put right; it may be written in words, or as its language does."""

    @property
    def given(self) -> tuple[str, ...]:
        """All that has to appear as it is given here."""
        required = [*chain.from_iterable(self.required)]
        return (*required, *map(capitalised, required), *self.once)

    @property
    def unchanged(self) -> Terms:
        """What stays as it is, and nothing else."""
        return replace(self, required=(), forbidden=())

    @property
    def binds(self) -> bool:
        """Whether anything has to appear, or must not."""
        return bool(self.required or self.once or self.forbidden or self.kinds)

    def __post_init__(self) -> None:
        for name, some in (("required", self.required), ("once", self.once), ("forbidden", self.forbidden)):
            # A string is a sequence of strings too: each letter would become a term.
            if isinstance(some, str) or (name == "required" and any(isinstance(one, str) for one in some)):
                example = '(("cat", "tomcat"),)' if name == "required" else '("cat",)'
                raise ConfigError(f"{name} terms are {some!r}; they are given like {example}")
        given = [*self.given, *self.forbidden]
        if not all(text.strip() for text in given) or not all(self.required):
            raise ConfigError("a term is empty; give a word, or several")
