"""A run may begin with what another has learned, and learn on from other text."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qkv import checkpoint
from qkv.checkpoint import Saved
from qkv.config import Config
from qkv.errors import CheckpointError, ConfigError, Stopped, TrainingError
from qkv.parcel.run import pack_run, unpack_run
from qkv.prepare import prepare
from qkv.recipes import recipe
from qkv.run import RunDirectory
from qkv.training import adapted, adapted_from, train, train_prepared
from qkv.training.learner import Learner
from qkv.training.validation import Validation
from qkv.translate import Translator
from tests import toy
from tests.toy import LEARNS, QUICK, Command, pairs, write_tsv
from tests.training.crashing import interrupted

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


@pytest.mark.parametrize(
    ("before", "meanwhile"), [(2, "nothing"), (2, "gone"), (6, "nothing"), (6, "gone"), (6, "trained on")]
)
def test_an_interrupted_run_ends_as_if_it_had_not_been(
    tmp_path: Path, toy_data: Path, run: Path, monkeypatch: pytest.MonkeyPatch, before: int, meanwhile: str
) -> None:
    """Whatever becomes of the run before; the settings are those that it had."""
    assert train_prepared(toy_data, tmp_path / "whole", adapted_from(run, tmp_path / "whole", steps=9), adapt=run)
    output = tmp_path / "output"
    interrupted(monkeypatch, toy_data, output, adapted_from(run, output, steps=9), before, adapt=run)
    if meanwhile == "gone":
        run.rename(tmp_path / "elsewhere")
    if meanwhile == "trained on":
        train_prepared(toy_data, run, QUICK.with_changes(training={"steps": 20}))
    assert train_prepared(toy_data, output, adapted_from(run, output, steps=9), adapt=run)
    assert toy.equal(toy.weights(output), toy.weights(tmp_path / "whole"))


def test_what_has_learned_nothing_yet_may_begin_with_another_run(
    tmp_path: Path, toy_data: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_prepared(toy_data, tmp_path / "longer", QUICK.with_changes(training={"steps": 3}))
    interrupted(monkeypatch, toy_data, tmp_path / "run", STILL, 1, adapt=finished)
    assert train_prepared(toy_data, tmp_path / "run", STILL, adapt=tmp_path / "longer")
    assert toy.equal(toy.weights(tmp_path / "run"), toy.weights(tmp_path / "longer"))


def test_a_run_that_diverges_before_its_first_checkpoint_goes_back_to_where_it_began(
    tmp_path: Path, toy_data: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []
    real = Learner.begin.__func__  # type: ignore[attr-defined]

    def begin(cls: Any, config: Config, vocabulary: int, processes: Any, start: Saved | None = None) -> Learner:
        learner: Learner = real(cls, config, vocabulary, processes, start)
        begun.append({name: tensor.detach().clone() for name, tensor in learner.weights.exact.items()})
        return learner

    monkeypatch.setattr(Learner, "begin", classmethod(begin))
    wild = QUICK.with_changes(training={"learning_rate": 1e30, "save_every": 100, "steps": 8, "clip": None})
    with pytest.raises(TrainingError, match="after 3 rollbacks"):
        train_prepared(toy_data, tmp_path / "run", wild, adapt=finished)
    assert len(begun) == 4
    assert all(toy.equal(one, toy.weights(finished)) for one in begun)


class TestBeforeTheFirstStep:
    """It is told how good the weights are that it begins with."""

    def test_what_the_run_before_could_do(
        self, tmp_path: Path, toy_data: Path, finished: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert train_prepared(toy_data, tmp_path / "run", QUICK, adapt=finished)
        before, *after = toy.reports(tmp_path / "run", "validation")
        said = capsys.readouterr().err
        assert f"validation before the first step: loss {before['loss']:.3f}" in said
        assert "validation after step 6" in said
        assert train_prepared(toy_data, tmp_path / "still", STILL, adapt=finished)
        assert toy.reports(tmp_path / "still", "validation")[-1] == {**before, "step": STILL.training.steps}
        assert (before["step"], [one["step"] for one in after]) == (0, [6, 12])

    def test_it_is_no_checkpoint_and_no_part_of_what_the_run_ends_with(
        self, tmp_path: Path, toy_data: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Not even where all that was learned is worse: what it began with is still there, in the run before."""
        interrupted(monkeypatch, toy_data, tmp_path / "run", QUICK, 1, adapt=finished)
        assert not RunDirectory(tmp_path / "run").checkpoints()
        patient = QUICK.with_changes(training={"learning_rate": 0.5, "patience": 2, "save_every": 6})
        assert train_prepared(toy_data, tmp_path / "worse", patient, adapt=finished)
        before, *after = toy.reports(tmp_path / "worse", "validation")
        assert all(one["loss"] > before["loss"] for one in after)
        assert 0 not in map(checkpoint.step_of, RunDirectory(tmp_path / "worse").checkpoints())

    def test_a_signal_does_not_wait_for_it_and_it_is_told_later(
        self, tmp_path: Path, toy_data: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sound = Validation._quality

        def signalled(*given: Any) -> dict[str, Any]:
            os.kill(os.getpid(), signal.SIGTERM)
            return sound(*given)

        with monkeypatch.context() as patch:
            patch.setattr(Validation, "_quality", signalled)
            for _ in range(2):
                with pytest.raises(Stopped, match="SIGTERM before the first step"):
                    train_prepared(toy_data, tmp_path / "run", QUICK, adapt=finished)
        assert train_prepared(toy_data, tmp_path / "run", QUICK, adapt=finished)
        assert train_prepared(toy_data, tmp_path / "whole", QUICK, adapt=finished)
        assert toy.equal(toy.weights(tmp_path / "run"), toy.weights(tmp_path / "whole"))
        assert toy.reports(tmp_path / "run") == toy.reports(tmp_path / "whole")

    def test_weights_that_are_no_numbers_lead_nowhere(self, tmp_path: Path, toy_data: Path, run: Path) -> None:
        saved = checkpoint.read(run / "final")
        lost = {name: tensor * float("nan") for name, tensor in saved.tensors["weights"].items()}
        shutil.rmtree(run / "final")
        checkpoint.write(run / "final", {"weights": lost}, saved.state)
        with pytest.raises(TrainingError, match="start is not finite: nothing can be learned from there"):
            train_prepared(toy_data, tmp_path / "new", QUICK, adapt=run)


class TestRefused:
    """Before anything is learned, and nothing is changed."""

    def refused(self, data: Path, run: Path, config: Config, adapt: Path, match: str) -> None:
        with pytest.raises((ConfigError, CheckpointError), match=match):
            train_prepared(data, run, config, adapt=adapt)

    def test_another_model(self, tmp_path: Path, toy_data: Path, finished: Path) -> None:
        wider = QUICK.with_changes(model={"hidden": 32})
        self.refused(
            toy_data,
            tmp_path / "run",
            wider,
            finished,
            "model.hidden=32 does not fit .*'s weights, which have 24; leave it out",
        )
        assert not (tmp_path / "run").exists()

    def test_and_dropout_is_not_another_model(self, tmp_path: Path, toy_data: Path, finished: Path) -> None:
        assert train_prepared(toy_data, tmp_path / "run", STILL.with_changes(model={"dropout": 0.3}), adapt=finished)

    def test_itself(self, toy_data: Path, run: Path) -> None:
        self.refused(toy_data, run, QUICK, run, "cannot adapt itself")

    def test_what_is_no_run(self, tmp_path: Path, toy_data: Path) -> None:
        self.refused(toy_data, tmp_path / "run", QUICK, tmp_path / "nowhere", "no such run directory")

    def test_a_run_without_weights(self, tmp_path: Path, toy_data: Path, run: Path) -> None:
        for part in ("final", "checkpoints"):
            shutil.rmtree(run / part)
        self.refused(toy_data, tmp_path / "new", QUICK, run, "has no weights that could be learned on from")

    def test_another_vocabulary(self, tmp_path: Path, finished: Path) -> None:
        corpus = write_tsv(tmp_path / "corpus.tsv", pairs(150, seed=5))
        other = prepare([corpus], tmp_path / "data", QUICK).directory
        self.refused(other, tmp_path / "run", QUICK, finished, "prepare it with --tokenizer .*tokenizer.model")

    def test_a_run_that_began_otherwise(self, toy_data: Path, finished: Path, run: Path) -> None:
        self.refused(toy_data, run, QUICK, finished, "did not begin with the weights of another")

    def test_weights_that_were_damaged(self, tmp_path: Path, toy_data: Path, run: Path) -> None:
        """Before anything is prepared or written."""
        with (run / "final" / "weights.safetensors").open("ab") as file:
            file.write(b"more")
        self.refused(toy_data, tmp_path / "new", QUICK, run, "is damaged")
        with pytest.raises(CheckpointError, match="is damaged"):
            train([write_tsv(tmp_path / "new.tsv", pairs(150))], tmp_path / "new", QUICK, adapt=run)
        assert not (tmp_path / "new").exists()

    def test_a_run_whose_settings_were_changed_since(self, tmp_path: Path, toy_data: Path, run: Path) -> None:
        config = (run / "config.json").read_text()
        (run / "config.json").write_text(config.replace('"heads": 2', '"heads": 4'))
        other = QUICK.with_changes(model={"heads": 4})
        self.refused(toy_data, tmp_path / "new", other, run, "was changed since final was written: model.heads from 2")

    def test_text_that_is_written_the_other_way(self, tmp_path: Path, finished: Path) -> None:
        corpus = write_tsv(tmp_path / "corpus.tsv", pairs(150, seed=5))
        config = QUICK.with_changes(text={"right_to_left": True})
        data = prepare([corpus], tmp_path / "data", config, tokenizer=finished / "tokenizer.model").directory
        self.refused(data, tmp_path / "run", config, finished, "writes its translations forwards")

    def test_text_whose_marks_are_read_otherwise(self, tmp_path: Path, finished: Path) -> None:
        corpus = write_tsv(tmp_path / "corpus.tsv", pairs(150, seed=5))
        config = QUICK.with_changes(data={"typography": "plain"})
        data = prepare([corpus], tmp_path / "data", config, tokenizer=finished / "tokenizer.model").directory
        self.refused(data, tmp_path / "run", config, finished, "prepare it with --set data.typography=kept")


class TestBegun:
    """What is in a run that has begun with another's weights."""

    @pytest.fixture
    def begun(self, tmp_path: Path, toy_data: Path, finished: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """It has learned nothing yet."""
        interrupted(monkeypatch, toy_data, tmp_path / "begun", STILL, 1, adapt=finished)
        return tmp_path / "begun"

    def test_nobody_begins_anew_in_it_unasked(self, toy_data: Path, begun: Path) -> None:
        with pytest.raises(ConfigError, match="was begun with --adapt; give that again"):
            train_prepared(toy_data, begun, STILL)

    @pytest.mark.parametrize("change", ["vocabulary", "heads"])
    def test_weights_that_do_not_fit_are_not_begun_with(
        self, tmp_path: Path, toy_data: Path, begun: Path, change: str
    ) -> None:
        corpus = write_tsv(tmp_path / "corpus.tsv", pairs(150, seed=5))
        other = prepare([corpus], tmp_path / "data", QUICK).directory if change == "vocabulary" else toy_data
        config = STILL.with_changes(model={"heads": 4}) if change == "heads" else STILL
        with pytest.raises(CheckpointError, match=f"do not fit .*{change}.*; remove .* and begin again"):
            train_prepared(other, begun, config, adapt=tmp_path / "gone")

    def test_nor_damaged_ones(self, tmp_path: Path, toy_data: Path, begun: Path) -> None:
        (begun / "start" / "weights.safetensors").write_bytes(b"damaged")
        with pytest.raises(CheckpointError, match="and begin again"):
            train_prepared(toy_data, begun, STILL, adapt=tmp_path / "gone")

    def test_and_after_a_checkpoint_they_are_needed_no_more(self, toy_data: Path, finished: Path, begun: Path) -> None:
        assert train_prepared(toy_data, begun, STILL, adapt=finished)
        (begun / "start" / "weights.safetensors").write_bytes(b"damaged")
        longer = STILL.with_changes(training={"steps": 4})
        assert train_prepared(toy_data, begun, longer, adapt=finished)
        shutil.rmtree(begun / "start")
        assert train_prepared(toy_data, begun, longer.with_changes(training={"steps": 6}))
        assert checkpoint.read_state(begun / "final")["began_with"]["step"] == 12


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

    def test_one_direction_alone_keeps_its_tag(self, tmp_path: Path, both: Path, command: Command) -> None:
        """So it translates as before, and nobody has to say which of one direction is meant."""
        corpus = write_tsv(tmp_path / "new.en-de.tsv", pairs(150, seed=3))
        given = ("train", corpus, "--adapt", both, "--output", tmp_path / "run", "--directions", "en-de")
        still = ("--set", "training.steps=2", "--set", "training.learning_rate=1e-30")
        assert b"text.tagged = True" in command(*given, *still, "--dry-run").out
        assert command(*given, *still).code == 0
        text = RunDirectory(tmp_path / "run").config().text
        assert (text.directions, text.tagged) == ("en-de", True)
        expected = Translator.load(both).between("en", "de").translate(["basa kodu"])[0]
        found = Translator.load(tmp_path / "run").translate(["basa kodu"])[0]
        assert found.text == expected.text
        assert found.score == pytest.approx(expected.score)
        # What two models have in common may be one direction, too.
        for paths in ((tmp_path / "run", both), (both, tmp_path / "run")):
            assert Translator.load(*paths).translate(["basa kodu"])[0].score == pytest.approx(expected.score)
        longer = command(*given, "--set", "training.steps=4", "--set", "training.learning_rate=1e-30")
        assert longer.code == 0 and "going on after step 2" in longer.err

    def test_and_may_be_taught_both_again(self, tmp_path: Path, both: Path) -> None:
        corpus = write_tsv(tmp_path / "new.en-de.tsv", pairs(150, seed=3))
        config = RunDirectory(both).config()
        one = config.with_changes(text={"directions": "en-de"})
        assert train([corpus], tmp_path / "one", one, adapt=both)
        known = RunDirectory(tmp_path / "one").config()
        for name, directions in (("again", "en-de"), ("two", "en-de,de-en")):
            asked = known.with_changes(text={"directions": directions})
            assert train([corpus], tmp_path / name, asked, adapt=tmp_path / "one")
            assert RunDirectory(tmp_path / name).config().text.directions == directions

    def test_prepared_text_of_one_direction_is_asked_to_have_it(
        self, tmp_path: Path, both: Path, command: Command
    ) -> None:
        corpus = write_tsv(tmp_path / "new.en-de.tsv", pairs(150, seed=3))
        given = ("prepare", corpus, "--tokenizer", both / "tokenizer.model", "--set", "text.vocabulary=320")
        assert command(*given, "--output", tmp_path / "data").code == 0
        adapt = ("train", "--adapt", both, "--output", tmp_path / "run", "--dry-run", "--data")
        refused = command(*adapt, tmp_path / "data")
        assert refused.code == 2 and "prepare it with --set text.tagged=true" in refused.err
        assert command(*given, "--set", "text.tagged=true", "--output", tmp_path / "tagged").code == 0
        assert command(*adapt, tmp_path / "tagged").code == 0

    def test_and_several_would_have_one_that_a_model_of_one_direction_has_not(self, tmp_path: Path, one: Path) -> None:
        corpus = write_tsv(tmp_path / "new.en-de.tsv", pairs(150, seed=3))
        config = RunDirectory(one).config().with_changes(text={"directions": "en-de,de-en"})
        with pytest.raises(ConfigError, match="translates in one direction only; adapt it with text of that direction"):
            train([corpus], tmp_path / "run", config, adapt=one)

    @pytest.mark.parametrize(
        ("named", "says"),
        [
            ("en-fr", "the target language of .* is de, and that of the new text fr"),
            ("fr-de", "the source language of .* is en, and that of the new text fr"),
        ],
    )
    def test_prepared_text_of_other_languages_is_refused(
        self, tmp_path: Path, one: Path, named: str, says: str
    ) -> None:
        corpus = write_tsv(tmp_path / f"new.{named}.tsv", pairs(150, seed=3))
        data = prepare([corpus], tmp_path / "data", QUICK).directory
        with pytest.raises(ConfigError, match=says):
            train_prepared(data, tmp_path / "run", QUICK, adapt=one)

    def test_so_are_files_that_are_named_so(self, tmp_path: Path, one: Path) -> None:
        some = pairs(150, seed=3)
        corpus = write_tsv(tmp_path / "new.en-fr.tsv", some)
        with pytest.raises(ConfigError, match=r"new.en-fr.tsv is named as en-fr, and .* translates en to de"):
            train([corpus], tmp_path / "run", RunDirectory(one).config(), adapt=one)
        (tmp_path / "mine.en").write_text("".join(f"{source}\n" for source, _ in some))
        (tmp_path / "mine.fr").write_text("".join(f"{target}\n" for _, target in some))
        with pytest.raises(ConfigError, match=r"mine\.en is named as en-fr"):
            train([tmp_path / "mine.en", tmp_path / "mine.fr"], tmp_path / "run", RunDirectory(one).config(), adapt=one)
        assert not (tmp_path / "run").exists()

    def test_the_other_way_round_they_are_turned(self, tmp_path: Path, one: Path) -> None:
        corpus = write_tsv(tmp_path / "new.de-en.tsv", [(target, source) for source, target in pairs(150, seed=3)])
        assert train([corpus], tmp_path / "run", RunDirectory(one).config(), adapt=one)
        source = (tmp_path / "run" / "data" / "valid.source.txt").read_text().splitlines()[0]
        assert source in dict(pairs(150, seed=3))


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


def test_how_often_is_told_and_saved_fits_the_steps_that_are_asked_for() -> None:
    options = adapted(recipe("base"), steps=300).training
    assert (options.steps, options.warmup_steps, options.validate_every, options.save_every) == (300, 15, 30, 7)


def test_what_only_a_beginning_needs_is_left_out() -> None:
    config = recipe("fast").with_changes(training={"ramp_steps": 50, "dropout_after": 70})
    options = adapted(config).training
    assert (options.ramp_steps, options.dropout_after) == (0, 0)


def test_a_run_that_ended_in_its_warm_up_has_a_peak_too() -> None:
    config = recipe("fast").with_changes(training={"steps": 20, "warmup_steps": 30, "learning_rate": 1e-3})
    assert adapted(config).training.learning_rate == pytest.approx(1e-4)


def test_an_adapted_run_is_learned_on_from_as_the_first_was(tmp_path: Path, toy_data: Path, finished: Path) -> None:
    once = adapted_from(finished, tmp_path / "once", steps=40)
    assert train_prepared(toy_data, tmp_path / "once", once, adapt=finished)
    twice = adapted_from(tmp_path / "once", tmp_path / "twice")
    assert twice.training.learning_rate == once.training.learning_rate == pytest.approx(1e-3)
    assert twice.training.steps == QUICK.training.steps // 10
    assert train_prepared(toy_data, tmp_path / "twice", twice, adapt=tmp_path / "once")
    assert adapted_from(tmp_path / "gone", tmp_path / "twice") == twice


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


def test_the_same_command_goes_on_without_the_run_before(tmp_path: Path, run: Path, command: Command) -> None:
    """Text that was prepared is not prepared again, though the vocabulary was taken from elsewhere then."""
    corpus = write_tsv(tmp_path / "new.tsv", pairs(150, seed=4))
    given = ("train", corpus, "--adapt", run, "--output", tmp_path / "output", "--set")
    assert command(*given, "training.steps=4").code == 0
    run.rename(tmp_path / "elsewhere")
    longer = command(*given, "training.steps=8")
    assert longer.code == 0, longer.err
    assert "holds this already" in longer.err and "going on after step 4" in longer.err


def test_prepared_text_is_learned_on_from_too(tmp_path: Path, toy_data: Path, finished: Path, command: Command) -> None:
    given = ("train", "--data", toy_data, "--adapt", finished, "--output", tmp_path / "run")
    assert command(*given, "--dry-run").code == 0
    assert not (tmp_path / "run").exists()
    assert command(*given, "--set", "training.steps=2", "--set", "training.learning_rate=1e-30").code == 0
    assert toy.equal(toy.weights(tmp_path / "run"), toy.weights(finished))


def test_a_plan_refuses_what_training_would(toy_data: Path, finished: Path, toy_run: Path, command: Command) -> None:
    told = command("train", "--data", toy_data, "--adapt", toy_run, "--dry-run")
    assert told.code == 2 and "the text was prepared with another vocabulary" in told.err
    told = command("train", "--data", toy_data, "--adapt", finished, "--dry-run", "--set", "model.heads=4")
    assert told.code == 2 and "model.heads=4 does not fit" in told.err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--recipe", "base"], "--recipe: settled by"),
        (["--tokenizer", "some.model"], "--tokenizer: settled by"),
        (["--set", "model.width=32"], "model.width=32 does not fit"),
    ],
)
def test_what_the_run_has_settled_is_not_asked_for_again(
    tmp_path: Path, finished: Path, command: Command, more: list[str], says: str
) -> None:
    corpus = write_tsv(tmp_path / "new.tsv", pairs(150, seed=4))
    refused = command("train", corpus, "--adapt", finished, "--output", tmp_path / "run", *more)
    assert refused.code == 2 and says in refused.err
    assert not (tmp_path / "run").exists()
