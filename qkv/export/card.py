"""The card of a model: what it is, what it learned from and on what terms, how good it is, and what it is bad at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qkv.checkpoint import BEGAN_WITH
from qkv.config import Config
from qkv.errors import CheckpointError, ConfigError, TextError
from qkv.prepare import Prepared
from qkv.recipes import recipe
from qkv.run import RunDirectory
from qkv.settings import settings
from qkv.storage import readable_size, write_atomically
from qkv.text.languages import NAMES, parse_directions

CARD = "README.md"


@dataclass(frozen=True)
class Facts:
    """What a run does not know of itself."""

    title: str
    recipe: str
    commit: str
    hardware: str
    notes: str
    """What it is bad at, and whatever else there is to say, as Markdown."""


def write_card(model: Path, run: Path, data: Path, scores: Sequence[Path], facts: Facts) -> None:
    """Writes the card of an exported model into its directory, from its run, its data and reports of its scores."""
    opened = RunDirectory.open(run)
    config, prepared = opened.config(), Prepared.open(data)
    lines = [
        f"# {facts.title}",
        "",
        f"{_directions(config)}. {_numbers(model)}; it needs no GPU and no torch.",
        "",
        *_recipe(config, facts),
        *_training(opened, facts),
        *_data(prepared),
        *_scores(scores),
        "## What to expect",
        "",
        facts.notes.strip(),
        "",
    ]
    write_atomically(model / CARD, "\n".join(lines).encode())


def _directions(config: Config) -> str:
    text = config.text
    if text.directions is None and None in (text.source_language, text.target_language):
        return "Which languages it translates was not said when it was trained"
    ways = parse_directions(text.directions) or parse_directions(f"{text.source_language}-{text.target_language}")
    named = [f"{NAMES.get(way.source, way.source)} → {NAMES.get(way.target, way.target)}" for way in ways]
    return f"Translates {', '.join(named)}"


def _numbers(model: Path) -> str:
    size = sum(path.stat().st_size for path in model.iterdir() if path.name != CARD)
    precision = json.loads((model / "manifest.json").read_text(encoding="utf-8")).get("precision", "float32")
    return f"It takes {readable_size(size)} in {precision}"


def _recipe(config: Config, facts: Facts) -> Iterator[str]:
    yield from ("## Recipe", "", f"`{facts.recipe}`, with these settings of its own:", "")
    usual = dict(settings(recipe(facts.recipe)))
    for name, value in settings(config):
        if usual[name] != value:
            yield f"- `{name} = {'none' if value is None else value}`"
    yield ""


def _training(run: RunDirectory, facts: Facts) -> Iterator[str]:
    lines = run.log.read_text(encoding="utf-8").splitlines() if run.log.is_file() else []
    reports = [one for one in map(json.loads, lines) if one["kind"] == "train"]
    if not reports:
        raise CheckpointError(
            f"{run.log} has no report of training, which a card tells of; put the log there that the run wrote, or, if "
            "it stopped before its first report, train on with a smaller training.report_every"
        )
    last = max(reports, key=lambda one: one["step"])
    yield from (
        "## Training",
        "",
        f"{last['step']:,} steps, {last['epoch']:.2g} times through the data, in {last['seconds'] / 60:.1f} minutes on "
        f"{facts.hardware}, with qkv at commit {facts.commit}.",
        "",
    )
    _, state = run.newest_state()
    if (began_with := state.get(BEGAN_WITH)) is not None:
        step = began_with.get("step")
        whose = "an exported model." if step is None else f"another run, after step {step:,} of it."
        yield (
            f"It began with the weights of {whose} What that one had learned from is not in the table below, and its "
            "terms hold here too."
        )
        yield ""


def _data(prepared: Prepared) -> Iterator[str]:
    yield from ("## Data", "", "| corpus | pairs | times | in all directions | source | terms |")
    yield "|---|---:|---:|---:|---|---|"
    corpora = prepared.report.get("corpora", ())
    for row in corpora:
        name = ", ".join(Path(file).name.partition(".tsv")[0] for file in row["files"])
        told = [row[what] or "–" for what in ("attribution", "terms")]
        examples = f"{row['examples']:,}" if "examples" in row else "–"
        yield f"| {name} | {row['training_pairs']:,} | {row['repetitions']:g} | {examples} | {' | '.join(told)} |"
    training = prepared.report["training"]
    tokens = training["source_tokens"] + training["target_tokens"]
    # An older version counted sooner, and once.
    exact = all("examples" in row for row in corpora)
    shares = any(row["repetitions"] < 1 for row in corpora)
    drawn = "; where times is below 1, that share of what there was had been drawn" if shares else ""
    counted = "those that were learned from" if exact else "counted before those longer than a row were left out"
    yield from (
        "",
        f"Pairs are {counted}{drawn}.",
        f"In all directions together {training['pairs']:,} pairs, {tokens:,} subwords.",
        "",
    )


def _scores(reports: Sequence[Path]) -> Iterator[str]:
    rows = [row for report in reports for row in _read(report)]
    if not rows:
        return
    metrics = list(dict.fromkeys(metric for row in rows for metric in row["scores"]))
    names = {metric: _first(rows, metric)["name"] for metric in metrics}
    yield from ("## Scores", "", f"| test | direction | sentences | {' | '.join(names[one] for one in metrics)} |")
    yield "|---|---|---:|" + "---:|" * len(metrics)
    for row in rows:
        way = row["direction"] + (f" (through {row['through']})" if row["through"] else "")
        numbers = [f"{row['scores'][one]['value']:.2f}" if one in row["scores"] else "" for one in metrics]
        yield f"| {row['test']} | {way} | {row['sentences']:,} | {' | '.join(numbers)} |"
    yield ""
    signatures = dict.fromkeys(f"{one['name']}: `{one['signature']}`" for row in rows for one in row["scores"].values())
    yield from (*(f"- {signature}" for signature in signatures), "")


def _first(rows: Sequence[Mapping[str, Any]], metric: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(row["scores"][metric] for row in rows if metric in row["scores"])
    return found


def _read(report: Path) -> list[dict[str, Any]]:
    try:
        rows = json.loads(report.read_text(encoding="utf-8"))
        if not all({"test", "direction", "through", "sentences", "scores"} <= row.keys() for row in rows):
            raise ValueError("rows lack what they must have")
    except FileNotFoundError as error:
        raise ConfigError(f"no such file: {report}") from error
    except (ValueError, AttributeError, TypeError) as error:
        raise TextError(f"{report} is no report of scores; `qkv evaluate --tests … --json` writes one") from error
    return list(rows)
