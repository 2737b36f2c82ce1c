"""A run may begin with what another has learned, and learn on from other text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qkv import checkpoint
from qkv.checkpoint import RunDirectory
from qkv.config import Config
from qkv.errors import CheckpointError, ConfigError
from qkv.parcel.run import pack_run, unpack_run
from qkv.prepare import prepare
from qkv.recipes import recipe
from qkv.training import adapted, train, train_prepared
from qkv.training.loop import _Training
from tests import toy
from tests.toy import LEARNS, QUICK, Command, pairs, write_tsv

STILL = QUICK.with_changes(training={"learning_rate": 1e-30, "steps": 2})
"""Steps that change no weight."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with toy.one_thread():
        yield


@pytest.mark.parametrize("final", ["last", "checkpoints", "moving"])
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_it_begins_with_the_final_weights_of_the_run_before(
    tmp_path: Path, toy_data: Path, finished: Path, final: str, optimizer: str, precision: str
) -> None:
    how = {"final": final, "optimizer": optimizer, "precision": precision}
    assert train_prepared(toy_data, tmp_path / "run", STILL.with_changes(training=how), adapt=finished)
    assert toy.equal(toy.weights(tmp_path / "run"), toy.weights(finished))
    # Without it, a run begins elsewhere.
    assert train_prepared(toy_data, tmp_path / "other", STILL.with_changes(training=how))
    assert not toy.equal(toy.weights(tmp_path / "other"), toy.weights(finished))


def test_free_of_a_schedule_the_mean_begins_with_them_too(tmp_path: Path, toy_data: Path, finished: Path) -> None:
    free = STILL.with_changes(training={"schedule": "free"})
    assert train_prepared(toy_data, tmp_path / "run", free, adapt=finished)
    assert toy.equal(toy.weights(tmp_path / "run"), toy.weights(finished))


def test_text_of_another_kind_is_learned_in_a_few_steps_from_a_model_that_knows_the_language(
    tmp_path: Path, toy_run: Path
) -> None:
    """The same toy language but for one word, which another stands for in all translations."""
    some = [(one, other.replace("asab", "udul")) for one, other in pairs(400, seed=9)]
    corpus = write_tsv(tmp_path / "new.tsv", some)
    config = adapted(RunDirectory(toy_run).config())
    assert train([corpus], tmp_path / "run", config.with_changes(data={"held_out": 50}), adapt=toy_run)
    from_nothing = LEARNS.with_changes(training={"steps": config.training.steps}, data={"held_out": 50})
    assert train([corpus], tmp_path / "new", from_nothing, tokenizer=toy_run / "tokenizer.model")
    learned, new = (toy.reports(tmp_path / name, "validation") for name in ("run", "new"))
    assert learned[-1]["loss"] < learned[0]["loss"] < new[-1]["loss"] / 2


@pytest.mark.parametrize("before", [2, 6])
def test_an_interrupted_run_ends_as_if_it_had_not_been(
    tmp_path: Path, toy_data: Path, finished: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """Also before its first checkpoint, and when the run before is trained on meanwhile elsewhere."""
    config = QUICK.with_changes(training={"seed": 7})
    assert train_prepared(toy_data, tmp_path / "whole", config, adapt=finished)
    update = _Training.update

    def fails(training: _Training, batch: Any) -> None:
        if training.step + 1 == before:
            raise KeyboardInterrupt
        update(training, batch)

    with monkeypatch.context() as patch:
        patch.setattr(_Training, "update", fails)
        with pytest.raises(KeyboardInterrupt):
            train_prepared(toy_data, tmp_path / "run", config, adapt=finished)
    # The settings are the same; what it began with, it has kept.
    assert train_prepared(toy_data, tmp_path / "run", config)
    assert toy.equal(toy.weights(tmp_path / "run"), toy.weights(tmp_path / "whole"))


def test_a_run_that_diverges_before_its_first_checkpoint_goes_back_to_where_it_began(
    tmp_path: Path, toy_data: Path, finished: Path
) -> None:
    wild = QUICK.with_changes(training={"learning_rate": 1e30, "save_every": 100, "steps": 8, "clip": None})
    with pytest.raises(Exception, match="after 3 rollbacks"):
        train_prepared(toy_data, tmp_path / "run", wild, adapt=finished)
    begun = checkpoint.read(tmp_path / "run" / "start").tensors["weights"]
    assert toy.equal(begun, toy.weights(finished))


class TestRefused:
    """Before anything is learned, and nothing is changed."""

    def refused(self, data: Path, run: Path, config: Config, adapt: Path, match: str) -> None:
        with pytest.raises((ConfigError, CheckpointError), match=match):
            train_prepared(data, run, config, adapt=adapt)

    def test_another_model(self, tmp_path: Path, toy_data: Path, finished: Path) -> None:
        wider = QUICK.with_changes(model={"hidden": 32})
        self.refused(toy_data, tmp_path / "run", wider, finished, "do not fit model.hidden from 24 to 32")
        assert not (tmp_path / "run").exists()

    def test_and_dropout_is_not_another_model(self, tmp_path: Path, toy_data: Path, finished: Path) -> None:
        assert train_prepared(toy_data, tmp_path / "run", STILL.with_changes(model={"dropout": 0.3}), adapt=finished)

    def test_itself(self, toy_data: Path, run: Path) -> None:
        self.refused(toy_data, run, QUICK, run, "cannot adapt itself")

    def test_what_is_no_run(self, tmp_path: Path, toy_data: Path, exported: Path) -> None:
        self.refused(toy_data, tmp_path / "run", QUICK, tmp_path / "nowhere", "no such run directory")
        self.refused(toy_data, tmp_path / "run", QUICK, exported, "not an exported model")

    def test_a_run_without_weights(self, tmp_path: Path, toy_data: Path, run: Path) -> None:
        for part in ("final", "checkpoints"):
            shutil.rmtree(run / part)
        self.refused(toy_data, tmp_path / "new", QUICK, run, "has no weights that could be learned on from")

    def test_another_vocabulary(self, tmp_path: Path, finished: Path) -> None:
        corpus = write_tsv(tmp_path / "corpus.tsv", pairs(150, seed=5))
        other = prepare([corpus], tmp_path / "data", QUICK).directory
        self.refused(other, tmp_path / "run", QUICK, finished, "prepare it with --tokenizer .*tokenizer.model")

    def test_a_run_that_began_otherwise(self, tmp_path: Path, toy_data: Path, finished: Path, run: Path) -> None:
        self.refused(toy_data, run, QUICK, finished, "did not begin with the weights of another run")
        assert train_prepared(toy_data, tmp_path / "begun", STILL, adapt=finished)
        self.refused(toy_data, tmp_path / "begun", STILL, tmp_path / "begun" / ".." / "begun", "adapt itself")
        train_prepared(toy_data, tmp_path / "longer", QUICK.with_changes(training={"steps": 3}))
        self.refused(toy_data, tmp_path / "begun", STILL, tmp_path / "longer", "began with other weights")

    def test_weights_that_were_damaged_since(self, tmp_path: Path, toy_data: Path, finished: Path) -> None:
        assert train_prepared(toy_data, tmp_path / "run", STILL, adapt=finished)
        shutil.rmtree(tmp_path / "run" / "checkpoints")
        shutil.rmtree(tmp_path / "run" / "final")
        (tmp_path / "run" / "start" / "weights.safetensors").write_bytes(b"damaged")
        with pytest.raises(CheckpointError, match="and begin again"):
            train_prepared(toy_data, tmp_path / "run", STILL)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two directions."""
    folder = tmp_path_factory.mktemp("both")
    config = QUICK.with_changes(text={"directions": "en-de,de-en"})
    train([write_tsv(folder / "corpus.en-de.tsv", pairs(120))], folder / "run", config)
    return folder / "run"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one."""
    folder = tmp_path_factory.mktemp("one")
    train([write_tsv(folder / "corpus.en-de.tsv", pairs(120))], folder / "run", QUICK)
    return folder / "run"


class TestLanguages:
    """A model of several directions reads a tag before each source, and goes on to."""

    def test_files_of_one_pair_teach_both_directions_of_a_model_that_knows_both(
        self, tmp_path: Path, both: Path
    ) -> None:
        corpus = write_tsv(tmp_path / "new.en-de.tsv", pairs(150, seed=3))
        assert train([corpus], tmp_path / "run", RunDirectory(both).config(), adapt=both)
        assert RunDirectory(tmp_path / "run").config().text.directions == "en-de,de-en"

    def test_one_direction_alone_would_have_no_tag(self, tmp_path: Path, both: Path) -> None:
        corpus = write_tsv(tmp_path / "new.en-de.tsv", pairs(150, seed=3))
        config = RunDirectory(both).config().with_changes(text={"directions": "en-de"})
        with pytest.raises(ConfigError, match="with text of two of them or more"):
            train([corpus], tmp_path / "run", config, adapt=both)

    def test_and_several_would_have_one_that_a_model_of_one_direction_has_not(self, tmp_path: Path, one: Path) -> None:
        corpus = write_tsv(tmp_path / "new.en-de.tsv", pairs(150, seed=3))
        config = RunDirectory(one).config().with_changes(text={"directions": "en-de,de-en"})
        with pytest.raises(ConfigError, match="a model of one direction with text of that one"):
            train([corpus], tmp_path / "run", config, adapt=one)

    def test_prepared_text_of_other_languages_is_refused(self, tmp_path: Path, one: Path) -> None:
        corpus = write_tsv(tmp_path / "new.en-fr.tsv", pairs(150, seed=3))
        data = prepare([corpus], tmp_path / "data", QUICK).directory
        with pytest.raises(ConfigError, match=r"the target language of .* is de, and that of the new text fr"):
            train_prepared(data, tmp_path / "run", QUICK, adapt=one)


@pytest.mark.parametrize(
    ("name", "peak"),
    [("base", 512**-0.5 * 4000**-0.5), ("fast", recipe("fast").training.learning_rate)],
)
def test_a_tenth_of_the_steps_at_a_tenth_of_the_peak_is_what_it_goes_on_with(name: str, peak: float) -> None:
    before = recipe(name)
    options = adapted(before).training
    assert options.steps == before.training.steps // 10
    assert options.learning_rate == pytest.approx(peak / 10)
    assert (options.schedule, options.decay_from) == ("linear", 0.0)
    assert options.warmup_steps < options.steps / 10 < before.training.steps / 10
    assert options.save_every * 5 <= options.steps / 8, "the mean of the last checkpoints is one of the end"
    assert options.validate_every <= options.steps / 10
    assert adapted(before).model == before.model


def test_a_parcel_of_an_adapted_run_has_what_it_began_with(tmp_path: Path, toy_data: Path, finished: Path) -> None:
    assert train_prepared(toy_data, tmp_path / "run", STILL, adapt=finished)
    pack_run(tmp_path / "run", tmp_path / "parcel", part_bytes=1 << 20, what="newest", precision="float32")
    unpack_run(tmp_path / "parcel", tmp_path / "again")
    assert toy.equal(checkpoint.read(tmp_path / "again" / "start").tensors["weights"], toy.weights(finished))


def test_the_command_takes_vocabulary_and_settings_from_the_run(
    tmp_path: Path, finished: Path, command: Command
) -> None:
    corpus = write_tsv(tmp_path / "new.tsv", pairs(150, seed=4))
    given = ("train", corpus, "--adapt", finished, "--output", tmp_path / "run")
    told = command(*given, "--dry-run")
    assert told.code == 0 and b"model.width = 16" in told.out and b"training.steps = 1\n" in told.out
    done = command(*given, "--set", "training.steps=5", "--set", "model.dropout=0.2")
    assert done.code == 0, done.err
    assert "beginning with the weights in" in done.err
    config = RunDirectory(tmp_path / "run").config()
    assert (config.training.steps, config.model.dropout, config.training.schedule) == (5, 0.2, "linear")
    assert (tmp_path / "run" / "tokenizer.model").read_bytes() == (finished / "tokenizer.model").read_bytes()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--recipe", "base"], "--recipe: settled by"),
        (["--tokenizer", "some.model"], "--tokenizer: settled by"),
        (["--set", "model.width=32"], "do not fit model.width from 16 to 32"),
    ],
)
def test_what_the_run_has_settled_is_not_asked_for_again(
    tmp_path: Path, finished: Path, command: Command, more: list[str], says: str
) -> None:
    corpus = write_tsv(tmp_path / "new.tsv", pairs(150, seed=4))
    refused = command("train", corpus, "--adapt", finished, "--output", tmp_path / "run", *more)
    assert refused.code == 2 and says in refused.err
    assert not (tmp_path / "run").exists()
