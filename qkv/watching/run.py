"""What a page shows of a run: what it logged, and what its checkpoints look at. Nothing is written into the run."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from qkv.checkpoint import read_state, step_of
from qkv.errors import CheckpointError, QkvError
from qkv.inspecting.inspection import Inspection
from qkv.inspecting.opened import Opened
from qkv.plot import reports_of
from qkv.prepare.directory import being_prepared
from qkv.run import RunDirectory
from qkv.translate import Translator

Json = dict[str, Any]

_POINTS = 2000
"""Reports of a curve, at most: more than a screen has places."""
_CURVES = {
    "train": ("step", "loss", "learning_rate", "tokens_per_second"),
    "validation": ("step", "loss", "perplexity", "bleu"),
}
_DIGITS = 3
_EASY = 80
"""Characters of a sentence whose tokens have room beside each other."""
_RECENT = 20
"""Reports that tell how quick a run is."""


class Pair(NamedTuple):
    """A sentence, and the translation that attention is looked at for."""

    source: str
    target: str


class Watched:
    """A run that may be going on."""

    def __init__(self, path: Path, *, sentence: str | None = None, languages: tuple[str, str] | None = None) -> None:
        """The sentence is one that the run has as a sample, unless it is said."""
        # Before its text is prepared, a run has no settings.
        self._run = RunDirectory(path) if being_prepared(RunDirectory(path).data) else RunDirectory.open(path)
        self._sentence = sentence
        self._languages = languages
        self._looked_at: dict[int, Path] = {}
        self._of: Pair | None = None
        self._seen: dict[int, Inspection] = {}
        """What was seen stays, also when the run has removed the checkpoint."""
        self._problem: str | None = None

    def told(self) -> Json:
        """All that the page shows, as plain values."""
        reports = self._reports()
        begun = self._run.config_file.is_file()
        training = self._run.config().training if begun else None
        steps = training.steps if training else 0
        curves = {
            kind: _thinned([_numbers(one, names) for one in reports if one["kind"] == kind])
            for kind, names in _CURVES.items()
        }
        samples = [{"step": one["step"], "sentences": one["samples"]} for one in reports if one.get("samples")]
        return {
            "name": self._run.path.resolve().name,
            "steps": steps,
            "validate_every": training.validate_every if training else None,
            "standing": self._standing(begun=begun),
            "seconds_left": _seconds_left(reports, steps),
            "seconds_since": self._seconds_since(),
            **curves,
            "rollbacks": [one for one in reports if one["kind"] == "rollback"],
            "why_stopped": next((str(one.get("why")) for one in reports if one["kind"] == "stopped"), None),
            "samples": _thinned(samples),
            "attention": self._attention(),
            "problem": self._problem,
        }

    def _standing(self, *, begun: bool) -> str:
        """What becomes of the run now; the page has words for each."""
        run = self._run
        if not begun and being_prepared(run.data):
            return "preparing"
        if run.busy:
            return "training"
        return "finished" if run.finished else "stopped"

    def _seconds_since(self) -> float | None:
        """How long nothing was reported."""
        try:
            return max(0.0, time.time() - self._run.log.stat().st_mtime)
        except FileNotFoundError:
            return None

    def look(self) -> None:
        """Looks at the attention of every checkpoint that was not there before; damaged ones are told of."""
        try:
            places = self._places()
            if not places or places == self._looked_at:
                return
            if self._sentence is None and self._sample() is None:
                of = "" if self._languages is None else " from {} to {}".format(*self._languages)
                self._problem = (
                    f"There are no samples{of} in the log of this run; wait, or name a sentence by --sentence."
                )
                return
            self._looked_at, self._problem = places, None
            translator = self._translator()
            self._look_at(places, translator, self._pair(translator))
        except QkvError as error:
            self._problem = str(error)

    def _places(self) -> dict[int, Path]:
        """Where the weights are after which step: checkpoints, or what a run ended with where none are left."""
        run = self._run
        found = {step_of(one): one for one in run.checkpoints()}
        if found or not run.final.is_dir():
            return found
        state = read_state(run.final)
        return {state.get("weights_of_step", state.get("step", run.config().training.steps)): run.final}

    def _look_at(self, places: dict[int, Path], translator: Translator, pair: Pair) -> None:
        config = self._run.config()
        look = translator.score([pair.source], [pair.target])[0].look
        if pair != self._of:
            self._of, self._seen = pair, {}
        for step, directory in places.items():
            if step in self._seen or look is None:
                continue
            try:
                opened = Opened.checkpoint(directory, config.model, translator.tokenizer)
                self._seen = {**self._seen, step: look.through(opened)()}
            except (CheckpointError, OSError) as error:
                # It may have been removed meanwhile, as runs do.
                self._problem = str(error) if directory.is_dir() else None

    def _translator(self) -> Translator:
        # The device may be busy with the run.
        translator = Translator.load(self._run.path, device="cpu")
        sample = self._sample()
        languages = self._languages or ((sample["from"], sample["to"]) if sample and "from" in sample else None)
        return translator if languages is None else translator.between(*languages)

    def _pair(self, translator: Translator) -> Pair:
        sample = self._sample()
        if self._sentence is None and sample is not None:
            return Pair(sample["source"], sample["reference"])
        return Pair(self._sentence or "", translator.translate([self._sentence or ""], beam=1)[0].text)

    def _sample(self) -> dict[str, str] | None:
        """Of the first validation, the longest in the language asked for that is easy to look at."""
        for report in self._reports():
            samples: list[dict[str, str]] = [
                one for one in report.get("samples", ()) if self._languages in (None, (one.get("from"), one.get("to")))
            ]
            if samples:
                short = [one for one in samples if len(one["source"]) <= _EASY]
                return max(short, key=_length) if short else min(samples, key=_length)
        return None

    def _reports(self) -> list[Json]:
        return reports_of(self._run.log) if self._run.log.is_file() else []

    def _attention(self) -> Json | None:
        seen = self._seen
        if not seen:
            return None
        one = next(iter(seen.values()))
        return {
            "source": [token.text for token in one.source.tokens],
            "target": [token.text for token in one.target.tokens],
            "texts": [one.source.text, one.target.text],
            # The heads of a layer on average.
            "checkpoints": [
                {"step": step, "layers": seen[step].weights["cross"].mean(1).round(_DIGITS).tolist()}
                for step in sorted(seen)
            ],
        }


def _length(sample: Mapping[str, str]) -> int:
    return len(sample["source"])


def _seconds_left(reports: Sequence[Json], steps: int) -> float | None:
    """At the speed of the last reports; validations come on top of it."""
    recent = [one for one in reports if one["kind"] == "train" and "seconds" in one][-_RECENT:]
    if len(recent) < 2:
        return None
    first, last = recent[0], recent[-1]
    seconds: float = (last["seconds"] - first["seconds"]) / (last["step"] - first["step"])
    left: int = steps - last["step"]
    return max(0.0, seconds * left)


def _numbers(report: Json, names: Sequence[str]) -> Json:
    """JSON has no numbers that are not finite."""
    found = {name: report.get(name) for name in names}
    return {name: value if value is not None and math.isfinite(value) else None for name, value in found.items()}


def _thinned(some: list[Json]) -> list[Json]:
    """So many that they can be drawn, the last among them."""
    stride = -(-len(some) // _POINTS) or 1
    return some[::-1][::stride][::-1]
