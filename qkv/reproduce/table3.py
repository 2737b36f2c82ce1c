"""Table 3 at an equal budget: every row trained for the same time or steps, and what each change is worth beside base.

A row is trained as in the paper but for its length; its perplexity and BLEU are those of the development set, with beam
search and without averaging (section 6.2). Each row has a directory of its own with what came of it, so the same call
goes on with the rows that are missing; weights that were learned from are needed no more once a row is done.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qkv.config import Config
from qkv.errors import ConfigError, TrainingError
from qkv.evaluate.scores import METRICS
from qkv.prepare import Prepared
from qkv.progress import duration
from qkv.recipes import recipe
from qkv.reproduce.budget import shortened
from qkv.reproduce.data import Data, obtained, of_training, on_corpus
from qkv.reproduce.experiments import EXPERIMENTS, TABLE_3, rows
from qkv.reproduce.plan import Length, planned
from qkv.reproduce.provenance import code_of, command, compared, described, elsewhere, words_of
from qkv.reproduce.report import Report, difference, number
from qkv.reproduce.running import stopped, trained, translated
from qkv.settings import override_all
from qkv.storage import write_atomically
from qkv.text.files import read_lines
from qkv.training.processes import Processes
from qkv.training.stopping import CAUTION

_CORPUS = EXPERIMENTS["base-en-de"].corpus
_RESULT = "result.json"
_FEW = 3000
"""Steps after which base, on one GPU, had not left the plateau on which post-norm layers as deep as it begin."""
_AT_THE_END = {"final": "last", "average_checkpoints": 1, "keep_checkpoints": 1, "validation_sentences": 0}
"""Table 3 is made without averaging, and BLEU is measured once, when a row is done."""


def reproduce_table3(
    work: str | os.PathLike[str],
    data: Data,
    *,
    wanted: Sequence[str] = (),
    length: Length | None = None,
    width: int | None = None,
    layers: int | None = None,
    sentences: int | None = None,
    changes: Mapping[str, str] | None = None,
    deadline: float | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Does the rows that are not done yet, and tells of all that are.

    `width` and `layers` are those of base where all rows are to be smaller in proportion, and `sentences` how many of
    the development set are translated.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("the rows of Table 3 are trained by one process each; start them without torchrun")
    for what, count in (("width", width), ("layers", layers), ("sentences", sentences)):
        if count is not None and count < 1:
            raise ConfigError(f"{what} of {count} cannot be; give 1 or more")
    chosen, length, asked = rows(wanted), length or Length(), dict(changes or {})
    directory, _ = obtained(_CORPUS, data, asked, say)
    prepared = Prepared.open(Path(directory))
    table = _Table(Path(work) / "rows", prepared, length, of_training(asked), sentences, deadline)
    # What is wrong with any row is told before the first is trained.
    configs = {row: table.config(row, width, layers) for row in dict.fromkeys(["base", *chosen])}
    repeated = _repeated(configs)
    for row, why in repeated.items():
        say(f"row {row} is left out: {why}")
    chosen = [row for row in chosen if row not in repeated]
    if not chosen:
        raise ConfigError("no row asked for differs from base; give a larger --width or --layers, or other --rows")
    for row in chosen:
        if not table.do(row, configs[row], say):
            say("stopped between two rows because time is nearly up; the same command goes on")
            break
    given = {"rows": ",".join(wanted) or None, "width": width, "layers": layers, "sentences": sentences}
    options = {option: words_of(value) for option, value in given.items()}
    results = {row: table.result(row) for row in chosen}
    made = {
        "command": command("table3", data, length, changes or {}, options),
        "differences": [*elsewhere(data, _CORPUS), *_differences(results)],
    }
    return _report(results, table.failed, repeated, made)


class _Table:
    """The rows in progress."""

    def __init__(
        self,
        place: Path,
        prepared: Prepared,
        length: Length,
        changes: Mapping[str, str],
        sentences: int | None,
        deadline: float | None,
    ) -> None:
        self._place = place
        self._prepared = prepared
        self._length = length
        self._changes = changes
        self._sentences = sentences
        self._deadline = deadline
        self._longest = length.seconds or 0.0
        self.failed: dict[str, str] = {}
        """Rows that could not be trained, and why."""

    def config(self, row: str, width: int | None, layers: int | None) -> Config:
        """The settings of a row, but for its length."""
        return override_all(scaled(self._prepared.applied_to(_as_printed(row)), width, layers), self._changes)

    def do(self, row: str, config: Config, say: Callable[[str], None]) -> bool:
        """Does what is missing of a row; False where there is no time for it."""
        directory, begun = self._place / row, time.monotonic()
        told = self.result(row)
        if told is None and stopped(self._deadline, CAUTION * self._longest):
            return False
        # Also where it is done: it may have been for another budget or other data.
        settled = planned(directory, config, self._length, self._prepared, self._changes, _to_the_end)
        if told is None:
            say(f"row {row}")
            try:
                printed = on_corpus(_CORPUS, _as_printed(row))
                told = trained(settled, directory / "run", self._prepared, Processes(), self._deadline, recipe=printed)
            except TrainingError as error:
                self.failed[row] = str(error)
                say(f"row {row} is left out: {error}")
                return True
            if told is None:
                return False
        return self._scored(row, told, config.training.device, begun)

    def _scored(self, row: str, told: dict[str, Any], device: str, begun: float) -> bool:
        """Translates and scores what is not yet, and keeps it; without sacreBLEU, translations wait for it."""
        directory = self._place / row
        sources, references = ([*read_lines(path)][: self._sentences] for path in self._prepared.valid_files)
        hypotheses = translated(directory, sources, device)
        told |= {"sentences": len(references)}
        if importlib.util.find_spec("sacrebleu") is not None:
            bleu = METRICS["bleu"](hypotheses, references)
            told |= {"bleu": bleu.value, "signature": bleu.signature}
        write_atomically(directory / _RESULT, (json.dumps(told, indent=2) + "\n").encode())
        shutil.rmtree(directory / "run" / "checkpoints", ignore_errors=True)
        self._longest = max(self._longest, time.monotonic() - begun)
        return True

    def result(self, row: str) -> dict[str, Any] | None:
        """What came of a row, where it is done."""
        try:
            result: dict[str, Any] = json.loads((self._place / row / _RESULT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return result


def _as_printed(row: str) -> Config:
    """The settings with which the paper trained a row."""
    return recipe(row).with_changes(training=_AT_THE_END)


def scaled(config: Config, width: int | None, layers: int | None) -> Config:
    """The model in proportion to a base of this width and so many layers; heads stay as many."""
    base, model = recipe("base").model, config.model
    sizes = {
        "width": model.width,
        "hidden": model.hidden,
        "key_width": model.key_width,
        "value_width": model.value_width,
    }
    changes = {
        name: max(1, size * width // base.width)
        for name, size in sizes.items()
        if width is not None and size is not None
    }
    depths = {"encoder_layers": model.encoder_layers, "decoder_layers": model.decoder_layers}
    changes |= {
        name: max(1, depth * layers // base.encoder_layers) for name, depth in depths.items() if layers is not None
    }
    return config.with_changes(model=changes)


def _repeated(configs: Mapping[str, Config]) -> dict[str, str]:
    """Rows that are none of their own, and why: what sets them apart was rounded away, or is set for all."""
    first: dict[Config, str] = {}
    for row, config in configs.items():
        first.setdefault(config, row)
    return {
        row: f"with this --width, --layers and --set it is the same as {first[config]}"
        for row, config in configs.items()
        if first[config] != row
    }


def _to_the_end(config: Config, steps: int) -> Config:
    """A run of so many steps that is looked at and saved once."""
    return shortened(config, steps).with_changes(training={"save_every": steps, "validate_every": steps})


def _differences(results: Mapping[str, Mapping[str, Any] | None]) -> list[str]:
    done = {row: one for row, one in results.items() if one is not None}
    unknown = [row for row, one in done.items() if "changed" not in one]
    told = described({row: one["changed"] for row, one in done.items() if row not in unknown})
    return told + ([f"what an older version did not keep of {', '.join(unknown)}"] if unknown else [])


def _report(
    results: Mapping[str, Mapping[str, Any] | None],
    failed: Mapping[str, str],
    repeated: Mapping[str, str],
    made: Mapping[str, Any],
) -> Report:
    done = {row: one for row, one in results.items() if one is not None}
    base, printed_base = done.get("base", {}), TABLE_3["base"]
    table = [
        (
            row,
            f"{one['steps']:,}",
            f"{one['parameters'] / 1e6:.1f}",
            number(one["perplexity"]),
            difference(one["perplexity"], base.get("perplexity")),
            number(one.get("bleu"), 1),
            difference(one.get("bleu"), base.get("bleu"), 1),
            str(printed.millions or printed_base.millions),
            number(printed.perplexity),
            difference(printed.perplexity, printed_base.perplexity),
            number(printed.bleu, 1),
            difference(printed.bleu, printed_base.bleu, 1),
        )
        for row, one, printed in ((row, one, TABLE_3[row]) for row, one in done.items())
    ]
    ours = ("million", "ppl", "± base", "BLEU", "± base")
    columns = ("row", "steps", *ours, *(f"paper's {name}" for name in ours))
    values = {
        **made,
        "rows": {**done},
        "failed": {**failed},
        "repeated": {**repeated},
        "printed": {row: TABLE_3[row]._asdict() for row in done},
    }
    left = [row for row in results if row not in done and row not in failed]
    notes = [*_notes(done, made), *(f"{row} was left out: {why}" for row, why in {**failed, **repeated}.items())]
    notes += [f"still to do: {', '.join(left)}"] if left else []
    return Report("Table 3, rows at an equal budget", columns, table, values, notes, [*failed], left)


def _notes(done: Mapping[str, Mapping[str, Any]], made: Mapping[str, Any]) -> list[str]:
    if not done:
        return []
    seconds = [float(one["seconds"]) for one in done.values()]
    some = next(iter(done.values()))
    signatures = {str(one["signature"]) for one in done.values() if "signature" in one}
    devices = sorted({str(one["device"]) for one in done.values()})
    short = [row for row, one in done.items() if one["steps"] < _FEW]
    plateau = (
        f"{', '.join(short)}: fewer than {_FEW:,} steps, after which layers as deep as the paper's have hardly begun "
        "to learn; give a larger budget, or batches of fewer positions by --set training.tokens_per_batch"
    )
    scored = f"BLEU of {some['sentences']:,} sentences: `{'`, `'.join(sorted(signatures))}`"
    return [
        f"each row trained for {duration(min(seconds))} to {duration(max(seconds))}, steps of "
        f"{some['tokens_per_batch']:,} target positions, on one {' or '.join(devices)}; seed {some['seed']}, "
        "one run a row: differences as small as two seeds make mean nothing",
        "perplexity a subword and BLEU are those of the development set; the paper's rows had 100,000 steps (big: "
        "300,000), ours a fraction of that, so what learns fast looks better here than in the end",
        compared("the recipes of the rows", made["differences"]),
        f"`{made['command']}`, {code_of(done.values())}",
        *([plateau] if short else []),
        scored if signatures else "no BLEU yet: sacrebleu is not installed; the same command adds it where it is",
    ]
