"""Mixing corpora: each pair is encoded once and learned in every direction that is asked for, as often as asked."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from qkv.config import Config
from qkv.data.corpus import Corpus, CorpusWriter
from qkv.data.mixing import write_base
from qkv.errors import ConfigError
from qkv.prepare import Prepared, prepare
from qkv.prepare.mix import Mix, settled
from qkv.text.languages import Direction
from tests.toy import pairs, write_tsv

CONFIG = Config().with_changes(text={"vocabulary": 360}, data={"row_width": 40, "held_out": 10})


def german(source: str) -> str:
    return source[::-1]


def french(source: str) -> str:
    return " ".join(reversed(source.split()))


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """Files of two pairs of languages, whose sentences are all different."""
    sources = [source for source, _ in pairs(300)]
    write_tsv(tmp_path / "one.en-de.tsv", [(source, german(source)) for source in sources[:120]])
    write_tsv(tmp_path / "two.en-de.tsv", [(source, german(source)) for source in sources[120:200]])
    write_tsv(tmp_path / "three.en-fr.tsv", [(source, french(source) + " x") for source in sources[200:]])
    return tmp_path


def write_mix(folder: Path, text: str) -> Path:
    (folder / "mix.toml").write_text(text, encoding="utf-8")
    return folder / "mix.toml"


def sides(prepared: Prepared, name: str) -> list[tuple[list[str], str, str]]:
    """Each pair as the names of its tags, the source and the target."""
    tokenizer, corpus = prepared.tokenizer(), prepared.corpus(name)
    found = []
    for number in range(len(corpus)):
        source, target = corpus.pair(number)
        tags = [tokenizer.piece(token) for token in source if token in tokenizer.marks]
        assert source[: len(tags)] == [token for token in source if token in tokenizer.marks]
        found.append((tags, tokenizer.decode(source), tokenizer.decode(target)))
    return found


def test_each_pair_is_learned_both_ways_behind_the_tag_of_its_target(corpora: Path) -> None:
    files = [corpora / "one.en-de.tsv", corpora / "two.en-de.tsv"]
    config = CONFIG.with_changes(text={"directions": "en-de,de-en"})
    prepared = prepare(files, corpora / "out", config)
    assert prepared.applied_to(Config()).text.directions == "en-de,de-en"
    for name, count in (("train", 190), ("valid", 10)):
        found = sides(prepared, name)
        there = [(source, target) for tags, source, target in found if tags == ["<to:de>"]]
        back = [(source, target) for tags, source, target in found if tags == ["<to:en>"]]
        assert (len(there), len(back), len(found)) == (count, count, 2 * count)
        assert all(target == german(source) for source, target in there)
        assert sorted(back) == sorted((target, source) for source, target in there)
    texts = [(prepared.directory / f"valid.{side}.txt").read_text().splitlines() for side in ("source", "target")]
    assert [*zip(*texts, strict=True)] == [(source, target) for _, source, target in sides(prepared, "valid")]


def test_one_direction_alone_has_a_tag_where_that_is_asked_for(corpora: Path) -> None:
    files = [corpora / "one.en-de.tsv"]
    config = CONFIG.with_changes(text={"directions": "de-en", "tagged": True})
    prepared = prepare(files, corpora / "out", config)
    text = prepared.applied_to(Config()).text
    assert (text.directions, text.source_language, text.target_language) == ("de-en", None, None)
    for name, count in (("train", 110), ("valid", 10)):
        found = sides(prepared, name)
        assert len(found) == count
        assert all(tags == ["<to:en>"] and source == german(target) for tags, source, target in found)
    # Names tell it, too; without any nobody knows which tag.
    assert settled(files, CONFIG.with_changes(text={"tagged": True})).text.directions == "en-de"
    with pytest.raises(ConfigError, match="is not known, for a tag; name it like"):
        Mix.of([write_tsv(corpora / "corpus.tsv", pairs(20))], CONFIG.with_changes(text={"tagged": True}).text)


def write_pairs(path: Path, words: Sequence[str]) -> Path:
    write_tsv(path, [(word, german(word)) for word in words])
    return path


@pytest.mark.parametrize(
    "asked",
    [
        {"directions": "de-en"},
        {"source_language": "de", "target_language": "en"},
        {"source_language": "de"},
        {"target_language": "en"},
    ],
)
@pytest.mark.parametrize("through", ["prepare", "train"])
@pytest.mark.parametrize("named", ["held.en-de.tsv", "held.tsv"])
def test_one_direction_may_be_the_other_way_round(
    corpora: Path, asked: dict[str, str], through: str, named: str
) -> None:
    """Names tell the columns; what is asked for tells which way they are learned. A validation file without such a name
    is as what is learned from."""
    files, config = [corpora / "one.en-de.tsv"], CONFIG.with_changes(text=asked)
    if through == "train":
        # As `qkv train` does: the languages are settled before there is data.
        config = settled(files, config)
    valid = write_pairs(corpora / named, [f"held out number {number}" for number in range(8)])
    prepared = prepare(files, corpora / "out", config, valid=[valid])
    text = prepared.applied_to(Config()).text
    assert (text.source_language, text.target_language, text.directions) == ("de", "en", None)
    for name, count in (("train", 120), ("valid", 8)):
        found = sides(prepared, name)
        assert len(found) == count
        assert all(tags == [] and source == german(target) for tags, source, target in found)


def test_who_asks_for_languages_that_names_do_not_have_tells_those_of_the_columns(corpora: Path) -> None:
    """is and it are languages, and here only words."""
    shutil.copy(corpora / "one.en-de.tsv", corpora / "this.is-it.tsv")
    config = CONFIG.with_changes(text={"source_language": "en", "target_language": "de"})
    prepared = prepare([corpora / "this.is-it.tsv"], corpora / "out", config)
    assert all(target == german(source) for _, source, target in sides(prepared, "train"))


def test_validation_and_test_files_go_with_what_is_learned(corpora: Path) -> None:
    words = [f"held out number {number}" for number in range(8)]
    other, turned = write_pairs(corpora / "held.en-fr.tsv", words), write_pairs(corpora / "held.de-en.tsv", words)
    files = [corpora / "one.en-de.tsv"]
    with pytest.raises(ConfigError, match=r"held.en-fr.tsv is en-fr, and nothing is to be learned between these lang"):
        prepare(files, corpora / "out", CONFIG, valid=[other])
    for valid, test in (([turned], []), ([], [turned])):
        with pytest.raises(ConfigError, match=r"held.de-en.tsv is de-en and .*one.en-de.tsv is en-de; swap the col"):
            prepare(files, corpora / "out", CONFIG, valid=valid, test=test)
    assert not (corpora / "out").exists()
    # Where nobody knows what is learned from, a name contradicts nothing.
    plain = write_pairs(corpora / "plain.tsv", [f"number {number}" for number in range(80)])
    assert len(sides(prepare([plain], corpora / "plain", CONFIG, valid=[other]), "valid")) == 8
    # Test files of other languages are only looked for.
    prepare(files, corpora / "out", CONFIG, test=[other])


def test_a_mix_says_how_often_and_in_which_directions(corpora: Path) -> None:
    mix = write_mix(
        corpora,
        """
        directions = ["en-de", "de-en", "en-fr"]
        [[corpus]]
        files = ["one.en-de.tsv"]
        repetitions = 2.5
        [[corpus]]
        files = ["two.en-de.tsv"]
        directions = ["en-de"]
        repetitions = 0.5
        domain = "docs"
        [[corpus]]
        files = ["three.en-fr.tsv"]
        terms = "CC BY 4.0"
        """,
    )
    prepared = prepare([mix], corpora / "out", CONFIG)
    found = Counter((tuple(tags)) for tags, _, _ in sides(prepared, "train"))
    one, two, three = prepared.report["corpora"]
    assert found["<to:en>",] == round(2.5 * one["training_pairs"])
    assert found["<to:de>",] == round(2.5 * one["training_pairs"])
    assert found["<to:de>", "<domain:docs>"] == two["training_pairs"]
    assert 25 < two["training_pairs"] < 55
    assert found["<to:fr>",] == three["training_pairs"]
    assert three["terms"] == "CC BY 4.0"
    assert one["clean_pairs"] == 120
    assert prepared.report["training"]["dropped"]["not drawn"]["count"] > 20
    # The same pairs more often, and no other.
    english = Counter(target for tags, _, target in sides(prepared, "train") if tags == ["<to:en>"])
    assert {*english.values()} == {2, 3}


@pytest.mark.parametrize(
    ("segmentations", "directions"), [(1, '"en-de", "de-en"'), (3, '"en-de", "de-en"'), (2, '"en-de"')]
)
def test_a_report_counts_what_is_learned_and_not_what_was_left_out(
    corpora: Path, segmentations: int, directions: str
) -> None:
    long = [(source, german(source)) for source in (" ".join(9 * [one]) for one, _ in pairs(7, seed=2))]
    with (corpora / "one.en-de.tsv").open("a") as file:
        file.writelines(f"{source}\t{target}\n" for source, target in long)
    mix = write_mix(
        corpora,
        f"""
        directions = [{directions}]
        [[corpus]]
        files = ["one.en-de.tsv"]
        repetitions = 1
        [[corpus]]
        files = ["two.en-de.tsv"]
        repetitions = {0.5 if "de-en" in directions else 1}
        """,
    )
    text = {"segmentations": segmentations, "algorithm": "unigram" if segmentations > 1 else "bpe", "vocabulary": 320}
    prepared = prepare([mix], corpora / "out", CONFIG.with_changes(text=text))
    report, corpus = prepared.report, prepared.corpus("train")
    assert report["training"]["dropped"]["too many tokens"]["count"] > 0
    # Lines are numbered through both files.
    lines = [corpus.lines[corpus.lines <= 127], corpus.lines[corpus.lines > 127]]
    for row, of_row in zip(report["corpora"], lines, strict=True):
        assert row["training_pairs"] == len({*of_row.tolist()})
        assert row["examples"] == len(of_row)
    assert sum(row["examples"] for row in report["corpora"]) == report["training"]["pairs"]


def test_a_direction_that_no_corpus_teaches_is_told(corpora: Path) -> None:
    text = """
        directions = ["en-de", "de-en", "en-fr", "fr-en"]
        corpus = [{files = ["one.en-de.tsv"]}, {files = ["three.en-fr.tsv"], directions = ["en-fr"]}]
        """
    prepared = prepare([write_mix(corpora, text)], corpora / "out", CONFIG)
    warning = "the mix names fr-en, but no corpus teaches it; it is left out"
    assert prepared.report["warnings"] == [warning]
    assert prepared.summary().endswith(f"\nwarning: {warning}")
    taught = text.replace("}]", '}, {files = ["four.en-fr.tsv"]}]')
    write_tsv(corpora / "four.en-fr.tsv", [("a b", "c d"), ("e f", "g h")])
    assert Mix.of([write_mix(corpora, taught)], CONFIG.text).untaught == ()


def test_a_summary_says_how_pairs_are_counted_that_are_learned_more_than_once(corpora: Path) -> None:
    mix = """
        directions = ["en-de", "de-en"]
        corpus = [{files = ["one.en-de.tsv"], repetitions = 2}]
        """
    told = prepare([write_mix(corpora, mix)], corpora / "mixed", CONFIG).summary().splitlines()[0]
    assert told == (
        "120 pairs read, 0 left out; counted once for each direction and as often as the mix repeats them: "
        "440 for training, 20 for validation"
    )
    told = prepare([corpora / "one.en-de.tsv"], corpora / "plain", CONFIG).summary().splitlines()[0]
    assert told == "120 pairs read: 110 for training, 10 for validation, 0 left out"


def test_what_a_mixed_corpus_was_made_of_can_be_had_back(corpora: Path, tmp_path: Path) -> None:
    mix = write_mix(
        corpora,
        """
        directions = ["de-en", "en-de", "en-fr", "fr-en"]
        corpus = [{files = ["one.en-de.tsv", "two.en-de.tsv"], repetitions = 2}, {files = ["three.en-fr.tsv"]}]
        """,
    )
    mixed = prepare([mix], corpora / "out", CONFIG).corpus("train")
    (tmp_path / "base").mkdir()
    with CorpusWriter(tmp_path / "base", "pairs", vocabulary=360) as writer:
        write_base(mixed, writer)
    base = Corpus.open(tmp_path / "base", "pairs")
    assert len(base) == 290
    assert sorted(base.lines.tolist()) == sorted({*mixed.lines.tolist()})
    first, number = mixed.stretches[0], 0
    assert first.turned
    source, target = mixed.pair(number)
    assert base.pair(number) == (target, source[1:])


def test_names_of_files_tell_the_languages(corpora: Path) -> None:
    files = [corpora / "one.en-de.tsv", corpora / "two.en-de.tsv"]
    text = prepare(files, corpora / "out", CONFIG).applied_to(Config()).text
    assert (text.source_language, text.target_language, text.directions) == ("en", "de", None)
    several = Mix.of([*files, corpora / "three.en-fr.tsv"], CONFIG.text)
    assert several.directions == (Direction("en", "de"), Direction("en", "fr"))


def test_data_that_was_prepared_before_its_languages_were_told_is_used_as_it_is(corpora: Path) -> None:
    named = corpora / "one.en-de.tsv"
    nameless = write_tsv(corpora / "one.tsv", pairs(120))
    before = prepare([nameless], corpora / "out", CONFIG)
    named.write_bytes(nameless.read_bytes())
    again = prepare([named], corpora / "out", CONFIG)
    assert again.reused
    assert again.fingerprint == before.fingerprint


def test_the_same_mix_is_used_as_it_is_and_another_one_is_not(corpora: Path) -> None:
    text = 'directions = ["en-de", "de-en"]\ncorpus = [{files = ["one.en-de.tsv"], repetitions = 2}]\n'
    prepare([write_mix(corpora, text)], corpora / "out", CONFIG)
    assert prepare([write_mix(corpora, text + "# said otherwise\n")], corpora / "out", CONFIG).reused
    with pytest.raises(ConfigError, match=r"mix\.rows was"):
        prepare([write_mix(corpora, text.replace("= 2", "= 3"))], corpora / "out", CONFIG)


@pytest.mark.parametrize(
    ("own", "asked", "told"),
    [
        # What a model that is adapted has, or --directions says, is less than what the mix asks for.
        (None, "en-de,de-en", "en-de, de-en, and no others: those of --directions, or of the model that is adapted"),
        ("en-fr", "en-de,de-en", "en-de, de-en, and no others: those of --directions, or of the model that is adapted"),
        # What the mix says of this corpus is less than what it says of all.
        ("en-de", None, "en-de"),
        ("en-de", "en-de,en-fr", "en-de"),
        ("en-de,en-it", "en-de,en-fr", "en-de"),
    ],
)
def test_a_corpus_that_nothing_is_learned_from_is_told_with_the_directions_that_are_allowed(
    corpora: Path, own: str | None, asked: str | None, told: str
) -> None:
    row = "" if own is None else f'directions = "{own}"'
    mix = write_mix(
        corpora,
        f"""
        directions = ["en-de", "de-en", "en-fr", "fr-en"]
        [[corpus]]
        files = ["three.en-fr.tsv"]
        {row}
        """,
    )
    with pytest.raises(ConfigError) as raised:
        Mix.of([mix], CONFIG.with_changes(text={"directions": asked}).text)
    nothing = "is en-fr, and nothing is to be learned between these languages"
    assert str(raised.value) == f"{corpora / 'three.en-fr.tsv'} {nothing}; the directions are {told}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("directions = [", "is not TOML"),
        ('directions = ["en-de"]', r"has no \[\[corpus\]\]"),
        ('corpora = 1\n[[corpus]]\nfiles = ["one.en-de.tsv"]', "knows no 'corpora'"),
        ('[[corpus]]\nfile = "one.en-de.tsv"', "a corpus has no 'file'"),
        ("[[corpus]]\nfiles = []", "needs files"),
        ('[[corpus]]\nfiles = ["four.en-de.tsv"]', "no such file"),
        ('[[corpus]]\nfiles = ["one.en-de.tsv"]\nrepetitions = 0', "must be above 0"),
        ('[[corpus]]\nfiles = ["one.en-de.tsv"]\nrepetitions = "2"', "repetitions cannot be '2'"),
        ('[[corpus]]\nfiles = ["one.en-de.tsv"]\ndomain = "<b>"', "use small letters"),
        ('directions = ["en-it"]\n[[corpus]]\nfiles = ["one.en-de.tsv"]', "nothing is to be learned between"),
        ('directions = ["en"]\n[[corpus]]\nfiles = ["one.en-de.tsv"]', "'en' is no direction"),
        (
            '[[corpus]]\nfiles = ["one.en-de.tsv"]\n[[corpus]]\nfiles = ["two.en-de.tsv"]\npair = "de-en"',
            "swap the columns",
        ),
        ('directions = ["en-de"]\n[[corpus]]\nfiles = ["one.en-de.tsv", "three.en-fr.tsv"]', "of different languages"),
    ],
)
def test_what_is_wrong_with_a_mix_is_told(corpora: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        prepare([write_mix(corpora, text)], corpora / "out", CONFIG)


def test_a_file_whose_languages_nobody_tells_is_refused_where_they_matter(corpora: Path) -> None:
    nameless = write_tsv(corpora / "corpus.tsv", pairs(20))
    with pytest.raises(ConfigError, match=r"which languages .* is not known"):
        Mix.of([nameless], CONFIG.with_changes(text={"directions": "en-de,en-fr"}).text)
    # Between two languages the first direction tells the order of the columns.
    (row,) = Mix.of([nameless], CONFIG.with_changes(text={"directions": "en-de,de-en"}).text).rows
    assert row.pair == Direction("en", "de")


def test_a_side_in_the_wrong_language_is_left_out_where_that_is_asked_for(tmp_path: Path) -> None:
    english = [" ".join(["the", noun, "is", verb, number]) for noun in NOUNS for verb in NOUNS for number in NOUNS]
    german = [
        " ".join(["der", noun, "ist", verb, number])[::-1] for noun in NOUNS for verb in NOUNS for number in NOUNS
    ]
    untranslated = ("the ba is ko now", "The ba is ko NOW.")
    file = write_tsv(tmp_path / "a.en-de.tsv", [*zip(english, german, strict=True), untranslated])
    for check, dropped in ((False, {}), (True, {"wrong language": 1})):
        config = CONFIG.with_changes(text={"vocabulary": 310}, data={"check_language": check})
        report = prepare([file], tmp_path / f"checked-{check}", config).report["training"]
        found = {rule: found["count"] for rule, found in report["dropped"].items() if rule != "target held out"}
        assert found == dropped


NOUNS = ("ba", "ko", "ri", "ne", "lu", "sa")
