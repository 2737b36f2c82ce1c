"""One experiment from its name to its score: fetch, prepare, train, average, translate, score (sections 5 and 6.1)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qkv.errors import ConfigError
from qkv.evaluate.scores import moses_languages, require_packages, require_text, score
from qkv.evaluate.systems import read_test
from qkv.fetch import corpus
from qkv.prepare import Prepared
from qkv.progress import duration
from qkv.reproduce.data import Data, obtained, of_training, on_corpus
from qkv.reproduce.experiments import Experiment, experiment
from qkv.reproduce.plan import Length, planned
from qkv.reproduce.provenance import code_of, command, compared, described, elsewhere
from qkv.reproduce.report import Report, number
from qkv.reproduce.running import stopped, trained, translated
from qkv.settings import from_json, override_all, to_json
from qkv.training.processes import joined

_TRANSLATING = 60.0
"""Seconds before the end at which no translating is begun."""


def reproduce(
    name: str,
    work: str | os.PathLike[str],
    data: Data,
    *,
    test: Sequence[Path] = (),
    length: Length | None = None,
    changes: Mapping[str, str] | None = None,
    deadline: float | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Report | None:
    """Does all that is not done yet, and tells what came out; None where time was up before.

    `test` is a file of pairs, or a source and a reference file; without, it is the corpus's own, or what the prepared
    data holds out.
    """
    found, place, length, asked = experiment(name), Path(work), length or Length(), dict(changes or {})
    if len(test) > 2:
        raise ConfigError("a test set is one file of pairs, or a source and a reference file")
    with joined() as processes:
        deadline = processes.lasting(deadline)
        if processes.count > 1 and length.seconds is not None:
            raise ConfigError("a budget of time is measured by one process; several take a number of steps")
        # What scoring would refuse in the end is told before the hours that lead there.
        processes.by_first(lambda: _require_scorable(test))
        directory, tests = processes.by_first(lambda: obtained(found.corpus, data, asked, say))
        prepared, asked = Prepared.open(Path(directory)), of_training(asked)
        config = override_all(prepared.applied_to(found.config()), asked)
        settled = processes.by_first(lambda: to_json(planned(place, config, length, prepared, asked)))
        recipe = on_corpus(found.corpus, found.config())
        told = trained(from_json(settled), place / "run", prepared, processes, deadline, recipe=recipe)
        # One looks at its clock for all: whoever went on alone would wait for the others in vain.
        if told is None or processes.by_first(lambda: stopped(deadline, _TRANSLATING)):
            return None
        files = [*test] or [Path(one) for one in tests]
        values = processes.by_first(lambda: {**told, **_scores(place, files, config.training.device, prepared)})
    asked_for = command(name, data, length, changes or {}, {"test": test}, processes=values["processes"])
    differences = [*elsewhere(data, found.corpus), *described({name: values["changed"]})]
    if test or data.directory is not None:
        own = ", ".join(text.name for text in corpus(found.corpus).test)
        differences.insert(0, f"tested on {', '.join(values['test'])} instead of {own}")
    return _report(name, found, {"command": asked_for, "differences": differences, **values})


def _require_scorable(test: Sequence[Path]) -> None:
    require_packages()
    if test:
        require_text(_pairs(test)[1])


def _pairs(test: Sequence[Path]) -> tuple[list[str], list[str]]:
    """The sources and the references of all test files together."""
    parts = [read_test(test[0], None, None)] if len(test) == 1 else []
    parts += [read_test(None, *files) for files in zip(test[::2], test[1::2], strict=False)]
    return [line for some, _ in parts for line in some or ()], [line for _, some in parts for line in some]


def _scores(work: Path, test: Sequence[Path], device: str, prepared: Prepared) -> dict[str, Any]:
    """The scores of the run's translations of all test files together."""
    sources, references = _pairs(test)
    hypotheses = translated(work, sources, device)
    language = prepared.manifest["settings"]["text"]["target_language"] or "en"
    scores = score(hypotheses, references, language=language if language in moses_languages() else None)
    return {
        "sentences": len(references),
        "test": [path.name for path in test],
        "scores": {metric: dataclasses.asdict(one) for metric, one in scores.items()},
    }


def _report(name: str, found: Experiment, values: Mapping[str, Any]) -> Report:
    scores: Mapping[str, Mapping[str, Any]] = values["scores"]
    # The paper's flavour first: it is the one that the paper's number can be held against.
    order = sorted(scores, key=lambda metric: metric != "paper")
    rows = [
        (
            "BLEU as in the paper" if metric == "paper" else str(scores[metric]["name"]),
            number(scores[metric]["value"]),
            number(found.printed if metric == "paper" else None, 1),
        )
        for metric in order
    ]
    notes = [
        f"{values['sentences']:,} sentences of {', '.join(values['test'])}; "
        f"{values['steps']:,} steps of {values['tokens_per_batch']:,} target positions in "
        f"{duration(values['seconds'])} on {values['processes']} x {values['device']}; "
        f"{values['parameters'] / 1e6:.1f} million parameters; seed {values['seed']}, one run",
        compared(f"the recipe of {name}", values["differences"]),
        f"`{values['command']}`, {code_of([values])}",
        *(f"{scores[metric]['name']}: `{scores[metric]['signature']}`" for metric in order),
    ]
    title = f"{name}: {found.title}"
    kept = {"experiment": name, "recipe": found.recipe, "corpus": found.corpus, "printed": found.printed, **values}
    return Report(title, ("", "here", "the paper"), rows, kept, notes)
