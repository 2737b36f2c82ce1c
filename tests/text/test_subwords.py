"""Subwords: any text survives, none forges a symbol, and learning gives the same vocabulary each time."""

from __future__ import annotations

import math
import pickle
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from qkv.config import TextConfig
from qkv.errors import ConfigError, StorageError, TextError
from qkv.text.cleaning import normalise
from qkv.text.sampling import META, Sampler
from qkv.text.subwords import Tokenizer

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=[]))
SYMBOLS = ["<pad>", "<s>", "</s>", "<unk>", "<to:fr>", "<reserved:0>", "<0x41>", "▁", "▁▁", "\U000f0000"]


def corpus(path: Path, lines: int = 400) -> Path:
    """Sentences of made-up words, some of which look like symbols."""
    generator = random.Random(7)
    words = ["".join(generator.choices("abcdefghiklmnoprstu", k=generator.randint(1, 7))) for _ in range(300)]
    text = [" ".join(generator.choices([*words, *SYMBOLS, "été"], k=generator.randint(2, 9))) for _ in range(lines)]
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return path


def learn(directory: Path, **settings: object) -> Tokenizer:
    config = TextConfig(**{"vocabulary": 500, "target_language": "fr", "source_language": "en", **settings})  # type: ignore[arg-type]
    return Tokenizer.learn([corpus(directory / "corpus")], config, directory / "tokenizer.model")


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return learn(tmp_path_factory.mktemp("tokenizer"), algorithm=request.param)


@pytest.fixture(scope="module")
def unigram(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return learn(tmp_path_factory.mktemp("unigram"), algorithm="unigram")


@given(ANY_TEXT)
def test_any_text_survives(tokenizer: Tokenizer, text: str) -> None:
    text = normalise(text)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.unknown not in ids
    assert tokenizer.encode_all([text, "a b"]) == [ids, tokenizer.encode("a b")]


@given(st.lists(st.sampled_from([*SYMBOLS, "a", "été", "👨\u200d👩\u200d👧", "\ue000", "\U0010ffff", "e\u0327\u0301"])))
def test_no_text_forges_a_symbol(tokenizer: Tokenizer, words: list[str]) -> None:
    controls = {tokenizer.padding, tokenizer.begin, tokenizer.end, tokenizer.unknown}
    controls |= {tokenizer.tag("en"), tokenizer.tag("fr")}
    for joint in ("", " "):
        text = normalise(joint.join(words))
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert not controls & set(ids)


def test_the_vocabulary_has_its_size_and_its_symbols(tokenizer: Tokenizer) -> None:
    assert tokenizer.size == 500
    assert [tokenizer.piece(index) for index in range(4)] == ["<pad>", "<s>", "</s>", "<unk>"]
    assert (tokenizer.tag("en"), tokenizer.tag("fr")) == (4, 5)
    assert tokenizer.languages == ["en", "fr"]
    assert [tokenizer.piece(index) for index in (6, 21, 22)] == ["<reserved:0>", "<reserved:15>", "<0x00>"]


def test_all_that_no_text_has_is_a_mark_but_for_the_end(tokenizer: Tokenizer) -> None:
    """Padding, begin, unknown, both tags and the reserved symbols: ids that no translation may be written with."""
    assert tokenizer.marks == (0, 1, *range(3, 22))


def test_control_symbols_say_nothing(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("a b")
    assert tokenizer.decode([tokenizer.begin, tokenizer.tag("fr"), *ids, tokenizer.end, tokenizer.padding]) == "a b"
    assert tokenizer.decode([]) == ""


def test_an_unknown_language_is_told_what_there_is(tokenizer: Tokenizer) -> None:
    with pytest.raises(ConfigError, match=r"no tag for the language 'de'; it has: en, fr"):
        tokenizer.tag("de")


def test_half_a_character_decodes_to_the_replacement_character(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("\ue000")
    assert "\ufffd" in tokenizer.decode(ids[:-1])


def test_saved_loaded_and_pickled_it_is_the_same(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "copy").write_bytes(tokenizer.model)
    text = "a copied été ▁"
    for copy in (Tokenizer.load(tmp_path / "copy"), Tokenizer(tokenizer.model), pickle.loads(pickle.dumps(tokenizer))):
        assert copy.encode(text) == tokenizer.encode(text)


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_learning_again_elsewhere_gives_the_same_bytes(tmp_path: Path, algorithm: str) -> None:
    here = learn(tmp_path, algorithm=algorithm)
    code = (
        "import sys; from pathlib import Path; from qkv.config import TextConfig; "
        "from qkv.text.subwords import Tokenizer; "
        "Tokenizer.learn([Path(sys.argv[1])], TextConfig(vocabulary=500, target_language='fr', source_language='en', "
        "algorithm=sys.argv[2]), Path(sys.argv[3]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "corpus"), algorithm, str(tmp_path / "other")]
    told = subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / "other").read_bytes() == here.model
    assert told.stdout == told.stderr == b""


def test_too_large_a_vocabulary_is_told_the_largest_that_works(tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"vocabulary 50000 is too large .* --set text\.vocabulary=\d+") as told:
        learn(tmp_path, vocabulary=50_000)
    largest = int(str(told.value).rpartition("=")[2])
    assert learn(tmp_path, vocabulary=largest).size == largest


@pytest.mark.parametrize("vocabulary", [1, 100, 290])
def test_too_small_a_vocabulary_is_told_one_that_works(tmp_path: Path, vocabulary: int) -> None:
    with pytest.raises(
        TextError, match=rf"vocabulary {vocabulary} is too small: .* --set text\.vocabulary=\d+"
    ) as told:
        learn(tmp_path, vocabulary=vocabulary)
    enough = int(str(told.value).rpartition("=")[2])
    assert learn(tmp_path, vocabulary=enough).size == enough


def test_learning_from_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n\n")
    with pytest.raises(TextError, match="no text to learn"):
        Tokenizer.learn([tmp_path / "empty"], TextConfig(), tmp_path / "tokenizer.model")


def test_a_language_that_cannot_be_a_tag_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be a language's tag"):
        learn(tmp_path, source_language="en,fr")


def test_where_nothing_can_be_written_it_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot write"):
        Tokenizer.learn([corpus(tmp_path / "c")], TextConfig(vocabulary=500), tmp_path / "nowhere" / "tokenizer.model")


def test_hostile_files_are_refused_or_harmless(tokenizer: Tokenizer, tmp_path: Path) -> None:
    generator = random.Random(3)
    path = tmp_path / "hostile"
    whole = tokenizer.model
    mutants = [b"", b"text", bytes(100), whole[:-7], whole[: len(whole) // 2], whole[5:]]
    for _ in range(100):
        changed = bytearray(whole)
        for _ in range(3):
            changed[generator.randrange(len(changed))] = generator.randrange(256)
        mutants.append(bytes(changed))
    refused = 0
    for mutant in mutants:
        path.write_bytes(mutant)
        try:
            Tokenizer.load(path).encode("some text")
        except TextError as error:
            assert str(path) in str(error)
            refused += 1
    assert refused > 6


def test_a_foreign_model_is_refused(tmp_path: Path) -> None:
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus(tmp_path / "c")), model_prefix=str(tmp_path / "foreign"), vocab_size=200, minloglevel=2
    )
    with pytest.raises(TextError, match="not one of qkv's"):
        Tokenizer.load(tmp_path / "foreign.model")


def test_a_missing_or_huge_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        Tokenizer.load(tmp_path / "nothing")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(TextError, match="larger than"):
        Tokenizer.load(tmp_path / "huge")


@given(ANY_TEXT, st.integers(0, 1 << 64))
def test_sampled_cuts_say_the_same(unigram: Tokenizer, text: str, seed: int) -> None:
    text = normalise(text)
    ids = unigram.sample(text, 0.1, seed)
    assert unigram.decode(ids) == text
    assert ids == unigram.sample(text, 0.1, seed)
    assert unigram.unknown not in ids


def test_sampled_cuts_differ_by_seed_and_agree_between_processes(unigram: Tokenizer, tmp_path: Path) -> None:
    text = corpus(tmp_path / "c").read_text(encoding="utf-8").splitlines()[0]
    here = [unigram.sample(text, 0.1, seed) for seed in range(10)]
    assert len({tuple(ids) for ids in here}) > 5
    (tmp_path / "model").write_bytes(unigram.model)
    code = (
        "import sys; from pathlib import Path; from qkv.text.subwords import Tokenizer; "
        "print([Tokenizer.load(Path(sys.argv[1])).sample(sys.argv[2], 0.1, seed) for seed in range(10)])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "model"), text]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() == str(here)


def test_a_sharp_distribution_samples_the_best_cut(unigram: Tokenizer, tmp_path: Path) -> None:
    lines = corpus(tmp_path / "c").read_text(encoding="utf-8").splitlines()[:100]
    best = [unigram.encode(line) for line in lines]
    assert [unigram.sample(line, 500.0, 1) for line in lines] == best


SCORES = {"▁": -3.0, "▁a": -2.0, "a": -2.5, "b": -2.2, "ab": -2.0, "ba": -3.5, "▁ab": -4.0, "bé": -3.0}
PIECES = {piece: (number, score) for number, (piece, score) in enumerate(SCORES.items())}
BYTES = range(100, 356)


def all_cuts(word: str) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every way to cut a word, and its log-likelihood; as in SentencePiece, a character that is no piece is bytes."""
    if not word:
        yield (), 0.0
    for length in range(1, len(word) + 1):
        part = word[:length]
        ids: tuple[int, ...]
        if part in PIECES:
            ids, score = (PIECES[part][0],), PIECES[part][1]
        elif length == 1:
            ids, score = tuple(BYTES[byte] for byte in part.encode()), min(SCORES.values()) - 10
        else:
            continue
        for more, rest in all_cuts(word[length:]):
            yield (*ids, *more), score + rest


@pytest.mark.parametrize(("text", "alpha"), [("abab", 0.5), ("abab", 1.0), ("abé", 0.1), ("ab", 0.0)])
def test_cuts_are_drawn_as_often_as_they_are_likely(text: str, alpha: float) -> None:
    likelihood = {ids: math.exp(alpha * score) for ids, score in all_cuts(META + text)}
    draws, sampler = 4000, Sampler(PIECES, BYTES)
    found = Counter(tuple(sampler.sample(text, alpha, seed)) for seed in range(draws))
    assert found.keys() <= likelihood.keys()
    expected = {ids: draws * one / sum(likelihood.values()) for ids, one in likelihood.items()}
    chi_square = sum((found[ids] - count) ** 2 / count for ids, count in expected.items())
    # Its mean is the degrees of freedom and its variance twice that: five deviations are never chance.
    freedom = len(likelihood) - 1
    assert freedom >= 3
    assert chi_square < freedom + 5 * math.sqrt(2 * freedom)
