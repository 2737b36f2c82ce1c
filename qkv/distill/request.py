"""What is asked of a teacher: equal requests give equal data to learn from."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qkv.config import Config, SearchConfig
from qkv.data.corpus import Corpus
from qkv.directories import WEIGHTS
from qkv.errors import ConfigError
from qkv.prepare import Prepared
from qkv.prepare.directory import Request
from qkv.run import RunDirectory


@dataclass(frozen=True)
class Distilling:
    """How the teacher translates, and what the student learns from."""

    beam: int = 4
    length_penalty: float | None = None
    """None is the teacher's own."""
    n_best_by_bleu: int = 1
    """Of so many best translations, the one closest to the reference is taken."""
    also_original: bool = False
    """Whether the pairs of the corpus are learned from too, beside those of the teacher."""

    def __post_init__(self) -> None:
        SearchConfig(beam=self.beam)
        if self.length_penalty is not None:
            SearchConfig(length_penalty=self.length_penalty)
        if self.n_best_by_bleu < 1:
            raise ConfigError(f"the best of {self.n_best_by_bleu} translations cannot be taken; give 1 or more")
        if self.n_best_by_bleu > self.beam:
            raise ConfigError(
                f"--n-best-by-bleu {self.n_best_by_bleu} needs a beam of at least {self.n_best_by_bleu}, not "
                f"{self.beam}; add --beam {self.n_best_by_bleu}"
            )


@dataclass(frozen=True)
class Teacher:
    """A finished run, as what it makes of a text depends on it."""

    path: Path
    config: Config
    fingerprint: str
    """Of its weights and of the settings they were learned with."""

    @classmethod
    def open(cls, path: Path) -> Teacher:
        run = RunDirectory.open(path)
        saved = run.weights()
        if saved.directory != run.final:
            raise ConfigError(
                f"{path} is not finished, and its weights would change under the student: train it to its end, or "
                f"`qkv average {path} --last 1` makes what it has learned so far its final weights"
            )
        config = run.config()
        with (saved.directory / WEIGHTS).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
        digest.update(json.dumps(dataclasses.asdict(config.model), sort_keys=True).encode())
        return cls(path, config, digest.hexdigest())


@dataclass(frozen=True)
class Lesson:
    """What one teacher is to translate, and how."""

    teacher: Teacher
    prepared: Prepared
    distilling: Distilling

    @property
    def length_penalty(self) -> float:
        asked = self.distilling.length_penalty
        return self.teacher.config.search.length_penalty if asked is None else asked

    @functools.cached_property
    def corpus(self) -> Corpus:
        return self.prepared.corpus("train")

    @property
    def sources(self) -> int:
        """How many sources there are to translate: one that was cut in several ways is still one."""
        return len(self.corpus) // self.cuts

    @property
    def cuts(self) -> int:
        return int(self._prepared_with["text"]["segmentations"])

    def turned(self, target: list[int]) -> list[int]:
        """A target as the data has it, given as it is read, and the other way round."""
        return target[::-1] if self._prepared_with["text"]["right_to_left"] else target

    @property
    def translations(self) -> Request:
        """The translations that are asked for."""
        search = {
            "beam": self.distilling.beam,
            "length_penalty": self.length_penalty,
            "extra_length": self.teacher.config.search.extra_length,
            "n_best_by_bleu": self.distilling.n_best_by_bleu,
        }
        return Request({"distilling": search}, self._inputs)

    @property
    def data(self) -> Request:
        """The prepared data that is asked for."""
        distilling = {**self.translations.settings["distilling"], "also_original": self.distilling.also_original}
        return Request({**self._prepared_with, "distilling": distilling}, self._inputs)

    @functools.cached_property
    def _prepared_with(self) -> Mapping[str, Any]:
        return Request.of_manifest(self.prepared.manifest).settings

    @property
    def _inputs(self) -> dict[str, list[dict[str, Any]]]:
        return {
            "teacher": [{"file": str(self.teacher.path), "sha256": self.teacher.fingerprint}],
            "data": [{"file": str(self.prepared.directory), "sha256": self.prepared.fingerprint}],
        }
