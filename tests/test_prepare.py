"""Preparing: every line is accounted for, and the result depends on the request alone."""

from __future__ import annotations

import gzip
import json
import lzma
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from qkv.config import Config
from qkv.errors import ConfigError, TextError
from qkv.prepare import Prepared, prepare
from qkv.prepare import clean as clean_step
from qkv.prepare import duplicates as duplicates_step
from qkv.prepare.split import words
from qkv.text.subwords import Tokenizer

CONFIG = Config().with_changes(
    text={"vocabulary": 400, "reserved": 2}, data={"row_width": 40, "held_out": 20, "max_bytes": 300}
)


def sentences(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Distinct made-up pairs, of seven words each so that an overlap counts."""
    generator = random.Random(seed)
    syllables = ["ba", "ko", "ri", "ne", "lu", "sa", "ti", "mo"]
    vocabulary = ["".join(generator.choices(syllables, k=2)) for _ in range(40)]
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        chosen = generator.choices(vocabulary, k=7)
        pairs[" ".join(chosen)] = " ".join(word[::-1] for word in chosen)
    return list(pairs.items())


def write_tsv(path: Path, pairs: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return path


def dropped(prepared: Prepared) -> list[tuple[int, str]]:
    rows = gzip.decompress((prepared.directory / "dropped.tsv.gz").read_bytes()).decode().splitlines()
    assert rows[0] == "file\tline\tcolumn\trule"
    return sorted((int(row.split("\t")[1]), row.split("\t")[3]) for row in rows[1:])


def texts(prepared: Prepared, name: str) -> list[tuple[str, str]]:
    tokenizer, corpus = prepared.tokenizer(), prepared.corpus(name)
    pairs = [corpus.pair(index) for index in range(len(corpus))]
    return [(tokenizer.decode(source), tokenizer.decode(target)) for source, target in pairs]


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def leftovers(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if path.name.startswith(".")]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_tsv(tmp_path / "corpus.tsv", sentences(300))


def test_clean_text_is_all_there(tmp_path: Path, corpus: Path) -> None:
    prepared = prepare([corpus], tmp_path / "out", CONFIG)
    train, valid = texts(prepared, "train"), texts(prepared, "valid")
    assert len(valid) == 20
    assert sorted(train + valid) == sorted(sentences(300))
    for name, found in (("train", train), ("valid", valid)):
        assert [sentences(300)[line - 1] for line in prepared.corpus(name).lines] == found
    for side, suffix in enumerate(("source", "target")):
        lines = (tmp_path / "out" / f"valid.{suffix}.txt").read_text(encoding="utf-8").splitlines()
        assert lines == [pair[side] for pair in valid]
    assert prepared.report["training"]["read"] == 300
    assert prepared.report["training"]["pairs"] == 280
    assert prepared.report["training"]["source_tokens"] == len(prepared.corpus("train").source_ids)
    assert dropped(prepared) == []
    assert leftovers(tmp_path) == []
    prepared.verify()


def test_every_bad_line_is_told_with_its_rule(tmp_path: Path) -> None:
    good = [f"{source}\t{target}".encode() for source, target in sentences(100)]
    bad = {
        3: (b"bro\xffken line\tof text", "broken UTF-8"),
        5: (b"nul\0 in\tit", "NUL character"),
        8: (b"\tno source", "empty"),
        9: (b"no target\t \xe2\x80\xa8", "empty"),
        13: (b"no tab at all", "missing column"),
        21: (b"x" * 301 + b"\t" + b"y" * 300, "too long"),
        22: (b"m" * (2 << 20) + b"\tmonster", "too long"),
        34: (b"same here\tsame  here\r", "copy of the source"),
        40: (b"short\t" + b"long " * 20, "length ratio"),
        55: (good[0], "duplicate"),
        56: (good[0].replace(b" ", b"  ") + b"\r", "duplicate"),
        70: (b" ".join(b"%d%d" % (n, n) for n in range(30)) + b"\t" + b" ".join(b"%d" % n for n in range(30)), "?"),
    }
    bad[70] = (bad[70][0], "too many tokens")
    lines = list(good)
    for number, (line, _) in bad.items():
        lines.insert(number - 1, line)
    path = tmp_path / "dirty.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join(lines) + b"\n")
    config = CONFIG.with_changes(data={"held_out": 1})
    prepared = prepare([path], tmp_path / "out", config)
    assert dropped(prepared) == [(number, rule) for number, (_, rule) in bad.items()]
    expected = Counter(rule for _, rule in bad.values())
    rules = prepared.report["training"]["dropped"]
    assert {rule: found["count"] for rule, found in rules.items()} == expected
    assert rules["duplicate"]["first"] == [{"file": str(path), "line": 55}, {"file": str(path), "line": 56}]
    assert prepared.report["training"]["pairs"] + prepared.report["validation"]["pairs"] == 100
    summary = prepared.summary()
    for rule in expected:
        assert rule in summary


def test_every_mended_line_is_told_with_what_it_was_mended_of(tmp_path: Path) -> None:
    pairs = [(source.encode(), target.encode()) for source, target in sentences(60)]
    mended = {
        1: (b"\xef\xbb\xbfthe first", b"le premier"),
        4: (b"two  spaces", b"deux\xc2\xa0espaces"),
        7: (b"a be\x07ll", b"une cloche"),
        9: (b"cafe\xcc\x81", b"caf\xc3\xa9 noir\r"),
    }
    for number, pair in mended.items():
        pairs.insert(number - 1, pair)
    files = [tmp_path / name for name in ("b.en", "b.fr", "a.tsv")]
    for side in (0, 1):
        files[side].write_bytes(b"".join(pair[side] + b"\n" for pair in pairs))
    extra = b"three\ttrois\tCC-BY\tJos\xe9\nfour\tquatre\t\n\tno source\tlost with its line\n"
    files[2].write_bytes(b"a\tb \n" + extra)
    prepared = prepare(files, tmp_path / "out", CONFIG.with_changes(data={"held_out": 1}))
    told = gzip.decompress((tmp_path / "out" / "mended.tsv.gz").read_bytes())
    rows = [row.split(b"\t", 4) for row in told.removesuffix(b"\n").split(b"\n")]
    assert rows[0] == [b"file", b"line", b"column", b"rule", b"lost text"]
    assert [(Path(row[0].decode()).name, int(row[1]), *row[2:]) for row in rows[1:]] == [
        ("b.en", 1, b"", b"byte-order mark", b""),
        ("b.en", 4, b"", b"white space", b""),
        ("b.fr", 4, b"", b"white space", b""),
        ("b.en", 7, b"", b"control character", b""),
        ("b.en", 9, b"", b"composition", b""),
        ("b.fr", 9, b"", b"carriage return", b""),
        ("a.tsv", 1, b"2", b"white space", b""),
        ("a.tsv", 2, b"", b"more columns", b"CC-BY\tJos\\xe9"),
        ("a.tsv", 3, b"", b"more columns", b""),
    ]
    report = prepared.report["training"]["mended"]
    assert report["white space"] == {
        "count": 3,
        "first": [
            {"file": str(files[0]), "line": 4},
            {"file": str(files[1]), "line": 4},
            {"file": str(files[2]), "line": 1, "column": 2},
        ],
    }
    assert {rule: found["count"] for rule, found in report.items()} == Counter(row[3].decode() for row in rows[1:])
    summary = prepared.summary()
    assert "b.en:4, b.fr:4, a.tsv:1 (column 2); made single spaces" in summary
    assert "a.tsv:2, 3; only the first two are read" in summary
    assert f"every line mended stands in {tmp_path / 'out' / 'mended.tsv.gz'}" in summary


def with_marks(count: int) -> list[tuple[str, str]]:
    """Pairs whose targets have an apostrophe and a quotation each, printed in every second pair."""
    marks = ("’", "« ", " »"), ("'", '"', '"')
    return [
        (source, f"l{marks[number % 2][0]}{target} {marks[number % 2][1]}ba{marks[number % 2][2]}")
        for number, (source, target) in enumerate(sentences(count))
    ]


def test_a_corpus_that_mixes_marks_is_told_to(tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "all.tsv", with_marks(200))
    prepared = prepare([file], tmp_path / "out", CONFIG)
    assert prepared.report["notes"] == [
        "the target side has ' (50 %) and ’ (50 %), and \" (50 %) and „ “ « (50 %) for the same thing, and what learns "
        "from it mixes them; --set data.typography=plain makes them one"
    ]
    assert any("« ba »" in target for _, target in texts(prepared, "train"))


def test_marks_are_plain_where_that_is_asked_for(tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "all.tsv", with_marks(200))
    prepared = prepare([file], tmp_path / "out", CONFIG.with_changes(data={"typography": "plain"}))
    assert prepared.report["notes"] == []
    for name in ("train", "valid"):
        assert all(target.startswith("l'") and target.endswith(' "ba"') for _, target in texts(prepared, name))
    assert prepared.report["training"]["mended"]["typography"]["count"] == 100
    assert "quotation marks and apostrophes made plain" in prepared.summary()
    # What is plain in it is no character of the vocabulary otherwise.
    pieces = "".join(map(prepared.tokenizer().piece, range(prepared.tokenizer().size)))
    assert not {*"’«»"} & {*pieces}


def test_many_mended_lines_are_counted_and_the_first_are_named(tmp_path: Path) -> None:
    corpus = write_tsv(tmp_path / "corpus.tsv", [(source, f"{target}\r") for source, target in sentences(300)])
    prepared = prepare([corpus], tmp_path / "out", CONFIG)
    found = prepared.report["training"]["mended"]["carriage return"]
    assert found["count"] == 300
    assert [place["line"] for place in found["first"]] == [*range(1, 21)]
    assert len(gzip.decompress((tmp_path / "out" / "mended.tsv.gz").read_bytes()).splitlines()) == 301


def test_line_numbers_are_those_of_each_file(tmp_path: Path) -> None:
    first = write_tsv(tmp_path / "a.tsv", sentences(60))
    source, target = tmp_path / "b.en", tmp_path / "b.fr"
    source.write_text("fine text\n\n", encoding="utf-8")
    target.write_text("bon texte\nquelque chose\n", encoding="utf-8")
    prepared = prepare([first, source, target], tmp_path / "out", CONFIG.with_changes(data={"held_out": 1}))
    assert prepared.report["training"]["dropped"]["empty"]["first"] == [{"file": str(source), "line": 2}]
    assert {*prepared.corpus("train").lines, *prepared.corpus("valid").lines} == set(range(1, 62))


def compressed_two(directory: Path, name: str, pairs: list[tuple[str, str]]) -> list[Path]:
    """The pairs as two files, one compressed by gzip and one by xz."""
    source, target = directory / f"{name}.en.gz", directory / f"{name}.fr.xz"
    texts = ["".join(f"{pair[side]}\n" for pair in pairs).encode() for side in (0, 1)]
    source.write_bytes(gzip.compress(texts[0]))
    target.write_bytes(lzma.compress(texts[1]))
    return [source, target]


def test_each_training_pair_is_found_where_the_user_wrote_it(tmp_path: Path) -> None:
    pairs = sentences(120)
    first = [("", "no source"), *pairs[:40], pairs[3], *pairs[40:50]]
    second = [pairs[7], *pairs[50:90], ("no target", "")]
    table = write_tsv(tmp_path / "a.tsv", first)
    other = write_tsv(tmp_path / "c.tsv", pairs[90:])
    two = compressed_two(tmp_path, "b", second)
    written = {str(table): first, str(two[0]): second, str(other): pairs[90:]}
    prepared = prepare([table, *two, other], tmp_path / "out", CONFIG)
    places = prepared.places(prepared.corpus("train").lines.tolist())
    found = [written[file][int(line) - 1] for file, _, line in (place.rpartition(":") for place in places)]
    assert found == texts(prepared, "train")
    assert {place.rpartition(":")[0] for place in places} == written.keys()


def test_data_of_an_older_version_tells_what_it_knows(tmp_path: Path, corpus: Path) -> None:
    prepare([corpus], tmp_path / "out", CONFIG)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    for part in ("training", "validation"):
        del report[part]["mended"]
        report[part]["repaired"] = {"white space": 3}
    manifest = json.loads((tmp_path / "out" / "prepared.json").read_text())
    del manifest["files"]["report.json"]
    (tmp_path / "out" / "prepared.json").write_text(json.dumps(manifest))
    (tmp_path / "out" / "report.json").write_text(json.dumps(report))
    assert "300 pairs read" in prepare([corpus], tmp_path / "out", CONFIG).summary()


def test_data_of_an_older_version_counts_lines_over_all_files(tmp_path: Path, corpus: Path) -> None:
    prepare([corpus], tmp_path / "out", CONFIG)
    manifest = json.loads((tmp_path / "out" / "prepared.json").read_text())
    del manifest["places"]
    (tmp_path / "out" / "prepared.json").write_text(json.dumps(manifest))
    assert Prepared.open(tmp_path / "out").places([3]) == ["line 3 of all training files together"]


def test_data_that_is_older_than_a_setting_is_used_where_that_has_its_default(tmp_path: Path, corpus: Path) -> None:
    prepare([corpus], tmp_path / "out", CONFIG)
    manifest = json.loads((tmp_path / "out" / "prepared.json").read_text())
    del manifest["settings"]["text"]["right_to_left"]
    (tmp_path / "out" / "prepared.json").write_text(json.dumps(manifest))
    assert prepare([corpus], tmp_path / "out", CONFIG).reused
    with pytest.raises(ConfigError, match=r"text\.right_to_left was False and is True\."):
        prepare([corpus], tmp_path / "out", CONFIG.with_changes(text={"right_to_left": True}))


def test_data_that_is_newer_than_this_version_is_told(tmp_path: Path, corpus: Path) -> None:
    prepare([corpus], tmp_path / "out", CONFIG)
    manifest = json.loads((tmp_path / "out" / "prepared.json").read_text())
    manifest["settings"]["text"]["of_tomorrow"] = True
    (tmp_path / "out" / "prepared.json").write_text(json.dumps(manifest))
    with pytest.raises(TextError, match="was prepared by another version of qkv"):
        Prepared.open(tmp_path / "out").applied_to(CONFIG)


def test_targets_from_right_to_left_are_the_same_ones_turned_round(tmp_path: Path, corpus: Path) -> None:
    plain = prepare([corpus], tmp_path / "plain", CONFIG)
    turned = prepare([corpus], tmp_path / "turned", CONFIG.with_changes(text={"right_to_left": True}))
    assert turned.tokenizer().fingerprint == plain.tokenizer().fingerprint
    for name in ("train", "valid"):
        before, after = plain.corpus(name), turned.corpus(name)
        assert len(before) == len(after) > 0
        for number in range(len(before)):
            source, target = before.pair(number)
            assert after.pair(number) == (source, target[::-1])


def test_the_file_or_column_to_blame_is_told(tmp_path: Path) -> None:
    bad = {2: (b"no target", b""), 3: (b"cut", b"off\xc3"), 5: (b"n\0l", b"fine"), 6: (b"short", b"y" * 301)}
    lines = [(source.encode(), target.encode()) for source, target in sentences(60)]
    for number, pair in bad.items():
        lines.insert(number - 1, pair)
    files = [tmp_path / name for name in ("b.en", "b.fr", "a.tsv")]
    for side in (0, 1):
        files[side].write_bytes(b"".join(pair[side] + b"\n" for pair in lines))
    many = b" ".join(b"%d" % number for number in range(40))
    files[2].write_bytes(b"".join(b"\t".join(pair) + b"\n" for pair in lines) + b"1 2 3 4 5 6 7 8 9 10\t" + many)
    prepared = prepare(files, tmp_path / "out", CONFIG.with_changes(data={"held_out": 1, "max_ratio": 20.0}))
    rows = gzip.decompress((tmp_path / "out" / "dropped.tsv.gz").read_bytes()).decode().splitlines()[1:]
    told = [row.split("\t") for row in rows if "duplicate" not in row]
    assert [(Path(file).name, int(line), column, rule) for file, line, column, rule in told] == [
        ("b.fr", 2, "", "empty"),
        ("b.fr", 3, "", "broken UTF-8"),
        ("b.en", 5, "", "NUL character"),
        ("b.fr", 6, "", "too long"),
        ("a.tsv", 2, "2", "empty"),
        ("a.tsv", 3, "2", "broken UTF-8"),
        ("a.tsv", 5, "1", "NUL character"),
        ("a.tsv", 6, "2", "too long"),
        ("a.tsv", 65, "2", "too many tokens"),
    ]
    assert prepared.report["training"]["dropped"]["empty"]["first"] == [
        {"file": str(files[1]), "line": 2},
        {"file": str(files[2]), "line": 2, "column": 2},
    ]
    assert "b.en:5, a.tsv:5 (column 1)" in prepared.summary()


def dirty(path: Path) -> Path:
    """A corpus of several chunks with duplicates far apart and a share of lines that are bad or to be mended."""
    pairs = sentences(700)
    generator = random.Random(5)
    rows = [
        pairs[generator.randrange(700)] if n % 3 else ("", "x") if n % 7 == 0 else pairs[n % 700] for n in range(900)
    ]
    rows = [
        (f"{source} ", f"{target}\tnote {n}") if n % 5 == 0 else (source, target)
        for n, (source, target) in enumerate(rows)
    ]
    return write_tsv(path, rows)


@pytest.mark.parametrize("settings", [{}, {"algorithm": "unigram", "segmentations": 3, "vocabulary": 320}])
def test_the_number_of_workers_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    monkeypatch.setattr(clean_step, "_CHUNK_PAIRS", 50)
    corpus = dirty(tmp_path / "corpus.tsv")
    config = CONFIG.with_changes(text=settings)
    for workers in (1, 2):
        prepare([corpus], tmp_path / f"out{workers}", config, workers=workers)
    assert contents(tmp_path / "out1") == contents(tmp_path / "out2")


def test_blocks_and_buckets_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = dirty(tmp_path / "corpus.tsv")
    prepare([corpus], tmp_path / "whole", CONFIG)
    monkeypatch.setattr(clean_step, "_CHUNK_PAIRS", 7)
    monkeypatch.setattr(clean_step, "_BLOCK_ROWS", 13)
    monkeypatch.setattr(duplicates_step, "_BUCKET_ROWS", 100)
    prepared = prepare([corpus], tmp_path / "split", CONFIG)
    assert contents(tmp_path / "whole") == contents(tmp_path / "split")
    kept = texts(prepared, "train") + texts(prepared, "valid")
    assert len(set(kept)) == len(kept)


def test_the_first_of_equal_pairs_is_kept(tmp_path: Path) -> None:
    pairs = sentences(50)
    corpus = write_tsv(tmp_path / "corpus.tsv", pairs + pairs)
    prepared = prepare([corpus], tmp_path / "out", CONFIG)
    assert dropped(prepared) == [(line, "duplicate") for line in range(51, 101)]


def test_duplicates_stay_where_they_are_wanted(tmp_path: Path) -> None:
    pairs = sentences(50)
    corpus = write_tsv(tmp_path / "corpus.tsv", pairs + pairs)
    prepared = prepare([corpus], tmp_path / "out", CONFIG.with_changes(data={"keep_duplicates": True}))
    train, valid = texts(prepared, "train"), texts(prepared, "valid")
    assert len(train) + len(valid) == 100
    assert not {source for source, _ in train} & {source for source, _ in valid}


def test_held_out_sentences_are_not_trained_on(tmp_path: Path) -> None:
    pairs = sentences(200)
    more = [(source, f"{target} again") for source, target in pairs[:100]]
    shared = [(f"{source} too", target) for source, target in pairs]
    corpus = write_tsv(tmp_path / "corpus.tsv", pairs + more + shared)
    prepared = prepare([corpus], tmp_path / "out", CONFIG)
    train, valid = texts(prepared, "train"), texts(prepared, "valid")
    assert 0 < len(valid) <= 20
    assert not {source for source, _ in train} & {source for source, _ in valid}
    assert not {target for _, target in train} & {target for _, target in valid}
    assert prepared.report["training"]["dropped"]["target held out"]["count"] > 0
    assert len(train) + len(valid) + len(dropped(prepared)) == 500


def test_another_seed_holds_out_other_pairs(tmp_path: Path, corpus: Path) -> None:
    one = prepare([corpus], tmp_path / "one", CONFIG)
    other = prepare([corpus], tmp_path / "other", CONFIG.with_changes(training={"seed": 2}))
    assert texts(one, "valid") != texts(other, "valid")


def test_a_tiny_corpus_holds_out_a_tenth_and_says_so(tmp_path: Path) -> None:
    corpus = write_tsv(tmp_path / "corpus.tsv", sentences(30))
    prepared = prepare([corpus], tmp_path / "out", CONFIG.with_changes(text={"vocabulary": 300}))
    assert len(prepared.corpus("valid")) == 3
    assert "3 pairs are held out instead of 20" in prepared.summary()


def test_one_source_for_all_cannot_be_split(tmp_path: Path) -> None:
    corpus = write_tsv(tmp_path / "corpus.tsv", [("always the same", target) for _, target in sentences(30)])
    with pytest.raises(TextError, match="too few different sources"):
        prepare([corpus], tmp_path / "out", CONFIG)


def test_validation_files_are_used_as_they_come(tmp_path: Path, corpus: Path) -> None:
    held = [("a copy", "a copy"), ("", "nothing"), *sentences(5, seed=9), *sentences(2)]
    valid = write_tsv(tmp_path / "valid.tsv", held)
    prepared = prepare([corpus], tmp_path / "out", CONFIG, valid=[valid])
    assert len(prepared.corpus("train")) == 300
    assert texts(prepared, "valid") == [held[0], *held[2:]]
    assert prepared.corpus("valid").lines.tolist() == [1, 3, 4, 5, 6, 7, 8, 9]
    place = {"file": str(valid), "line": 2, "column": 1}
    assert prepared.report["validation"]["dropped"]["empty"]["first"] == [place]
    assert "2 lines of the validation set stand in 2 training pairs" in prepared.summary()


def test_a_whole_pair_of_the_test_set_is_found_however_short_it_is(tmp_path: Path, corpus: Path) -> None:
    with corpus.open("a", encoding="utf-8") as file:
        file.write("Go.\tVa !\nGo.\tAllez !\n")
    test = write_tsv(tmp_path / "test.tsv", [("Go.", "Va !"), ("Go.", "Pars !")])
    found = prepare([corpus], tmp_path / "out", CONFIG, test=[test]).report["overlap"]["test"]
    assert (found["lines"], found["training_pairs"]) == (1, 1)


@pytest.mark.parametrize("drop", [False, True])
def test_test_lines_in_training_are_told_or_left_out(tmp_path: Path, corpus: Path, drop: bool) -> None:
    pairs = sentences(300)
    leaks = [("never seen before, six words long", "ja"), (pairs[4][0], "other"), ("short", pairs[7][1]), ("a", "b")]
    test = write_tsv(tmp_path / "test.tsv", leaks)
    config = CONFIG.with_changes(data={"drop_test_lines": drop})
    prepared = prepare([corpus], tmp_path / "out", config, test=[test])
    found = prepared.report["overlap"]["test"]
    assert (found["lines"], found["training_pairs"]) == (2, 2)
    assert [place["line"] for place in found["first"]] == [2, 3]
    assert "2 lines of the test set stand in 2 training pairs" in prepared.summary()
    assert dropped(prepared) == ([(5, "stands in a test set"), (8, "stands in a test set")] if drop else [])


def test_words_are_characters_where_there_are_no_spaces() -> None:
    assert words("six words are in this line") == 6
    assert words("我们今天去看电影") == 8
    assert words("") == 0


def test_more_segmentations_say_the_same_in_other_pieces(tmp_path: Path, corpus: Path) -> None:
    config = CONFIG.with_changes(text={"algorithm": "unigram", "segmentations": 3, "vocabulary": 320})
    prepared = prepare([corpus], tmp_path / "out", config)
    train, ids = texts(prepared, "train"), prepared.corpus("train")
    assert train == train[:280] * 3
    assert ids.lines.tolist() == ids.lines.tolist()[:280] * 3
    assert sum(ids.pair(index) != ids.pair(index + 280) for index in range(280)) > 50
    assert len(prepared.corpus("valid")) == 20
    assert "300 pairs read: 280 for training in 3 cuts each, 20 for validation" in prepared.summary()


def test_the_vocabulary_is_learned_from_no_more_than_the_sample(tmp_path: Path, corpus: Path) -> None:
    prepared = prepare([corpus], tmp_path / "out", CONFIG.with_changes(text={"sample_lines": 51}))
    assert prepared.report["vocabulary"]["learned_from_lines"] == 50


def test_the_same_request_again_uses_what_is_there(tmp_path: Path, corpus: Path) -> None:
    first = prepare([corpus], tmp_path / "out", CONFIG)
    before = {path: path.stat().st_mtime_ns for path in first.directory.iterdir()}
    moved = corpus.rename(tmp_path / "elsewhere.tsv")
    again = prepare([moved], tmp_path / "out", CONFIG)
    assert again.reused
    assert not first.reused
    assert "used as it is" in again.summary()
    assert {path: path.stat().st_mtime_ns for path in first.directory.iterdir()} == before


def test_another_request_for_the_same_place_is_told_what_differs(tmp_path: Path, corpus: Path) -> None:
    prepare([corpus], tmp_path / "out", CONFIG)
    before = contents(tmp_path / "out")
    with pytest.raises(ConfigError, match=r"text\.vocabulary was 400 and is 401.*Choose another directory"):
        prepare([corpus], tmp_path / "out", CONFIG.with_changes(text={"vocabulary": 401}))
    write_tsv(corpus, sentences(301))
    with pytest.raises(ConfigError, match="the training files are not the same"):
        prepare([corpus], tmp_path / "out", CONFIG)
    assert contents(tmp_path / "out") == before


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path, corpus: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(ConfigError, match="exists and is not prepared data"):
        prepare([corpus], tmp_path / "out", CONFIG)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.tex"]


def test_an_empty_directory_is_filled(tmp_path: Path, corpus: Path) -> None:
    (tmp_path / "out").mkdir()
    prepare([corpus], tmp_path / "out", CONFIG).verify()


def test_damage_is_named(tmp_path: Path, corpus: Path) -> None:
    prepared = prepare([corpus], tmp_path / "out", CONFIG)
    ids = tmp_path / "out" / "train.source.ids"
    content = ids.read_bytes()
    ids.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(TextError, match=r"train\.source\.ids is not what was written"):
        prepared.verify()
    ids.write_bytes(content[:-2])
    with pytest.raises(TextError, match=r"train\.source\.ids is damaged"):
        prepare([corpus], tmp_path / "out", CONFIG)
    ids.unlink()
    with pytest.raises(TextError, match=r"train\.source\.ids is missing"):
        Prepared.open(tmp_path / "out")


def test_what_is_not_prepared_data_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is not prepared data: it has no prepared\.json"):
        Prepared.open(tmp_path)
    (tmp_path / "prepared.json").write_text("{")
    with pytest.raises(TextError, match="damaged"):
        Prepared.open(tmp_path)


def test_the_manifest_holds_every_file(tmp_path: Path, corpus: Path) -> None:
    prepared = prepare([corpus], tmp_path / "out", CONFIG)
    assert {*prepared.manifest["files"], "prepared.json"} == {path.name for path in (tmp_path / "out").iterdir()}
    assert prepared.manifest["settings"]["text"]["vocabulary"] == 400
    assert json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8")) == prepared.report


def test_a_given_tokenizer_is_used(tmp_path: Path, corpus: Path) -> None:
    first = prepare([corpus], tmp_path / "first", CONFIG)
    path = first.directory / "tokenizer.model"
    other = write_tsv(tmp_path / "other.tsv", sentences(200, seed=4))
    second = prepare([other], tmp_path / "second", CONFIG, tokenizer=path)
    assert second.tokenizer().model == first.tokenizer().model
    with pytest.raises(
        ConfigError, match=r"has 400 subwords and text\.vocabulary is 37000; --set text\.vocabulary=400"
    ):
        prepare([other], tmp_path / "third", Config(), tokenizer=path)
    with pytest.raises(ConfigError, match="no tag for the language 'de'"):
        prepare([other], tmp_path / "third", CONFIG.with_changes(text={"target_language": "de"}), tokenizer=path)
    (tmp_path / "broken.model").write_bytes(b"broken")
    with pytest.raises(TextError, match=r"broken\.model: not a SentencePiece model"):
        prepare([other], tmp_path / "third", CONFIG, tokenizer=tmp_path / "broken.model")
    assert leftovers(tmp_path) == []


def test_a_tokenizer_that_was_learned_can_be_loaded_alone(tmp_path: Path, corpus: Path) -> None:
    prepared = prepare([corpus], tmp_path / "out", CONFIG)
    assert Tokenizer.load(tmp_path / "out" / "tokenizer.model").size == prepared.tokenizer().size == 400


def test_a_pair_is_a_duplicate_only_as_a_whole_and_whatever_stands_between(tmp_path: Path) -> None:
    """Sources with several translations, each of them twice, so that neighbours of one source are not alike."""
    pairs = sentences(60)
    several = [(pairs[source][0], pairs[target][1]) for source in range(0, 60, 2) for target in (7, 21, 40)]
    corpus = write_tsv(tmp_path / "corpus.tsv", pairs + several + several)
    prepared = prepare([corpus], tmp_path / "out", CONFIG.with_changes(data={"held_out": 1}))
    assert len({*pairs, *several}) == 60 + 90 - 1
    first = {pair: line for line, pair in reversed([*enumerate(pairs + several + several, start=1)])}
    expected = [line for line, pair in enumerate(pairs + several + several, start=1) if first[pair] != line]
    assert [line for line, rule in dropped(prepared) if rule == "duplicate"] == expected


@pytest.mark.parametrize(("line", "told"), [("five words are not enough", 0), ("but six words are just enough", 1)])
def test_one_side_of_a_test_pair_tells_from_six_words_on(tmp_path: Path, corpus: Path, line: str, told: int) -> None:
    with corpus.open("a", encoding="utf-8") as file:
        file.write(f"{line}\tune traduction\n")
    test = write_tsv(tmp_path / "test.tsv", [(line, "une autre")])
    prepared = prepare([corpus], tmp_path / "out", CONFIG, test=[test])
    assert prepared.report["overlap"]["test"]["lines"] == told


@pytest.fixture
def uneven(tmp_path: Path) -> Path:
    """Pairs of four to seven words, so that rows of some widths hold only a part of them."""
    cut = [
        (source.split()[: 4 + n % 4], target.split()[: 4 + n % 4]) for n, (source, target) in enumerate(sentences(300))
    ]
    return write_tsv(tmp_path / "uneven.tsv", [(" ".join(source), " ".join(target)) for source, target in cut])


def longest_sides(prepared: Prepared) -> list[int]:
    """Of every pair, the ids of its longer side."""
    corpora = [prepared.corpus(name) for name in ("train", "valid")]
    return [max(map(len, corpus.pair(index))) for corpus in corpora for index in range(len(corpus))]


def test_a_pair_that_just_fits_a_row_stays_and_one_that_just_does_not_is_told(tmp_path: Path, uneven: Path) -> None:
    wide = prepare([uneven], tmp_path / "wide", CONFIG)
    lengths = longest_sides(wide)
    # Beside its ids, each side of a pair has one mark.
    for width in (max(lengths) + 1, max(lengths)):
        config = CONFIG.with_changes(data={"row_width": width})
        prepared = prepare([uneven], tmp_path / str(width), config, tokenizer=tmp_path / "wide" / "tokenizer.model")
        assert sorted(longest_sides(prepared)) == sorted(length for length in lengths if length + 1 <= width)
        lost = sum(length + 1 > width for length in lengths)
        assert [rule for _, rule in dropped(prepared)] == ["too many tokens"] * lost


def test_other_cuts_of_a_pair_fit_its_row_and_a_pair_without_room_is_lost_once(tmp_path: Path, uneven: Path) -> None:
    text = {"algorithm": "unigram", "vocabulary": 320}
    wide = prepare([uneven], tmp_path / "wide", CONFIG.with_changes(text=text))
    width = max(longest_sides(wide))
    lost = longest_sides(wide).count(width)
    # Where all cuts are equally likely most are longer than the best one.
    config = CONFIG.with_changes(text={**text, "segmentations": 3, "sampling_alpha": 0.0}, data={"row_width": width})
    narrow = prepare([uneven], tmp_path / "narrow", config, tokenizer=tmp_path / "wide" / "tokenizer.model")
    assert max(longest_sides(narrow)) == width - 1
    assert [rule for _, rule in dropped(narrow)] == ["too many tokens"] * lost
    assert len(narrow.corpus("train")) == 3 * (300 - lost - len(narrow.corpus("valid")))


def test_the_same_text_is_cut_in_another_way_on_each_line(tmp_path: Path) -> None:
    pairs = sentences(200)
    corpus = write_tsv(tmp_path / "corpus.tsv", [(pairs[n // 4][0], target) for n, (_, target) in enumerate(pairs)])
    config = CONFIG.with_changes(
        text={"algorithm": "unigram", "segmentations": 2, "sampling_alpha": 0.0, "vocabulary": 320}
    )
    prepared = prepare([corpus], tmp_path / "out", config)
    texts_of, train = texts(prepared, "train"), prepared.corpus("train")
    cuts: dict[str, set[tuple[int, ...]]] = {}
    for index in range(len(train) // 2, len(train)):
        cuts.setdefault(texts_of[index][0], set()).add(tuple(train.pair(index)[0]))
    assert sum(len(ways) > 1 for ways in cuts.values()) > len(cuts) / 2


def test_a_given_tokenizer_larger_than_asked_for_is_refused(tmp_path: Path, corpus: Path) -> None:
    path = prepare([corpus], tmp_path / "first", CONFIG).directory / "tokenizer.model"
    with pytest.raises(ConfigError, match=r"has 400 subwords and text\.vocabulary is 399"):
        prepare([corpus], tmp_path / "second", CONFIG.with_changes(text={"vocabulary": 399}), tokenizer=path)


def test_the_vocabulary_is_learned_from_all_parts_of_the_corpus(tmp_path: Path) -> None:
    """The second half is in letters that the first has not: a sample of its beginning would not know them."""
    cyrillic = str.maketrans("abdeiklmnorstu", "абдеиклмнорсту")
    pairs = sentences(300)
    pairs[150:] = [(source.translate(cyrillic), target.translate(cyrillic)) for source, target in pairs[150:]]
    corpus = write_tsv(tmp_path / "corpus.tsv", pairs)
    config = CONFIG.with_changes(text={"sample_lines": 100, "vocabulary": 310})
    tokenizer = prepare([corpus], tmp_path / "out", config).tokenizer()
    for source, _ in (pairs[0], pairs[-1]):
        assert not [one for one in map(tokenizer.piece, tokenizer.encode(source)) if one.startswith("<0x")]


def test_a_file_of_the_same_size_that_says_something_else_is_another(tmp_path: Path, corpus: Path) -> None:
    prepare([corpus], tmp_path / "out", CONFIG)
    corpus.write_bytes(corpus.read_bytes().replace(b"ba", b"bi", 1))
    with pytest.raises(ConfigError, match="the training files are not the same"):
        prepare([corpus], tmp_path / "out", CONFIG)


def test_another_seed_for_the_same_place_is_another_request(tmp_path: Path, corpus: Path) -> None:
    prepare([corpus], tmp_path / "out", CONFIG)
    with pytest.raises(ConfigError, match=r"training\.seed was 1 and is 2"):
        prepare([corpus], tmp_path / "out", CONFIG.with_changes(training={"seed": 2}))


def test_a_report_names_the_first_twenty_places_and_the_log_all(tmp_path: Path, corpus: Path) -> None:
    with corpus.open("a", encoding="utf-8") as file:
        file.write("\tno source\n" * 30)
    prepared = prepare([corpus], tmp_path / "out", CONFIG)
    empty = prepared.report["training"]["dropped"]["empty"]
    assert empty["count"] == 30
    assert [place["line"] for place in empty["first"]] == [*range(301, 321)]
    assert dropped(prepared) == [(line, "empty") for line in range(301, 331)]


def test_only_lines_of_test_sets_are_left_out_where_that_is_asked_for(tmp_path: Path, corpus: Path) -> None:
    valid = write_tsv(tmp_path / "valid.tsv", sentences(5))
    prepared = prepare([corpus], tmp_path / "out", CONFIG.with_changes(data={"drop_test_lines": True}), valid=[valid])
    assert len(prepared.corpus("train")) == 300
    assert dropped(prepared) == []


def test_faults_of_the_test_set_are_told_too(tmp_path: Path) -> None:
    corpus = write_tsv(tmp_path / "corpus.tsv", sentences(60))
    test = tmp_path / "test.tsv"
    test.write_bytes("\ufeffone\tun\n".encode() + b"tw\xffo\tdeux\nthree\ttrois\r\n")
    prepared = prepare([corpus], tmp_path / "out", CONFIG, test=[test])
    part = prepared.report["test"]
    assert (part["read"], [*part["dropped"]], [*part["mended"]]) == (
        3,
        ["broken UTF-8"],
        ["byte-order mark", "carriage return"],
    )
    told = prepared.summary()
    assert "left out of test" in told
    assert "test.tsv:2" in told
    assert "mended in test" in told
