"""A run computes what it says: held against training written by hand, and against a language to learn."""

from __future__ import annotations

import io
import json
import math
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sacrebleu
import torch
from torch.nn import functional

from qkv import Translator, checkpoint
from qkv.config import Config
from qkv.data.batch import Packed
from qkv.data.batches import Batches, Marks
from qkv.errors import ConfigError, MissingExtraError, TrainingError
from qkv.models.build import assemble
from qkv.prepare import Prepared
from qkv.run import RunDirectory
from qkv.training import loop, objective, reports, step, train, train_prepared
from qkv.training.checkpoints import Checkpoints
from qkv.training.queue import Answer, AtOnce
from qkv.training.validation import Validation
from tests import toy
from tests.toy import QUICK
from tests.training.by_hand import train_by_hand

# Dropout would make the two draw different numbers; with a large epsilon, Adam does not blow rounding up.
STILL = QUICK.with_changes(model={"dropout": 0.0}, training={"epsilon": 0.1, "learning_rate": 0.3, "steps": 5})


def constant(step: int) -> float:
    return 0.3 * min(1.0, step / 3)


def paper(step: int) -> float:
    return 0.3 / 4 * min(1 / math.sqrt(step), step / math.sqrt(27))


@pytest.mark.parametrize(
    ("changes", "rate"),
    [
        ({}, constant),
        ({"label_smoothing": 0.0}, constant),
        ({"accumulate": 3}, constant),
        ({"accumulate": 5, "clip": 0.2}, constant),
        ({"clip": 0.2}, constant),
        ({"optimizer": "adamw", "weight_decay": 0.3}, constant),
        ({"schedule": "paper"}, paper),
        ({"tokens_per_batch": 190}, constant),
        ({"beta1": 0.5, "beta2": 0.7, "seed": 9}, constant),
    ],
)
def test_a_run_is_what_training_by_hand_gives(
    tmp_path: Path, toy_data: Path, changes: dict[str, Any], rate: Callable[[int], float]
) -> None:
    config = STILL.with_changes(training={"report_every": 1, **changes})
    train_prepared(toy_data, tmp_path / "run", config)
    expected = train_by_hand(config, toy_data, rate)
    for name, tensor in toy.weights(tmp_path / "run").items():
        torch.testing.assert_close(tensor, expected.weights[name], atol=2e-6, rtol=1e-4)
    told = toy.reports(tmp_path / "run", "train")
    assert [one["gradient_norm"] for one in told] == pytest.approx(expected.norms, rel=1e-4)
    assert [one["learning_rate"] for one in told] == pytest.approx([rate(step) for step in range(1, 6)])


def test_clipping_and_accumulating_are_not_left_out(toy_data: Path) -> None:
    """The oracle itself tells the difference: its norms are above the clip, and its batches have several rows."""
    expected = train_by_hand(STILL, toy_data, constant)
    assert min(expected.norms) > 0.2
    assert STILL.rows_a_step == 5


def test_the_moving_average_is_what_it_says(tmp_path: Path, toy_data: Path) -> None:
    # Short at first, (1 + step) / (10 + step), and from the fifth step on as long as asked for.
    config = STILL.with_changes(training={"final": "moving", "moving_average": 0.4, "steps": 7})
    train_prepared(toy_data, tmp_path / "run", config)
    expected = train_by_hand(config, toy_data, constant)
    found = toy.weights(tmp_path / "run")
    last = checkpoint.read(tmp_path / "run" / "checkpoints" / "step-0000007").tensors["weights"]
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, expected.moving[name], atol=2e-6, rtol=1e-4)
    assert not toy.equal(found, last)


def test_the_mean_of_checkpoints_is_what_it_says(tmp_path: Path, toy_data: Path) -> None:
    config = QUICK.with_changes(training={"final": "checkpoints", "average_checkpoints": 2})
    train_prepared(toy_data, tmp_path / "run", config)
    one, other = (
        checkpoint.read(tmp_path / "run" / "checkpoints" / f"step-{step:07}").tensors["weights"] for step in (8, 12)
    )
    for name, tensor in toy.weights(tmp_path / "run").items():
        torch.testing.assert_close(tensor, (one[name] + other[name]) / 2)


def test_the_last_weights_are_those_of_the_last_step(tmp_path: Path, toy_data: Path) -> None:
    train_prepared(toy_data, tmp_path / "run", QUICK)
    last = checkpoint.read(tmp_path / "run" / "checkpoints" / "step-0000012").tensors["weights"]
    assert toy.equal(toy.weights(tmp_path / "run"), last)


def test_only_the_newest_checkpoints_are_kept(tmp_path: Path, toy_data: Path) -> None:
    config = QUICK.with_changes(training={"save_every": 2, "keep_checkpoints": 3, "average_checkpoints": 1})
    train_prepared(toy_data, tmp_path / "run", config)
    names = [path.name for path in RunDirectory(tmp_path / "run").checkpoints()]
    assert names == ["step-0000008", "step-0000010", "step-0000012"]


@pytest.mark.parametrize("changes", [{}, {"final": "moving", "moving_average": 0.5}, {"schedule": "free"}])
def test_the_validation_loss_is_that_of_each_sentence_alone(
    tmp_path: Path, toy_data: Path, changes: dict[str, Any]
) -> None:
    """By the weights that the run will end with: where these are an average, that is what is validated."""
    train_prepared(toy_data, tmp_path / "run", QUICK.with_changes(training=changes))
    told = toy.reports(tmp_path / "run", "validation")[-1]
    prepared = Prepared.open(toy_data)
    tokenizer, corpus = prepared.tokenizer(), prepared.corpus("valid")
    model = assemble(QUICK.model, tokenizer.size)
    model.load_state_dict(toy.weights(tmp_path / "run"))
    model.eval()
    losses, surprises, count = 0.0, 0.0, 0
    for index in range(len(corpus)):
        source, target = corpus.pair(index)
        labels = torch.tensor([*target, tokenizer.end])
        with torch.no_grad():
            logits_RWV = model(alone([*source, tokenizer.end]), alone([tokenizer.begin, *target]))
        losses += functional.cross_entropy(logits_RWV[0], labels, label_smoothing=0.1, reduction="sum").item()
        surprises += functional.cross_entropy(logits_RWV[0], labels, reduction="sum").item()
        count += len(labels)
    assert told["loss"] == pytest.approx(losses / count, rel=1e-5)
    assert told["nll"] == pytest.approx(surprises / count, rel=1e-5)
    assert told["perplexity"] == pytest.approx(math.exp(surprises / count), rel=1e-5)


def alone(ids: list[int]) -> Packed:
    return Packed(torch.tensor([ids]), torch.arange(len(ids)).unsqueeze(0), None)


def test_the_validation_bleu_is_that_of_greedy_translations(toy_run: Path) -> None:
    told = toy.reports(toy_run, "validation")[-1]
    sources, references = (
        (toy_run / "data" / f"valid.{side}.txt").read_text().splitlines() for side in ("source", "target")
    )
    translations = [one.text for one in Translator.load(toy_run).translate(sources, beam=1)]
    assert told["bleu"] == pytest.approx(sacrebleu.corpus_bleu(translations, [references]).score, abs=0.5)


def test_tiny_learns_a_toy_language(toy_run: Path) -> None:
    """300 steps took 10 to 15 seconds on one core of the 2-core machine this was written on; 95 of 100 were right."""
    sources, references = zip(*toy.held_out(), strict=True)
    translations = [one.text for one in Translator.load(toy_run).translate(sources)]
    right = sum(text == reference for text, reference in zip(translations, references, strict=True))
    assert right > 80
    assert json.loads((toy_run / "log.jsonl").read_text().splitlines()[-1])["seconds"] < 120


def test_every_model_of_the_tables_trains(tmp_path: Path, toy_data: Path) -> None:
    """Learned positions above all: validating asks for longer translations than there are positions."""
    config = QUICK.with_changes(model={"positions": "learned", "longest": 32}, training={"steps": 2})
    train_prepared(toy_data, tmp_path / "run", config)
    assert toy.reports(tmp_path / "run", "validation")[-1]["bleu"] >= 0


def test_the_log_tells_every_report(tmp_path: Path, toy_data: Path) -> None:
    train_prepared(toy_data, tmp_path / "run", QUICK)
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [(line["kind"], line["step"]) for line in lines] == [
        ("train", 3), ("train", 6), ("validation", 6), ("train", 9), ("train", 12), ("validation", 12),
    ]  # fmt: skip
    assert lines[0].keys() == {
        "kind", "step", "loss", "nll", "tokens_per_second", "learning_rate", "gradient_norm", "epoch", "skipped",
        "seconds", "idle",
    }  # fmt: skip
    assert lines[2].keys() == {"kind", "step", "loss", "nll", "perplexity", "bleu", "samples", "seconds"}
    assert lines[-1]["loss"] < lines[0]["loss"]


def test_the_log_tells_the_share_of_the_time_that_the_device_waited(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CPU never does: here it says so of a quarter of a second before each step."""
    sound = AtOnce.put

    def put(self: AtOnce, *given: Any) -> Callable[[], Answer]:
        answer = sound(self, *given)
        return lambda: answer()._replace(idle=0.25)

    monkeypatch.setattr(AtOnce, "put", put)
    train_prepared(toy_data, tmp_path / "run", QUICK)
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    told = [line for line in lines if line["kind"] == "train"]
    seconds = np.diff([0.0, *(line["seconds"] for line in told)])
    assert [line["idle"] for line in told] == pytest.approx(3 * 0.25 / seconds)


def test_epochs_and_tokens_are_counted_as_they_are_seen(tmp_path: Path, toy_data: Path) -> None:
    """Five rows a step; the tokens of both sides, each with its end."""
    train_prepared(toy_data, tmp_path / "run", QUICK)
    corpus = Prepared.open(toy_data).corpus("train")
    batches = Batches(corpus, width=32, rows_a_step=5, marks=Marks(0, 1, 2), seed=QUICK.training.seed)
    told = toy.reports(tmp_path / "run", "train")
    assert [one["epoch"] for one in told] == [5 * step / len(batches.rows) for step in (3, 6, 9, 12)]
    first = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[0])
    seen = [batches.of_step(step) for step in range(3)]
    tokens = sum(int((side.ids_RW != 0).sum()) for batch in seen for side in (batch.source, batch.target))
    assert first["tokens_per_second"] * first["seconds"] == pytest.approx(tokens)


def test_every_step_of_every_seed_draws_random_numbers_of_its_own(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, seeds = objective.translation_loss, []

    def remember(*arguments: Any, **options: Any) -> Any:
        seeds.append(torch.initial_seed())
        return sound(*arguments, **options)

    monkeypatch.setattr(step, "translation_loss", remember)
    for seed in (1, 2):
        train_prepared(toy_data, tmp_path / f"run{seed}", QUICK.with_changes(training={"seed": seed, "steps": 6}))
    assert len(set(seeds)) == len(seeds) == 12


def test_bfloat16_is_used_where_it_is_asked_for_and_learns_the_same(tmp_path: Path, toy_data: Path) -> None:
    losses = {}
    for precision in ("float32", "bfloat16"):
        config = STILL.with_changes(training={"precision": precision, "report_every": 1})
        train_prepared(toy_data, tmp_path / precision, config)
        losses[precision] = [one["loss"] for one in toy.reports(tmp_path / precision, "train")]
        assert {tensor.dtype for tensor in toy.weights(tmp_path / precision).values()} == {torch.float32}
    assert losses["bfloat16"] != losses["float32"]
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.01)


def test_over_thirty_steps_bfloat16_and_float32_learn_alike(tmp_path: Path, toy_data: Path) -> None:
    """With Adam as it is used, from the same weights, without dropout."""
    losses = {}
    for precision in ("float32", "bfloat16"):
        config = QUICK.with_changes(
            model={"dropout": 0.0},
            training={
                "precision": precision, "steps": 30, "report_every": 1, "validate_every": 30, "save_every": 30,
                "validation_sentences": 0,
            },
        )  # fmt: skip
        train_prepared(toy_data, tmp_path / precision, config)
        losses[precision] = [one["loss"] for one in toy.reports(tmp_path / precision, "train")]
    assert losses["float32"][-1] < 0.7 * losses["float32"][0]
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.03)


def test_no_bleu_is_computed_when_none_is_asked_for(tmp_path: Path, toy_data: Path) -> None:
    train_prepared(toy_data, tmp_path / "run", QUICK.with_changes(training={"validation_sentences": 0}))
    assert "bleu" not in toy.reports(tmp_path / "run", "validation")[0]


def test_off_a_terminal_progress_is_plain_lines(
    tmp_path: Path, toy_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train_prepared(toy_data, tmp_path / "run", QUICK)
    told = capsys.readouterr().err
    assert "\r" not in told
    lines = told.splitlines()
    assert "parameters on cpu in float32" in lines[0]
    report = next(line for line in lines if line.startswith("step 6 of 12"))
    assert [part.split()[0] for part in report.split(" · ")[:3]] == ["step", "loss", "rate"]
    assert " s left · " in report
    assert " tokens/s · epoch " in report
    assert any(line.startswith("validation after step 6: loss ") and "BLEU" in line for line in lines)
    assert lines[-1] == f"finished after step 12: {tmp_path / 'run'}"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_progress_is_one_line_that_redraws_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    clock = iter(range(0, 36_000_000, 3600))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setenv("COLUMNS", "80")
    line = reports.ProgressLine(100_000, terminal)
    values = {"loss": 2.5, "learning_rate": 1e-3, "tokens_per_second": 12345.0, "epoch": 0.5}
    line.step(99_990, values, report=False)
    line.step(99_991, values, report=False)
    line.validation(99_991, {"loss": 1.0, "perplexity": 3.0})
    line.close()
    drawn = terminal.getvalue()
    assert "step 99,991 of 100,000 · loss 2.500 · rate 1.00e-03 · 9 h 0 min left · 12,345 t" in drawn
    # Only what is to stay ends its line.
    assert drawn.count("\n") == 1
    assert drawn.endswith("\r\x1b[K")


def test_elsewhere_a_line_comes_before_a_report_is_due_where_reports_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    told, now = io.StringIO(), 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    line = reports.ProgressLine(100_000, told)
    values = {"loss": 2.5, "learning_rate": 1e-3, "tokens_per_second": 700.0, "epoch": 0.5}
    for number in range(1, 31):
        now += 2.4
        line.step(number, values, report=number == 20)
    shown = [one.partition(" of ")[0] for one in told.getvalue().splitlines()]
    assert shown == ["step 13", "step 20"]
    assert " · 66 h 39 min left · " in told.getvalue().splitlines()[0]


def test_tensorboard_gets_what_the_log_gets(tmp_path: Path, toy_data: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train_prepared(toy_data, tmp_path / "run", QUICK.with_changes(training={"tensorboard": True}))
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    drawn = {one.step: one.value for one in events.Scalars("train/loss")}
    logged = {one["step"]: one["loss"] for one in toy.reports(tmp_path / "run", "train")}
    assert drawn == pytest.approx(logged)
    assert "validation/bleu" in events.Tags()["scalars"]


def test_tensorboard_that_is_not_installed_is_told(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tensorboard", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[tensorboard\]'"):
        train_prepared(toy_data, tmp_path / "run", QUICK.with_changes(training={"tensorboard": True}))


def with_validation_losses(monkeypatch: pytest.MonkeyPatch, losses: list[float]) -> None:
    coming = iter(losses)
    monkeypatch.setattr(Validation, "run", lambda *_, **__: {"loss": next(coming), "nll": 1.0, "perplexity": 2.0})


def test_training_stops_early_and_stays_stopped(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_validation_losses(monkeypatch, [3.0, 2.0, 2.5, 2.0, 1.0])
    config = QUICK.with_changes(training={"validate_every": 2, "patience": 2})
    train_prepared(toy_data, tmp_path / "run", config)
    assert checkpoint.read(tmp_path / "run" / "final").state["step"] == 8
    assert "stopped early: 2 validations in a row were no better" in capsys.readouterr().err
    train_prepared(toy_data, tmp_path / "run", config)
    assert "is finished; it stopped early; to go on, set training.patience above 2" in capsys.readouterr().err
    assert toy.reports(tmp_path / "run")[-1]["step"] == 8
    shutil.rmtree(tmp_path / "run" / "final")
    train_prepared(toy_data, tmp_path / "run", config)
    assert checkpoint.read(tmp_path / "run" / "final").state["step"] == 8
    with_validation_losses(monkeypatch, [1.0, 0.9])
    train_prepared(toy_data, tmp_path / "run", config.with_changes(training={"patience": 3}))
    assert checkpoint.read(tmp_path / "run" / "final").state["step"] == 12


@pytest.mark.parametrize("final", ["last", "checkpoints", "moving"])
@pytest.mark.parametrize("patience", [2, 3])
def test_with_patience_a_run_ends_as_if_its_best_validation_had_been_its_last(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, final: str, patience: int
) -> None:
    """With a patience of 3 the steps are done before it is at its end."""
    config = QUICK.with_changes(
        training={
            "final": final, "validate_every": 2, "save_every": 4, "keep_checkpoints": 1, "average_checkpoints": 2,
            "steps": 10, "moving_average": 0.5,
        }
    )  # fmt: skip
    train_prepared(toy_data, tmp_path / "short", config.with_changes(training={"steps": 6}))
    with_validation_losses(monkeypatch, [3.0, 2.5, 2.0, 2.5, 2.6])
    train_prepared(toy_data, tmp_path / "run", config.with_changes(training={"patience": patience}))
    assert toy.equal(toy.weights(tmp_path / "short"), toy.weights(tmp_path / "run"))
    state = checkpoint.read(tmp_path / "run" / "final").state
    assert (state["step"], state["weights_of_step"]) == (10, 6)
    kept = [checkpoint.step_of(path) for path in RunDirectory(tmp_path / "run").checkpoints()]
    assert kept == ([4, 6, 8, 10] if final == "checkpoints" else [6, 8, 10])


def test_the_best_is_kept_though_no_save_was_due_and_changes_nothing_of_the_end(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = QUICK.with_changes(
        training={
            "final": "checkpoints", "save_every": 4, "keep_checkpoints": 1, "average_checkpoints": 2, "steps": 12,
        }
    )  # fmt: skip
    train_prepared(toy_data, tmp_path / "plain", config.with_changes(training={"validate_every": 12}))
    with_validation_losses(monkeypatch, [3.0, 2.0, 2.5, 2.6])
    train_prepared(toy_data, tmp_path / "run", config.with_changes(training={"validate_every": 3}))
    kept = [checkpoint.step_of(path) for path in RunDirectory(tmp_path / "run").checkpoints()]
    assert kept == [6, 8, 12]
    assert toy.equal(toy.weights(tmp_path / "plain"), toy.weights(tmp_path / "run"))


def test_a_best_checkpoint_that_is_gone_is_told(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_validation_losses(monkeypatch, [1.0, 2.0, 3.0, 4.0])
    config = QUICK.with_changes(training={"validate_every": 2, "patience": 2, "save_every": 2})
    train_prepared(toy_data, tmp_path / "run", config)
    assert "the final weights are those of step 2" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "run" / "final")
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-0000002")
    train_prepared(toy_data, tmp_path / "run", config)
    assert "the checkpoint of the best validation, step 2, is gone" in capsys.readouterr().err
    assert checkpoint.read(tmp_path / "run" / "final").state["weights_of_step"] == 6


def test_the_state_is_json_before_the_first_validation(tmp_path: Path, toy_data: Path) -> None:
    train_prepared(toy_data, tmp_path / "run", QUICK)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    text = (tmp_path / "run" / "checkpoints" / "step-0000004" / "state.json").read_text()
    assert json.loads(text, parse_constant=refuse)["best_loss"] is None


def test_patience_starts_again_with_every_better_loss(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_validation_losses(monkeypatch, [3.0, 3.5, 2.0, 2.5, 1.0, 1.5])
    train_prepared(toy_data, tmp_path / "run", QUICK.with_changes(training={"validate_every": 2, "patience": 2}))
    assert checkpoint.read(tmp_path / "run" / "final").state["step"] == 12


def with_bad_steps(monkeypatch: pytest.MonkeyPatch, bad: set[int]) -> None:
    """Makes the loss of these steps not a number."""
    sound, number = objective.translation_loss, 0

    def sometimes(*arguments: Any, **options: Any) -> Any:
        nonlocal number
        number += 1
        loss = sound(*arguments, **options)
        return loss._replace(total=loss.total * math.nan) if number in bad else loss

    monkeypatch.setattr(step, "translation_loss", sometimes)


def test_a_step_that_is_not_finite_is_left_out_and_counted(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_bad_steps(monkeypatch, {2, 4})
    config = STILL.with_changes(training={"final": "moving", "moving_average": 0.25, "tolerated_bad_steps": 2})
    train_prepared(toy_data, tmp_path / "run", config)
    expected = train_by_hand(config, toy_data, constant, skipped=frozenset({2, 4}))
    last = checkpoint.read(tmp_path / "run" / "checkpoints" / "step-0000005").tensors
    for name, tensor in last["weights"].items():
        torch.testing.assert_close(tensor, expected.weights[name], atol=2e-6, rtol=1e-4)
        torch.testing.assert_close(last["moving"][name], expected.moving[name], atol=2e-6, rtol=1e-4)
    assert [(one["step"], one["loss"]) for one in toy.reports(tmp_path / "run", "skipped")] == [(2, "nan"), (4, "nan")]
    assert toy.reports(tmp_path / "run", "train")[-1]["skipped"] == 2
    assert math.isfinite(toy.reports(tmp_path / "run", "train")[-1]["loss"])
    told = capsys.readouterr().err
    assert "step 2 left out: loss nan" in told
    assert "2 steps were left out" in told.splitlines()[-1]


def test_a_gradient_that_is_not_finite_is_left_out_too(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = objective.translation_loss

    def steep(*arguments: Any, **options: Any) -> Any:
        loss = sound(*arguments, **options)
        loss.total.register_hook(lambda gradient: gradient * math.inf)  # type: ignore[no-untyped-call]
        return loss

    monkeypatch.setattr(step, "translation_loss", steep)
    with pytest.raises(TrainingError):
        train_prepared(toy_data, tmp_path / "run", STILL.with_changes(training={"rollbacks": 0}))
    skipped = toy.reports(tmp_path / "run", "skipped")
    assert [one["step"] for one in skipped] == [1, 2, 3]
    assert {one["gradient_norm"] for one in skipped} <= {"nan", "inf"}
    assert all(math.isfinite(float(one["loss"])) for one in skipped)


def test_too_many_bad_steps_end_the_run_and_name_their_lines(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    with_bad_steps(monkeypatch, {2, 6, 7, 8})
    with pytest.raises(TrainingError) as told:
        train_prepared(toy_data, run, QUICK.with_changes(training={"rollbacks": 0}))
    assert told.value.exit_code == 4
    named = json.loads((run / "bad-step-8.json").read_text())["lines of each step"]
    assert named.keys() == {"6", "7", "8"}
    prepared = Prepared.open(toy_data)
    batches = Batches(prepared.corpus("train"), width=32, rows_a_step=5, marks=Marks(0, 1, 2), seed=QUICK.training.seed)
    # The eighth step sees the eighth batch, which is the one of number 7.
    assert named["8"] == prepared.places(batches.lines_of_step(7))
    assert len(named["8"]) >= 5
    assert f"step 8 with {', '.join(named['8'][:5])}, …" in str(told.value)
    assert [path.name for path in RunDirectory(run).checkpoints()] == ["step-0000004"]
    assert not (run / "final").exists()


def test_after_bad_steps_the_same_run_goes_on_more_carefully(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as bad:
        with_bad_steps(bad, {6, 7, 8})
        with pytest.raises(TrainingError, match=r"Try a smaller training\.learning_rate"):
            train_prepared(toy_data, tmp_path / "run", QUICK.with_changes(training={"rollbacks": 0}))
    train_prepared(toy_data, tmp_path / "run", QUICK.with_changes(training={"learning_rate": 1e-3, "clip": 1.0}))
    assert [one["step"] for one in toy.reports(tmp_path / "run", "train")] == [3, 6, 9, 12]
    assert toy.reports(tmp_path / "run", "skipped") == []


@pytest.mark.parametrize(
    ("bad", "saved", "from_where"),
    [({7, 8, 9}, ["step-0000004"], "step 4, the last one saved"), ({1, 2, 3}, [], "the beginning")],
)
def test_among_bad_steps_nothing_is_saved(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, bad: set[int], saved: list[str], from_where: str
) -> None:
    """Whoever goes on more carefully does so from before them; the eighth step would have been saved."""
    with_bad_steps(monkeypatch, bad)
    with pytest.raises(TrainingError, match=f"the same command goes on from {from_where}"):
        config = QUICK.with_changes(training={"save_every": 4, "validate_every": 4, "rollbacks": 0})
        train_prepared(toy_data, tmp_path / "run", config)
    assert [path.name for path in RunDirectory(tmp_path / "run").checkpoints()] == saved


@pytest.mark.parametrize(("clip", "advice"), [(None, "clip=1:"), (5.0, "clip=1:"), (1.0, "clip=0.5:")])
def test_whose_run_diverges_is_told_to_clip_more_than_it_did(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, clip: float | None, advice: str
) -> None:
    with_bad_steps(monkeypatch, {1, 2, 3})
    with pytest.raises(TrainingError, match=re.escape(advice)):
        train_prepared(toy_data, tmp_path / "run", QUICK.with_changes(training={"clip": clip, "rollbacks": 0}))


def test_a_bad_step_right_after_resuming_is_only_left_out(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = QUICK.with_changes(training={"report_every": 5})
    train_prepared(toy_data, tmp_path / "run", config.with_changes(training={"steps": 4, "report_every": 50}))
    with_bad_steps(monkeypatch, {1})
    train_prepared(toy_data, tmp_path / "run", config)
    assert [(one["kind"], one["step"]) for one in toy.reports(tmp_path / "run")][:4] == [
        ("train", 4), ("validation", 4), ("skipped", 5), ("validation", 6),
    ]  # fmt: skip


def test_too_little_memory_is_told_with_what_helps(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(step, "translation_loss", full)
    with pytest.raises(TrainingError, match=r"--set training\.accumulate=2") as told:
        train_prepared(toy_data, tmp_path / "run", QUICK)
    assert [one["why"] for one in toy.reports(tmp_path / "run", "stopped")] == [str(told.value)]


def test_a_device_that_is_not_there_is_told_before_preparing(tmp_path: Path) -> None:
    corpus = toy.write_tsv(tmp_path / "corpus.tsv", toy.pairs(100))
    for name in ("cuda:99", "cuda:x", "nonsense", "meta"):
        with pytest.raises(ConfigError, match="device"):
            train([corpus], tmp_path / "run", QUICK.with_changes(training={"device": name}))
    assert not (tmp_path / "run").exists()


def test_kernels_that_cannot_be_are_told_before_preparing(tmp_path: Path) -> None:
    corpus = toy.write_tsv(tmp_path / "corpus.tsv", toy.pairs(100))
    with pytest.raises(ConfigError, match=r"training\.kernels=fast needs a GPU and Triton"):
        train([corpus], tmp_path / "run", QUICK.with_changes(training={"kernels": "fast"}))
    assert not (tmp_path / "run").exists()


def test_training_takes_names_and_says_what_was_prepared(tmp_path: Path) -> None:
    said: list[str] = []
    corpus = toy.write_tsv(tmp_path / "corpus.tsv", toy.pairs(100))
    valid = toy.write_tsv(tmp_path / "valid.tsv", toy.pairs(8, seed=2))
    config: Config = QUICK.with_changes(training={"steps": 1})
    train([str(corpus)], str(tmp_path / "run"), config, valid=[str(valid)], say=said.append)
    assert "100 pairs read" in said[0]
    assert (tmp_path / "run" / "final" / "weights.safetensors").is_file()


def test_what_is_done_beside_training_is_not_its_time(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = 0.0
    monkeypatch.setattr(
        loop, "time", SimpleNamespace(monotonic=time.monotonic, perf_counter=lambda: time.perf_counter() + late)
    )

    def slow(sound: Callable[..., Any]) -> Callable[..., Any]:
        def work(*given: Any, **options: Any) -> Any:
            nonlocal late
            late += 1000
            return sound(*given, **options)

        return work

    monkeypatch.setattr(Validation, "run", slow(Validation.run))
    monkeypatch.setattr(Checkpoints, "save", slow(Checkpoints.save))
    train_prepared(toy_data, tmp_path / "run", QUICK)
    # At the least, two validations and the saving after each of three steps.
    assert late >= 5000
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert max(line["seconds"] for line in lines if line["kind"] in {"train", "validation"}) < 1000


def test_several_processes_are_to_have_time_for_what_comes_two_steps_later() -> None:
    """All of them learn that one is to stop when a step is over that was begun before."""

    def still_to_do(step: int, count: int) -> tuple[str, ...]:
        training = SimpleNamespace(config=QUICK, step=step, processes=SimpleNamespace(count=count))
        return loop.Training._still_to_do(training)  # type: ignore[arg-type]

    assert still_to_do(4, 1) == ("step", "save")
    assert still_to_do(5, 1) == ("step", "validation", "save")
    assert still_to_do(4, 2) == ("step", "step", "validation", "save")
    assert still_to_do(10, 2) == ("step", "step", "validation", "save", "save")
