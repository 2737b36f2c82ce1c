"""A student learns what its teacher says, whatever happens on the way."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qkv
from qkv import Translator
from qkv.cli import main
from qkv.config import DataConfig
from qkv.distill import Distilling, distill, teaching
from qkv.distill.data import fault
from qkv.distill.parts import Parts, Taught
from qkv.distill.request import Lesson, Teacher
from qkv.distill.teaching import load_teacher, translate_sources
from qkv.errors import ConfigError, NoTimeError
from qkv.evaluate.scores import sentence_bleu
from qkv.prepare import Prepared, prepare
from qkv.prepare.directory import MANIFEST
from qkv.training import train, train_prepared
from tests import toy
from tests.forked import signalled
from tests.toy import QUICK, Command

SHALLOW = toy.LEARNS.with_changes(
    model={"decoder_layers": 1, "hidden": 128, "positions": "rotary", "dropout": 0.0},
    training={"steps": 240, "label_smoothing": 0.0, "validate_every": 240, "validation_sentences": 0},
)
BRIEF = QUICK.with_changes(model={"decoder_layers": 1}, training={"steps": 4, "validate_every": 4})


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with toy.one_thread():
        yield


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory, toy_run: Path) -> Path:
    """120 pairs, prepared with the teacher's subwords; some of their targets are not what the teacher would say."""
    folder = tmp_path_factory.mktemp("few")
    wrong = [(source, source) if number % 3 else (source, target) for number, (source, target) in enumerate(PAIRS)]
    corpus = toy.write_tsv(folder / "corpus.tsv", wrong)
    config = toy.LEARNS.with_changes(data={"held_out": 20, "keep_copies": True})
    return prepare([corpus], folder / "data", config, tokenizer=toy_run / "tokenizer.model").directory


PAIRS = toy.pairs(120, seed=7)


def contents(directory: Path) -> dict[str, str]:
    """The files of a directory and what is in them."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def taught(run: Path) -> list[tuple[str, str]]:
    """The texts of the pairs that a student learned from."""
    prepared = Prepared.open(run / "data")
    corpus, tokenizer = prepared.corpus("train"), prepared.tokenizer()
    return [
        (tokenizer.decode(source), tokenizer.decode(target))
        for source, target in (corpus.pair(number) for number in range(len(corpus)))
    ]


def test_a_student_says_what_its_teacher_says(toy_run: Path, tmp_path: Path) -> None:
    distill(toy_run, toy_run / "data", tmp_path / "student", SHALLOW)
    sources = [source for source, _ in toy.held_out()]
    said, learned = (
        [one.text for one in Translator.load(run).translate(sources)] for run in (toy_run, tmp_path / "student")
    )
    assert sum(map(str.__eq__, said, learned)) >= 90


def test_the_targets_are_the_teachers_translations(toy_run: Path, few: Path, tmp_path: Path) -> None:
    told: list[str] = []
    distill(toy_run, few, tmp_path / "student", BRIEF, sentences_a_part=30, say=told.append)
    given = Prepared.open(few).corpus("train")
    pairs = taught(tmp_path / "student")
    assert len(pairs) == len(given)
    teacher = Translator.load(toy_run)
    assert [target for _, target in pairs] == [
        one.text for one in teacher.translate([source for source, _ in pairs], beam=4)
    ]
    made = Prepared.open(tmp_path / "student" / "data")
    made.verify()
    assert np.array_equal(made.corpus("train").lines, given.lines)
    assert np.array_equal(made.corpus("train").source_ids, given.source_ids)
    assert told == [
        f"{len(given)} sources translated by {toy_run}; all are taken\n"
        f"{len(given)} pairs to learn from, {len(given.source_ids)} source and "
        f"{len(made.corpus('train').target_ids)} target tokens"
    ]
    before, after = contents(few), contents(tmp_path / "student" / "data")
    assert {name: one for name, one in before.items() if name.startswith(("valid", "tokenizer", "dropped"))} == {
        name: one for name, one in after.items() if name.startswith(("valid", "tokenizer", "dropped"))
    }
    assert made.summary()


def test_the_data_tells_who_taught_it(toy_run: Path, few: Path, tmp_path: Path) -> None:
    distill(toy_run, few, tmp_path / "student", BRIEF)
    manifest = json.loads((tmp_path / "student" / "data" / MANIFEST).read_text())
    assert manifest["inputs"]["teacher"][0]["file"] == str(toy_run)
    assert len(manifest["inputs"]["teacher"][0]["sha256"]) == 64
    assert manifest["inputs"]["data"] == [{"file": str(few), "sha256": Prepared.open(few).fingerprint}]
    assert manifest["settings"]["distilling"] == {
        "beam": 4, "length_penalty": 0.6, "extra_length": 50, "n_best_by_bleu": 1, "also_original": False,
    }  # fmt: skip


def test_the_original_pairs_may_stand_beside_the_translated_ones(toy_run: Path, few: Path, tmp_path: Path) -> None:
    distill(toy_run, few, tmp_path / "student", BRIEF, distilling=Distilling(also_original=True))
    given = Prepared.open(few)
    corpus, tokenizer = given.corpus("train"), given.tokenizer()
    originals = {tuple(map(tokenizer.decode, corpus.pair(number))) for number in range(len(corpus))}
    learned = taught(tmp_path / "student")
    assert {*learned} > originals
    assert {source for source, _ in learned} == {source for source, _ in originals}
    # Where the teacher says what the corpus says, once is enough.
    assert len(learned) == len({*learned})


def test_of_the_best_the_one_closest_to_the_reference_is_taken(toy_run: Path, few: Path, tmp_path: Path) -> None:
    distill(toy_run, few, tmp_path / "student", BRIEF, distilling=Distilling(beam=4, n_best_by_bleu=4))
    given = Prepared.open(few)
    corpus, tokenizer = given.corpus("train"), given.tokenizer()
    references = [tokenizer.decode(corpus.pair(number)[1]) for number in range(len(corpus))]
    learned = taught(tmp_path / "student")
    best = Translator.load(toy_run).translate([source for source, _ in learned], beam=4, alternatives=3)
    others = 0
    for (_, target), one, reference in zip(learned, best, references, strict=True):
        score = {some.text: sentence_bleu(some.text, reference) for some in (one, *one.alternatives) if some.complete}
        assert score[target] == max(score.values())
        others += target != one.text
    assert others


def test_a_translation_that_is_of_no_use_is_told_from_one_that_is() -> None:
    data = DataConfig(row_width=8, max_ratio=2.0)
    words = "lusa kodu rimo basa lusa kodu rimo basa"
    assert fault("lusa kodu", Taught("udok asul", complete=True), [5, 6], data) is None
    assert fault("lusa kodu", Taught("udok asul", complete=False), [5, 6], data) == "cut off"
    assert fault("lusa kodu", Taught("", complete=True), [], data) == "empty"
    assert fault("lusa kodu", Taught("lusa kodu", complete=True), [5, 6], data) == "copy of the source"
    assert fault("lusa", Taught(words, complete=True), [5] * 7, data) == "length ratio"
    assert fault(words, Taught(words[::-1], complete=True), [5] * 8, data) == "too many tokens"


def searching_otherwise(run: Path, copy: Path, **search: int) -> Path:
    """A copy of a run whose config says this of how to search."""
    shutil.copytree(run, copy)
    config = json.loads((copy / "config.json").read_text())
    config["search"] |= search
    (copy / "config.json").write_text(json.dumps(config))
    return copy


def test_where_a_translation_is_of_no_use_the_original_stays(few: Path, toy_run: Path, tmp_path: Path) -> None:
    # It may write no more than the source has, its end included, which is too little for some.
    teacher = searching_otherwise(toy_run, tmp_path / "teacher", extra_length=0)
    told: list[str] = []
    distill(teacher, few, tmp_path / "student", BRIEF, say=told.append)
    kept = Prepared.open(tmp_path / "student" / "data").report["distilled"]["original_kept"]
    assert kept["cut off"] > 0
    assert f"the original is kept of {sum(kept.values())}: " in told[0]
    given = Prepared.open(few)
    corpus, tokenizer = given.corpus("train"), given.tokenizer()
    originals = [tokenizer.decode(corpus.pair(number)[1]) for number in range(len(corpus))]
    translations = Translator.load(teacher).translate([source for source, _ in taught(tmp_path / "student")])
    assert [target for _, target in taught(tmp_path / "student")] == [
        one.text if one.complete else original for one, original in zip(translations, originals, strict=True)
    ]


def test_other_cuts_of_a_source_have_the_same_translation(tmp_path: Path) -> None:
    config = QUICK.with_changes(
        text={"algorithm": "unigram", "segmentations": 2, "sampling_alpha": 0.0}, training={"steps": 20}
    )
    corpus = toy.write_tsv(tmp_path / "corpus.tsv", toy.pairs(120))
    data = prepare([corpus], tmp_path / "data", config).directory
    train_prepared(data, tmp_path / "teacher", config)
    distill(tmp_path / "teacher", data, tmp_path / "student", BRIEF, sentences_a_part=50)
    pairs = taught(tmp_path / "student")
    sources = {source for source, _ in pairs}
    assert len(pairs) == 2 * len(sources) == 2 * len({*pairs})
    ids = Prepared.open(tmp_path / "student" / "data").corpus("train")
    assert len({tuple(ids.pair(number)[0]) for number in range(len(ids))}) > len(sources)
    assert Prepared.open(tmp_path / "student" / "data").report["distilled"]["translated"] == len(sources)


def test_targets_are_turned_where_those_of_the_data_are(toy_run: Path, tmp_path: Path) -> None:
    """The references too: each is among what the teacher finds, and is taken."""
    config = toy.LEARNS.with_changes(text={"right_to_left": True}, data={"held_out": 20})
    corpus = toy.write_tsv(tmp_path / "corpus.tsv", PAIRS)
    data = prepare([corpus], tmp_path / "data", config, tokenizer=toy_run / "tokenizer.model").directory
    distill(toy_run, data, tmp_path / "student", BRIEF, distilling=Distilling(beam=8, n_best_by_bleu=8))
    given, made = (Prepared.open(one).corpus("train") for one in (data, tmp_path / "student" / "data"))
    same = sum(given.pair(number) == made.pair(number) for number in range(len(given)))
    assert same >= 0.9 * len(given)


# Stopped and gone on


def arguments(teacher: Path, data: Path, output: Path) -> list[str]:
    changes = {
        "model.width": 16, "model.heads": 2, "model.hidden": 24, "training.steps": 60, "training.save_every": 10,
        "training.validate_every": 60, "training.validation_sentences": 2, "training.tokens_per_batch": 192,
        "training.device": "cpu",
    }  # fmt: skip
    settings = [part for name, value in changes.items() for part in ("--set", f"{name}={value}")]
    return [
        "distill", str(teacher), "--data", str(data), "--recipe", "tiny", "--output", str(output), "--part", "10",
        *settings,
    ]  # fmt: skip


def test_killed_anywhere_it_goes_on_and_ends_with_the_same_files(toy_run: Path, few: Path, tmp_path: Path) -> None:
    assert main(arguments(toy_run, few, tmp_path / "whole")) == 0
    killed = tmp_path / "killed"
    for there in ("translations/part-0000000030.jsonl.gz", "checkpoints/step-0000020"):
        ended = signalled(signal.SIGKILL, killed / there, *arguments(toy_run, few, killed), told=tmp_path / "told")
        assert ended == -signal.SIGKILL
    assert main(arguments(toy_run, few, killed)) == 0
    assert contents(killed / "translations") == contents(tmp_path / "whole" / "translations")
    assert contents(killed / "data") == contents(tmp_path / "whole" / "data")
    assert toy.equal(toy.weights(killed), toy.weights(tmp_path / "whole"))


def test_what_was_translated_is_not_translated_again(
    toy_run: Path, few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    sound = Translator.translate

    def translate(self: Translator, texts: list[str], **options: Any) -> Any:
        # Validations of the student are greedy.
        if options["beam"] != 1:
            asked.append(len(texts))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return sound(self, texts, **options)

    monkeypatch.setattr(Translator, "translate", translate)
    with pytest.raises(KeyboardInterrupt):
        distill(toy_run, few, tmp_path / "student", BRIEF, sentences_a_part=30)
    # In parts of another size just as well; the third part is asked for once more.
    distill(toy_run, few, tmp_path / "student", BRIEF, sentences_a_part=25)
    assert asked == [30, 30, 30, 25, len(Prepared.open(few).corpus("train")) - 85]
    distill(toy_run, few, tmp_path / "student", BRIEF)
    assert len(asked) == 5


def test_a_damaged_part_is_told_and_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = Parts(tmp_path / "parts", "asked", 5)
    said = [Taught(f"un\u2028\n{number}", complete=bool(number % 2)) for number in range(5)]
    parts.write(0, said[:2])
    parts.write(2, said[2:4])
    parts.write(4, said[4:])
    assert parts.missing(2) == []
    assert [one for _, part in parts.read() for one in part] == said
    path = tmp_path / "parts" / "part-0000000002.jsonl.gz"
    whole = path.read_bytes()
    for damaged in (whole[:-9], b"", whole[:40] + b"?" + whole[41:]):
        path.write_bytes(damaged)
        assert parts.missing(2) == [range(2, 4)]
        assert f"{path} is damaged; it is translated again" in capsys.readouterr().err
        assert not path.exists()
    assert parts.missing(1) == [range(2, 3), range(3, 4)]
    with pytest.raises(ConfigError, match="of another teacher or search; remove it or choose another --output"):
        Parts(tmp_path / "parts", "another", 5).missing(2)


def test_it_stops_in_time_and_goes_on(
    toy_run: Path, few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    student = tmp_path / "student"
    with pytest.raises(NoTimeError, match="before one part of 10,000 sentences was translated; give more time, or a"):
        distill(toy_run, few, student, BRIEF, deadline=time.monotonic() + 0.001)
    with monkeypatch.context() as patch:
        # Time for one part, and not for another.
        patch.setattr(teaching, "CAUTION", 1e9)
        deadline = time.monotonic() + 1000
        assert not distill(toy_run, few, student, BRIEF, sentences_a_part=30, deadline=deadline, say=told.append)
    assert len([*(student / "translations").iterdir()]) == 1
    assert told == ["stopped between two parts because time is nearly up; the same command goes on"]
    assert not (tmp_path / "student" / "data").exists()
    distill(toy_run, few, tmp_path / "student", BRIEF)
    assert (tmp_path / "student" / "final").is_dir()


# What is asked for wrongly


def test_wrong_input_is_told(command: Command, toy_run: Path, toy_data: Path, tmp_path: Path) -> None:
    def refused(*arguments: object) -> str:
        ran = command("distill", *arguments)
        assert (ran.code != 0, ran.err.count("\n")) == (True, 1), ran.err
        return ran.err

    new = tmp_path / "new"
    assert f"no such run directory: {tmp_path / 'none'}" in refused(tmp_path / "none", "--output", new)
    assert "it has no prepared.json" in refused(toy_run, "--data", tmp_path, "--output", new)
    assert f"prepared with another tokenizer than {toy_run}" in refused(
        toy_run, "--data", toy_data, "--set", "training.tokens_per_batch=192", "--output", new
    )
    assert not (new / "translations").exists()
    assert "--output is the teacher itself" in refused(toy_run, "--output", toy_run)
    assert "text.vocabulary=5: settled when" in refused(toy_run, "--set", "text.vocabulary=5", "--output", new)
    assert "--n-best-by-bleu 3 needs a beam of at least 3, not 2; add --beam 3" in refused(
        toy_run, "--beam", 2, "--n-best-by-bleu", 3, "--output", new
    )
    assert "parts of 0 sentences" in refused(toy_run, "--part", 0, "--output", new)
    assert "search.beam is 0" in refused(toy_run, "--beam", 0, "--output", new)
    assert "search.length_penalty is -1" in refused(toy_run, "--length-penalty", -1, "--output", new)
    (tmp_path / "file").write_text("here already")
    assert "not a directory" in refused(toy_run, "--output", tmp_path / "file")


def test_a_teacher_whose_data_has_gone_is_told_to_name_it(
    toy_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(toy_data, tmp_path / "data")
    train_prepared(tmp_path / "data", tmp_path / "teacher", QUICK)
    shutil.rmtree(tmp_path / "data")
    assert main(["distill", str(tmp_path / "teacher"), "--output", str(tmp_path / "student")]) == 2
    assert f"learned from is not at {tmp_path / 'data'}; name its directory with --data" in capsys.readouterr().err


def test_a_teacher_that_still_learns_is_refused(toy_data: Path, tmp_path: Path) -> None:
    train_prepared(toy_data, tmp_path / "teacher", QUICK)
    shutil.rmtree(tmp_path / "teacher" / "final")
    with pytest.raises(ConfigError, match=r"is not finished, .*`qkv average .*` makes what it has learned"):
        distill(tmp_path / "teacher", toy_data, tmp_path / "student", BRIEF)
    assert main(["average", str(tmp_path / "teacher"), "--last", "1"]) == 0
    distill(tmp_path / "teacher", toy_data, tmp_path / "student", BRIEF)


def test_an_output_that_holds_something_else_is_left_alone(toy_run: Path, few: Path, tmp_path: Path) -> None:
    distill(toy_run, few, tmp_path / "student", BRIEF)
    before = contents(tmp_path / "student")
    with pytest.raises(ConfigError, match=r"distilling\.beam was 4 and is 2\. Choose another directory"):
        distill(toy_run, few, tmp_path / "student", BRIEF, distilling=Distilling(beam=2))
    with pytest.raises(ConfigError, match="begun with other settings"):
        distill(toy_run, few, tmp_path / "student", BRIEF.with_changes(model={"width": 20}))
    assert contents(tmp_path / "student") == before
    shutil.rmtree(tmp_path / "student" / "data")
    shutil.copytree(few, tmp_path / "student" / "data")
    with pytest.raises(ConfigError, match=r"distilling\.beam was None and is 4;"):
        distill(toy_run, few, tmp_path / "student", BRIEF)
    train_prepared(few, tmp_path / "another", BRIEF)
    with pytest.raises(ConfigError, match="was trained on something else; choose another --output"):
        distill(toy_run, few, tmp_path / "another", BRIEF)
    assert not (tmp_path / "another" / "translations").exists()


def test_a_source_longer_than_the_teacher_reads_is_told(few: Path, toy_run: Path, tmp_path: Path) -> None:
    teacher = searching_otherwise(toy_run, tmp_path / "teacher", longest_source=5)
    with pytest.raises(ConfigError, match="reads only the first 4; prepare the data with a smaller"):
        distill(teacher, few, tmp_path / "student", BRIEF)


def test_damaged_data_is_told_before_anything_is_translated(few: Path, toy_run: Path, tmp_path: Path) -> None:
    shutil.copytree(few, tmp_path / "data")
    ids = bytearray((tmp_path / "data" / "train.source.ids").read_bytes())
    ids[7] ^= 1
    (tmp_path / "data" / "train.source.ids").write_bytes(ids)
    with pytest.raises(qkv.QkvError, match="is not what was written"):
        distill(toy_run, tmp_path / "data", tmp_path / "student", BRIEF)
    assert not (tmp_path / "student" / "translations").exists()


def test_a_teacher_of_several_directions_is_asked_for_each(tmp_path: Path) -> None:
    toy.write_tsv(tmp_path / "a.en-de.tsv", PAIRS[:60])
    toy.write_tsv(tmp_path / "b.en-fr.tsv", PAIRS[60:])
    mix = tmp_path / "mix.toml"
    mix.write_text(
        'directions = ["en-de", "en-fr"]\n'
        'corpus = [{files = ["a.en-de.tsv"]}, {files = ["b.en-fr.tsv"], domain = "talks"}]\n'
    )
    train([mix], tmp_path / "run", QUICK.with_changes(text={"vocabulary": 340}))
    lesson = Lesson(Teacher.open(tmp_path / "run"), Prepared.open(tmp_path / "run" / "data"), Distilling(beam=1))
    translator = load_teacher(lesson, "cpu")
    parts = Parts(tmp_path / "parts", "asked", lesson.sources)
    # A part has sentences of both stretches.
    assert translate_sources(lesson, translator, parts, lesson.sources, None)
    ((_, taught),) = parts.read()
    sources = [translator.tokenizer.decode(lesson.corpus.pair(number)[0]) for number in range(lesson.sources)]
    first = lesson.corpus.stretches[0].pairs
    asked = translator.between("en", "de"), translator.between("en", "fr", domain="talks")
    expected = [*asked[0].translate(sources[:first], beam=1), *asked[1].translate(sources[first:], beam=1)]
    assert [one.text for one in taught] == [one.text for one in expected]
