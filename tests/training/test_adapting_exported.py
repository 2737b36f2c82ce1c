"""An exported model may be learned on from as a run is: all that it needs for that is in it."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from qkv import checkpoint
from qkv.config import Config
from qkv.engines.graphs import read_graph
from qkv.engines.shortlist import Shortlist
from qkv.errors import CheckpointError, ConfigError, QkvError
from qkv.export import export
from qkv.manifest import MANIFEST
from qkv.parcel.run import pack_run, unpack_run
from qkv.prepare import Prepared, prepare
from qkv.recipes.adapting import adapting
from qkv.run import RunDirectory
from qkv.settings import to_json
from qkv.training import adapted_from, train, train_prepared
from qkv.training.before import before_at
from qkv.translate import Translator
from tests import toy
from tests.toy import QUICK, Command, pairs, write_tsv
from tests.training.crashing import interrupted
from tests.vouching import vouched_for

STILL = QUICK.with_changes(training={"learning_rate": 1e-30, "steps": 2})
"""Steps that change no weight."""
SOURCES = [source for source, _ in toy.held_out()[:40]]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with toy.one_thread():
        yield


@pytest.fixture(scope="module")
def rounded(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The short run, exported as it is by default."""
    output = tmp_path_factory.mktemp("rounded") / "model"
    export(finished, output, precision="int8")
    return output


@pytest.fixture
def model(rounded: Path, tmp_path: Path) -> Path:
    """A copy of that, to be changed."""
    return shutil.copytree(rounded, tmp_path / "model")


def test_in_32_bits_it_begins_with_the_very_weights_of_the_run(tmp_path: Path, toy_data: Path, finished: Path) -> None:
    export(finished, tmp_path / "model", precision="float32")
    assert train_prepared(toy_data, tmp_path / "run", STILL, adapt=tmp_path / "model")
    assert toy.equal(toy.weights(tmp_path / "run"), toy.weights(finished))


def test_in_8_bits_each_weight_is_within_half_a_step_of_its_row(finished: Path, rounded: Path) -> None:
    own, found = toy.weights(finished), before_at(rounded).weights().tensors["weights"]
    assert own.keys() == found.keys()
    for name, weight in own.items():
        largest = weight.abs().amax(dim=-1, keepdim=True)
        step = largest / 127 if weight.dim() > 1 else 0 * largest
        assert ((found[name] - weight).abs() <= step / 2 + 1e-7).all(), name


def test_what_has_learned_nothing_translates_as_the_exported_model_does(tmp_path: Path, toy_run: Path) -> None:
    model, run = tmp_path / "model", tmp_path / "run"
    # A shortlist leaves less for the words that are on it to be likelier than.
    export(toy_run, model, precision="int8", shortlist=False)
    config = adapted_from(model, run, steps=1).with_changes(training={"learning_rate": 1e-30})
    assert train_prepared(toy_run / "data", run, config, adapt=model)
    theirs, ours = (Translator.load(one, device="cpu") for one in (model, run))
    expected, found = (one.translate(SOURCES) for one in (theirs, ours))
    assert [one.text for one in found] == [one.text for one in expected]
    likely = [
        [one.log_probability for one in who.score(SOURCES, [text[::-1] for text in SOURCES])] for who in (theirs, ours)
    ]
    np.testing.assert_allclose(likely[0], likely[1], atol=0.1)


def test_and_exported_again_it_is_made_of_the_same_numbers(tmp_path: Path, toy_data: Path, rounded: Path) -> None:
    assert train_prepared(toy_data, tmp_path / "run", STILL, adapt=rounded)
    export(tmp_path / "run", tmp_path / "again", precision="int8", shortlist=False)
    assert (np.load(tmp_path / "again" / "vectors.npy") == np.load(rounded / "vectors.npy")).all()
    one, other = (before_at(path).weights().tensors["weights"] for path in (rounded, tmp_path / "again"))
    for name, weight in one.items():
        np.testing.assert_allclose(other[name].numpy(), weight.numpy(), rtol=1e-6)


@pytest.mark.parametrize(("before", "meanwhile"), [(2, "nothing"), (2, "gone"), (6, "gone"), (6, "another")])
def test_an_interrupted_run_ends_as_if_it_had_not_been(
    tmp_path: Path,
    toy_data: Path,
    finished: Path,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: int,
    meanwhile: str,
) -> None:
    """Whatever becomes of the exported model."""
    whole, output = tmp_path / "whole", tmp_path / "output"
    assert train_prepared(toy_data, whole, adapted_from(model, whole, steps=9), adapt=model)
    interrupted(monkeypatch, toy_data, output, adapted_from(model, output, steps=9), before, adapt=model)
    if meanwhile == "gone":
        model.rename(tmp_path / "elsewhere")
    if meanwhile == "another":
        export(finished, model, precision="float32", shortlist=False)
    assert train_prepared(toy_data, output, adapted_from(model, output, steps=9), adapt=model)
    assert toy.equal(toy.weights(output), toy.weights(whole))


class TestSettings:
    """Those of the model are kept; what it was trained by was for another machine."""

    def test_small_batches_and_a_rate_of_their_own(self, rounded: Path) -> None:
        config = adapted_from(rounded, None, steps=200)
        before = RunDirectory(rounded).config()
        assert (config.model, config.text, config.data, config.search) == (
            before.model, before.text, before.data, before.search,
        )  # fmt: skip
        options = config.training
        assert (options.steps, options.warmup_steps, options.validate_every, options.save_every) == (200, 10, 20, 20)
        assert (options.optimizer, options.learning_rate) == ("adamw", adapting().learning_rate)
        assert adapted_from(rounded, None).training.steps == adapting().steps

    def test_no_device_of_the_machine_that_trained_it(self, tmp_path: Path, run: Path) -> None:
        config = RunDirectory(run).config()
        elsewhere = config.with_changes(training={"device": "cuda:3", "label_smoothing": 0.25})
        RunDirectory(run).config_file.write_text(to_json(elsewhere))
        export(run, tmp_path / "model", precision="int8", shortlist=False)
        options = adapted_from(tmp_path / "model", None).training
        assert (options.device, options.label_smoothing) == ("auto", 0.25)

    def test_a_batch_has_a_row_at_least(self, tmp_path: Path, run: Path) -> None:
        wide = RunDirectory(run).config().with_changes(data={"row_width": 3000}, training={"tokens_per_batch": 3000})
        RunDirectory(run).config_file.write_text(to_json(wide))
        export(run, tmp_path / "model", precision="int8", shortlist=False)
        assert adapted_from(tmp_path / "model", None).training.tokens_per_batch == 3000

    def test_what_began_with_one_is_learned_on_from_as_the_exported_model_was(
        self, tmp_path: Path, toy_data: Path, rounded: Path
    ) -> None:
        once = adapted_from(rounded, tmp_path / "once", steps=10)
        assert train_prepared(toy_data, tmp_path / "once", once, adapt=rounded)
        twice = adapted_from(tmp_path / "once", tmp_path / "twice", steps=10)
        assert twice == once
        assert train_prepared(toy_data, tmp_path / "twice", twice, adapt=tmp_path / "once")
        assert adapted_from(tmp_path / "gone", tmp_path / "twice", steps=10) == twice
        assert checkpoint.read_state(tmp_path / "twice" / "final")["began_with"]["step"] == 10


class TestCommand:
    def test_it_goes_some_times_through_the_text_and_goes_on_when_it_is_given_again(
        self, tmp_path: Path, model: Path, command: Command
    ) -> None:
        corpus = write_tsv(tmp_path / "new.tsv", pairs(400, seed=4))
        given = ("train", corpus, "--adapt", model, "--output", tmp_path / "run")
        assert b"training.optimizer = adamw" in command(*given, "--dry-run").out
        done = command(*given)
        assert done.code == 0, done.err
        assert "beginning with the weights in" in done.err
        last = toy.reports(tmp_path / "run", "train")[-1]
        assert 2.5 < last["epoch"] < 3.5
        assert (tmp_path / "run" / "tokenizer.model").read_bytes() == (model / "tokenizer.model").read_bytes()
        assert "began_with" in checkpoint.read_state(tmp_path / "run" / "final")
        model.rename(tmp_path / "elsewhere")
        assert "is finished" in command(*given).err
        longer = command(*given, "--set", f"training.steps={last['step'] + 2}")
        assert longer.code == 0 and f"going on after step {last['step']}" in longer.err

    def test_of_prepared_text_and_of_batches_that_are_asked_for_too(
        self, tmp_path: Path, rounded: Path, finished: Path, command: Command
    ) -> None:
        corpus = write_tsv(tmp_path / "new.tsv", pairs(400, seed=4))
        tokenizer = finished / "tokenizer.model"
        data = prepare([corpus], tmp_path / "data", QUICK, tokenizer=tokenizer).directory
        tokens = Prepared.open(data).report["training"]["target_tokens"]
        given = ("train", "--data", data, "--adapt", rounded, "--output", tmp_path / "run")
        for batch in (1024, 256):
            told = command(*given, "--set", f"training.tokens_per_batch={batch}", "--dry-run")
            assert f"training.steps = {3 * tokens // batch}\n".encode() in told.out
        refused = command(*given, "--set", "training.tokens_per_batch=auto", "--dry-run")
        assert refused.code == 2 and "give training.steps too" in refused.err
        both = ("--set", "training.tokens_per_batch=auto", "--set", "training.steps=7", "--dry-run")
        assert b"training.steps = 7\n" in command(*given, *both).out

    def test_what_is_damaged_is_told_in_one_line(self, tmp_path: Path, model: Path, command: Command) -> None:
        corpus = write_tsv(tmp_path / "new.tsv", pairs(150, seed=4))
        (model / "encoder.onnx").write_bytes(b"\x80\x04nonsense")
        for vouched in (False, True):
            if vouched:
                vouched_for(model)
            refused = command("train", corpus, "--adapt", model, "--output", tmp_path / "run")
            assert (refused.code, refused.err.count("\n")) == (3, 1)
            assert "encoder.onnx is damaged" in refused.err
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize("scale", [np.nan, np.inf])
    def test_weights_that_are_no_numbers_are_told_before_anything_is_prepared(
        self, scale: float, tmp_path: Path, model: Path, command: Command
    ) -> None:
        np.save(model / "scale.npy", np.full_like(np.load(model / "scale.npy"), scale))
        vouched_for(model)
        corpus = write_tsv(tmp_path / "new.tsv", pairs(150, seed=4))
        refused = command("train", corpus, "--adapt", model, "--output", tmp_path / "run", "--dry-run")
        assert (refused.code, refused.err.count("\n")) == (3, 1)
        assert f"{model} is damaged" in refused.err

    def test_empty_shortlists_and_settings_without_end_are_told_in_one_line(
        self, tmp_path: Path, model: Path, command: Command
    ) -> None:
        corpus = write_tsv(tmp_path / "new.tsv", pairs(150, seed=4))
        whole = (model / "shortlist.frequent.npy").read_bytes()
        np.save(model / "shortlist.frequent.npy", np.zeros(0, np.int64))
        vouched_for(model)
        refused = command("train", corpus, "--adapt", model, "--output", tmp_path / "run", "--dry-run")
        assert (refused.code, refused.err.count("\n")) == (3, 1) and "shortlist.frequent.npy is damaged" in refused.err
        (model / "shortlist.frequent.npy").write_bytes(whole)
        (model / "config.json").write_text("[" * 100_000)
        vouched_for(model)
        refused = command("train", corpus, "--adapt", model, "--output", tmp_path / "run", "--dry-run")
        assert (refused.code, refused.err.count("\n")) == (3, 1) and "config.json is damaged" in refused.err

    def test_a_tag_that_the_model_does_not_read_is_refused(
        self, tmp_path: Path, rounded: Path, command: Command
    ) -> None:
        corpus = write_tsv(tmp_path / "new.en-de.tsv", pairs(150, seed=4))
        given = ("train", corpus, "--adapt", rounded, "--output", tmp_path / "run", "--set", "text.tagged=true")
        refused = command(*given)
        assert refused.code == 2 and refused.err.endswith("there would be one: leave text.tagged out\n")

    def test_a_name_that_is_neither_is_told(self, tmp_path: Path, command: Command) -> None:
        corpus = write_tsv(tmp_path / "new.tsv", pairs(150, seed=4))
        refused = command("train", corpus, "--adapt", tmp_path, "--output", tmp_path / "run")
        assert refused.code == 2 and "or a model of `qkv export`" in refused.err


class TestText:
    def test_its_marks_are_made_plain_where_the_model_reads_plain_ones(
        self, tmp_path: Path, finished: Path, command: Command
    ) -> None:
        export(finished, tmp_path / "model", precision="int8", plain_marks=True)
        corpus = write_tsv(tmp_path / "new.tsv", [(f"“{one}”", f"“{other}”") for one, other in pairs(150, seed=4)])
        done = command("train", corpus, "--adapt", tmp_path / "model", "--output", tmp_path / "run")
        assert done.code == 0, done.err
        told = (tmp_path / "run" / "data" / "valid.source.txt").read_text(encoding="utf-8")
        assert '"' in told and "“" not in told
        data = prepare([corpus], tmp_path / "data", QUICK, tokenizer=finished / "tokenizer.model").directory
        refused = command("train", "--data", data, "--adapt", tmp_path / "model", "--output", tmp_path / "other")
        assert refused.code == 2 and "prepare it with --set data.typography=plain" in refused.err

    def test_that_was_cut_by_another_vocabulary_is_refused(self, tmp_path: Path, rounded: Path, toy_run: Path) -> None:
        with pytest.raises(ConfigError, match=r"prepare it with --tokenizer .*model/tokenizer\.model"):
            train_prepared(toy_run / "data", tmp_path / "run", QUICK, adapt=rounded)

    def test_files_of_one_pair_teach_both_directions_of_a_model_that_knows_more(
        self, tmp_path: Path, command: Command
    ) -> None:
        config = QUICK.with_changes(text={"directions": "en-de,de-en,en-fr,fr-en", "vocabulary": 330})
        files = [write_tsv(tmp_path / f"old.en-{code}.tsv", pairs(150, seed=7)) for code in ("de", "fr")]
        assert train(files, tmp_path / "before", config)
        export(tmp_path / "before", tmp_path / "model", precision="int8")
        for side, column in (("en", 0), ("fr", 1)):
            text = "".join(f"{pair[column]}\n" for pair in pairs(150, seed=3))
            (tmp_path / f"mine.{side}").write_text(text)
        given = ("train", tmp_path / "mine.en", tmp_path / "mine.fr", "--adapt", tmp_path / "model")
        assert command(*given, "--output", tmp_path / "run").code == 0
        assert RunDirectory(tmp_path / "run").config().text.directions == "en-fr,fr-en"
        assert command("translate", tmp_path / "run", "--to", "fr", given=b"basa kodu\n").code == 0


class TestRefused:
    """With no more than a line, and nothing is changed."""

    def refused(self, data: Path, model: Path, match: str, config: Config = QUICK) -> None:
        with pytest.raises((ConfigError, CheckpointError), match=match):
            train_prepared(data, model.parent / "new", config, adapt=model)
        assert not (model.parent / "new").exists()

    @pytest.mark.parametrize(
        "name", ["config.json", "tokenizer.model", "vectors.npy", "scale.npy", "step.onnx", MANIFEST]
    )
    @pytest.mark.parametrize("harm", ["gone", "changed"])
    def test_a_model_of_which_a_file_is_not_what_was_written(
        self, toy_data: Path, model: Path, name: str, harm: str
    ) -> None:
        content = bytearray((model / name).read_bytes())
        content[len(content) // 2] ^= 1
        (model / name).unlink()
        if harm == "changed":
            (model / name).write_bytes(content)
        self.refused(toy_data, model, "is damaged")

    @pytest.mark.parametrize("name", ["encoder.onnx", "vectors.npy", "config.json"])
    def test_a_pipe_in_the_place_of_a_file_that_the_manifest_does_not_tell_of(
        self, toy_data: Path, model: Path, name: str
    ) -> None:
        (model / name).unlink()
        vouched_for(model)
        os.mkfifo(model / name)
        self.refused(toy_data, model, f"{name} is damaged")

    @pytest.mark.parametrize(
        ("change", "match"),
        [
            (('"heads": 2', '"heads": 4'), "model.heads=2 does not fit"),
            (('"width": 16', '"width": 18'), "has not the weights that its config.json tells of"),
            (('"decoder_layers": 2', '"decoder_layers": 1'), "has not the weights that its config.json tells of"),
            (('"decoder_layers": 2', '"decoder_layers": 1000'), "has not the weights that its config.json tells of"),
            (('"feed_forward": "relu"', '"feed_forward": "gated"'), "is damaged|has not the weights"),
            (('"norm": "layer"', '"norm": "rms"'), "its weights do not fit"),
            (('"width": 16', '"width": 17'), "does not divide into 2 heads"),
            (('"norm": "layer"', '"norm": "none"'), "config.json is damaged"),
        ],
    )
    def test_settings_that_its_weights_do_not_have(
        self, toy_data: Path, model: Path, change: tuple[str, str], match: str
    ) -> None:
        config = (model / "config.json").read_text()
        assert change[0] in config
        (model / "config.json").write_text(config.replace(*change))
        vouched_for(model)
        self.refused(toy_data, model, match)

    def test_the_vocabulary_of_another(self, toy_data: Path, toy_run: Path, model: Path) -> None:
        shutil.copy(toy_run / "tokenizer.model", model)
        vouched_for(model)
        self.refused(toy_data, model, "its weights do not fit its config.json and tokenizer")

    def test_no_graph_ends_it_with_anything_else(self, model: Path) -> None:
        """Bytes that were changed at random, and a manifest that vouches for them."""
        generator = random.Random(1)
        sound = {name: (model / name).read_bytes() for name in ("encoder.onnx", "step.onnx")}
        # Weights may be any numbers: it is the other bytes that could do harm.
        others = {name: besides_weights(model / name) for name in sound}
        refused = 0
        for _ in range(200):
            name, content = generator.choice([*sound.items()])
            changed = bytearray(content)
            for _ in range(generator.randint(1, 3)):
                changed[generator.choice(others[name])] ^= 1 << generator.randrange(8)
            (model / name).write_bytes(changed)
            vouched_for(model)
            try:
                before_at(model).weights()
            except QkvError:
                refused += 1
            finally:
                (model / name).write_bytes(content)
        assert refused > 70


def besides_weights(graph: Path) -> list[int]:
    """The places of a graph's bytes that are in none of its large constants."""
    content, end = graph.read_bytes(), 0
    others = np.ones(len(content), bool)
    for constant in read_graph(graph).constants.values():
        if constant.nbytes > 64:
            begin = content.index(constant.tobytes(), end)
            end = begin + constant.nbytes
            others[begin:end] = False
    return np.flatnonzero(others).tolist()


class TestWhatItKnowsBesides:
    """Which subwords to expect and where words came from was learned of more text than there is now."""

    @pytest.fixture
    def begun(self, tmp_path: Path, rounded: Path) -> Path:
        few = write_tsv(tmp_path / "few.tsv", [(f"basa kodu{word}", f"udok asab{word}") for word in "abcdefghij"])
        config = adapted_from(rounded, tmp_path / "begun", steps=1)
        assert train([few], tmp_path / "begun", config, adapt=rounded)
        return tmp_path / "begun"

    def test_an_export_may_still_write_all_that_the_exported_model_could(
        self, tmp_path: Path, rounded: Path, begun: Path
    ) -> None:
        once = adapted_from(begun, tmp_path / "twice", steps=1)
        assert train_prepared(begun / "data", tmp_path / "twice", once, adapt=begun)
        vocabulary = len(np.load(rounded / "scale.npy"))
        known = Shortlist.load(rounded, vocabulary)
        for run in (begun, tmp_path / "twice"):
            export(run, tmp_path / "model", precision="int8")
            found = Shortlist.load(tmp_path / "model", vocabulary)
            for token in range(vocabulary):
                may, might = (
                    {*one.always(0).tolist(), *one.own(0, [[token]], wanted=[]).reshape(-1).tolist()}
                    for one in (found, known)
                )
                assert might <= may
            assert len(Translator.load(tmp_path / "model").translate(["basa", "kodu"])) == 2

    def test_without_one_none_is_learned_of_the_little_that_was_new(
        self, tmp_path: Path, finished: Path, toy_data: Path, command: Command
    ) -> None:
        few = write_tsv(tmp_path / "few.tsv", pairs(150, seed=6))
        assert train([few], tmp_path / "run", adapted_from(finished, tmp_path / "run", steps=1), adapt=finished)
        told = command("export", tmp_path / "run", "--output", tmp_path / "model")
        assert told.code == 0 and "no shortlist" in told.err and "--data DIR" in told.err
        assert not Shortlist.is_in(tmp_path / "model")
        assert len(Translator.load(tmp_path / "model").translate(["basa", "kodu"])) == 2
        told = command("export", tmp_path / "run", "--output", tmp_path / "model", "--data", toy_data)
        assert told.code == 0 and told.err == ""
        assert Shortlist.is_in(tmp_path / "model")

    def test_the_heads_that_align_stay_the_same(self, rounded: Path, begun: Path) -> None:
        assert (begun / "alignment.json").read_bytes() == (rounded / "alignment.json").read_bytes()

    def test_a_parcel_of_the_run_has_it(self, tmp_path: Path, begun: Path) -> None:
        pack_run(begun, tmp_path / "parcel", part_bytes=1 << 20, what="newest", precision="bfloat16")
        unpack_run(tmp_path / "parcel", tmp_path / "again")
        one, other = (checkpoint.read_tensors(run / "start", "shortlist") for run in (begun, tmp_path / "again"))
        assert one and toy.equal(one, other)

    def test_heads_that_are_none_are_told_before_anything_is_prepared(self, tmp_path: Path, model: Path) -> None:
        (model / "alignment.json").write_text("{}")
        vouched_for(model)
        with pytest.raises(CheckpointError, match=r"alignment\.json is damaged"):
            train([write_tsv(tmp_path / "new.tsv", pairs(150))], tmp_path / "run", QUICK, adapt=model)
        assert not (tmp_path / "run").exists()


def test_the_card_says_that_it_learned_from_more(tmp_path: Path, rounded: Path, command: Command) -> None:
    some = write_tsv(tmp_path / "letters.tsv", pairs(140, seed=6))
    assert train([some], tmp_path / "run", adapted_from(rounded, tmp_path / "run", steps=4), adapt=rounded)
    assert command("export", tmp_path / "run", "--output", tmp_path / "model").code == 0
    (tmp_path / "notes.md").write_text("It has learned next to nothing.\n")
    told = ("--title", "Toy", "--recipe", "tiny", "--commit", "1a2b3c4", "--hardware", "a laptop")
    where = ("--run", tmp_path / "run", "--data", tmp_path / "run" / "data", "--notes", tmp_path / "notes.md")
    ran = command("card", tmp_path / "model", *where, *told)
    assert ran.code == 0, ran.err
    card = (tmp_path / "model" / "README.md").read_text()
    assert "It began with the weights of an exported model." in card and "its terms hold here too" in card
