"""One text in, one translation out, whatever the text says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import qkv
from qkv import Translator, checkpoint
from qkv.config import Config, SearchConfig
from qkv.data.batch import Packed
from qkv.engines.plain import PlainEngine
from qkv.errors import CheckpointError, ConfigError
from qkv.layers.ordered import OrderedLinear
from qkv.models.build import build
from qkv.models.encoder_decoder import EncoderDecoder, State
from qkv.prepare import prepare
from qkv.run import RunDirectory
from qkv.search.sample import Sampling
from qkv.text.subwords import Tokenizer
from qkv.training import train_prepared
from qkv.translate.making import Makings
from tests import toy
from tests.toy import QUICK
from tests.translate.made import untrained

SOURCES = [source for source, _ in toy.held_out()]


@pytest.fixture(scope="module")
def translator(toy_run: Path) -> Translator:
    return Translator.load(toy_run)


def model_of(translator: Translator) -> EncoderDecoder:
    assert isinstance(translator.engine, PlainEngine)
    return translator.engine.model


def texts(translations: list[qkv.Translation]) -> list[str]:
    return [one.text for one in translations]


def test_the_public_name_translates(toy_run: Path) -> None:
    (translation,) = qkv.Translator.load(str(toy_run)).translate(["basa kodu"])
    assert isinstance(translation, qkv.Translation)
    assert translation.text == "udok asab"
    assert translation.complete
    assert translation.score < 0
    assert translation.alternatives == ()


def test_translations_come_in_the_order_of_the_texts(translator: Translator) -> None:
    mixed = [SOURCES[0], "", SOURCES[1], " \t\u3000 ", SOURCES[2], "\u200b", "\r\n"]
    found = translator.translate(mixed)
    assert len(found) == len(mixed)
    for number in (1, 3, 6):
        assert found[number] == qkv.Translation("", 0.0, complete=True)
    assert texts([found[0], found[2], found[4]]) == texts(translator.translate(SOURCES[:3]))


def test_no_texts_are_no_translations(translator: Translator) -> None:
    assert translator.translate([]) == []


@pytest.mark.parametrize("beam", [1, 4])
def test_a_text_is_translated_alike_alone_and_in_a_batch(translator: Translator, beam: int) -> None:
    together = translator.translate(SOURCES[:24], beam=beam)
    alone = [translator.translate([source], beam=beam)[0] for source in SOURCES[:24]]
    assert texts(together) == texts(alone)
    assert [one.score for one in together] == pytest.approx([one.score for one in alone], abs=1e-4)


def test_the_size_of_a_batch_changes_nothing(toy_run: Path) -> None:
    config = RunDirectory(toy_run).config()
    loaded = Translator.load(toy_run)
    small = Translator(Makings.of(loaded.engine, loaded.tokenizer, SearchConfig(batch_tokens=1), right_to_left=False))
    assert config.search.batch_tokens > 1
    assert texts(small.translate(SOURCES[:12])) == texts(loaded.translate(SOURCES[:12]))


@settings(max_examples=60)
@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=30), max_size=4))
def test_any_text_goes_through(translator: Translator, some: list[str]) -> None:
    found = translator.translate(some, beam=2)
    assert len(found) == len(some)
    for text, translation in zip(some, found, strict=True):
        translation.text.encode()
        assert text.strip() or not translation.text


def test_letters_that_were_never_seen_go_through(translator: Translator) -> None:
    odd = ["日本語 текст", "🎉" * 5, "\x00basa\x00", "▁▁", "<s> </s> <pad> <to:fr>", "\ud800 alone", "e\u0301" * 3]
    assert len(translator.translate(odd)) == len(odd)


def test_the_n_best_are_sorted_by_score_and_differ(translator: Translator) -> None:
    for translation in translator.translate(SOURCES[:8], beam=5, alternatives=4):
        every = [translation, *translation.alternatives]
        assert len(every) == 5
        assert [one.score for one in every] == sorted((one.score for one in every), reverse=True)
        assert len({one.text for one in every}) > 1
    # The last bits of a score depend on who is still in the batch, which is another question with alternatives.
    best = translator.translate(SOURCES[:8], beam=5)
    several = translator.translate(SOURCES[:8], beam=5, alternatives=4)
    assert [one.text for one in best] == [one.text for one in several]
    assert [one.score for one in best] == pytest.approx([one.score for one in several], abs=1e-4)


def test_a_score_is_the_log_probability_over_the_length_penalty(toy_run: Path, translator: Translator) -> None:
    tokenizer = Tokenizer.load(toy_run / "tokenizer.model")
    plain, halved = (translator.translate(SOURCES[:9], beam=1, length_penalty=alpha) for alpha in (0.0, 0.5))
    for one, other in zip(plain, halved, strict=True):
        length = len(tokenizer.encode(one.text)) + 1
        assert other.score == pytest.approx(one.score / ((5 + length) / 6) ** 0.5, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"beam": 0}, r"search\.beam is 0; it must be at least 1"),
        ({"beam": -3}, r"search\.beam is -3"),
        ({"alternatives": 4}, "the 5 best need a beam of at least 5, not 4"),
        ({"alternatives": -1}, "give 0 or more"),
        ({"beam": 1, "alternatives": 1}, "the 2 best need a beam of at least 2, not 1"),
        ({"length_penalty": -1.0}, r"search\.length_penalty is -1"),
        ({"length_penalty": float("nan")}, r"search\.length_penalty takes a number, not nan"),
        ({"length_penalty": 1e9}, r"search\.length_penalty is 1000000000"),
        ({"seed": -1}, "the seed is -1"),
        ({"seed": 1 << 64}, "the seed is 18446744073709551616"),
    ],
)
def test_a_search_that_cannot_be_is_told(translator: Translator, options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        translator.translate(["basa"], **options)


def test_a_text_in_place_of_a_list_is_told(translator: Translator) -> None:
    with pytest.raises(TypeError, match=r"texts is a list of texts, such as \[text\]"):
        translator.translate("basa kodu")


@pytest.mark.parametrize("other", [None, 3, b"basa", ["basa"]])
def test_what_is_no_text_is_told_with_its_place(translator: Translator, other: Any) -> None:
    with pytest.raises(TypeError, match=re.escape(f"texts[1] is {other!r}")):
        translator.translate(["basa", other])


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf"), 1e-40])
def test_a_temperature_that_cannot_be_is_told(temperature: float) -> None:
    with pytest.raises(ConfigError, match="temperature is"):
        Sampling(temperature)


def test_the_same_seed_draws_the_same_and_another_seed_others(toy_data: Path) -> None:
    nonsense = untrained(toy_data)
    first, again, other = (nonsense.translate(SOURCES[:5], sampling=Sampling(), seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert texts(first) != texts(other)


def test_drawing_draws_as_many_as_are_asked_for(toy_data: Path) -> None:
    drawn = untrained(toy_data).translate(["basa", "", "kodu"], sampling=Sampling(top_k=20), alternatives=6)
    assert [len(one.alternatives) for one in drawn] == [6, 0, 6]
    scores = [drawn[0].score, *(one.score for one in drawn[0].alternatives)]
    assert scores == sorted(scores, reverse=True)


def test_drawing_leaves_the_other_random_numbers_alone(translator: Translator) -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    translator.translate(["basa"], sampling=Sampling(), seed=9)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("how", [{"beam": 1}, {"beam": 3}, {"sampling": Sampling()}])
def test_a_translation_is_no_longer_than_its_source_and_the_extra_length(toy_data: Path, how: dict[str, Any]) -> None:
    tokenizer = Tokenizer.load(toy_data / "tokenizer.model")
    translations = untrained(toy_data, extra_length=4).translate(SOURCES[:10], **how)
    for source, one in zip(SOURCES, translations, strict=False):
        # The source's end counts as one of its tokens, and so does the translation's.
        limit = len(tokenizer.encode(source)) + 1 + 4
        assert len(one.tokens) == len(one.token_scores) <= limit
        assert one.complete == (one.tokens[-1] == "</s>")
        assert one.complete or len(one.tokens) == limit
    assert not all(one.complete for one in translations)


def test_a_text_over_the_limit_is_cut_with_a_warning(toy_data: Path) -> None:
    warnings: list[str] = []
    nonsense = untrained(toy_data, warnings, longest_source=6)
    tokenizer = Tokenizer.load(toy_data / "tokenizer.model")
    long = "basa kodu nesa lumo riti basa kodu"
    ids = tokenizer.encode(long)
    assert len(ids) > 6
    (found,) = nonsense.translate([long])
    assert warnings == [f"a text of {len(ids)} tokens ({long[:30]!r}…) is cut: only the first 5 are translated"]
    assert found == nonsense.translate([tokenizer.decode(ids[:5])])[0]
    assert len(warnings) == 1


def test_a_warning_goes_to_standard_error(toy_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = Translator.load(toy_run)
    loaded.translate(["basa " * 1100], beam=1)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("qkv: warning: a text of ")


@pytest.mark.parametrize("how", [{"beam": 1}, {"beam": 4}, {"sampling": Sampling()}])
def test_learned_positions_are_never_left(toy_data: Path, tmp_path: Path, how: dict[str, Any]) -> None:
    config = QUICK.with_changes(
        model={"positions": "learned", "longest": 32}, training={"steps": 1, "validation_sentences": 0}
    )
    train_prepared(toy_data, tmp_path / "run", config)
    loaded = Translator.load(tmp_path / "run")
    for words in (1, 10, 30, 31, 32, 33, 200):
        assert len(loaded.translate(["basa " * words], **how)) == 1


def test_progress_counts_every_text(translator: Translator) -> None:
    counted: list[int] = []
    translator.translate(["basa", "", "kodu", " "], progress=counted.append)
    assert sum(counted) == 4


def test_loading_needs_nothing_but_the_weights(toy_run: Path, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.model"):
        shutil.copy(toy_run / name, tmp_path / name)
    shutil.copytree(toy_run / "final", tmp_path / "final")
    assert texts(Translator.load(tmp_path).translate(SOURCES[:3])) == texts(
        Translator.load(toy_run).translate(SOURCES[:3])
    )


def test_a_run_that_is_training_translates_with_its_newest_checkpoint(toy_run: Path, tmp_path: Path) -> None:
    shutil.copytree(toy_run, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "final")
    assert texts(Translator.load(tmp_path / "run").translate(SOURCES[:3])) == texts(
        Translator.load(toy_run).translate(SOURCES[:3])
    )


@pytest.fixture
def run(tmp_path: Path, toy_data: Path) -> Path:
    train_prepared(toy_data, tmp_path / "run", QUICK.with_changes(training={"steps": 1}))
    return tmp_path / "run"


def test_a_tokenizer_of_the_same_size_that_is_not_the_runs_is_told(run: Path, tmp_path: Path) -> None:
    corpus = toy.write_tsv(tmp_path / "other.tsv", toy.pairs(150, seed=8))
    other = prepare([corpus], tmp_path / "other", QUICK)
    assert other.tokenizer().size == Tokenizer.load(run / "tokenizer.model").size
    shutil.copy(tmp_path / "other" / "tokenizer.model", run / "tokenizer.model")
    with pytest.raises(CheckpointError, match=r"tokenizer\.model is not the tokenizer that .* was trained with"):
        Translator.load(run)


def test_weights_that_do_not_fit_the_config_are_told(run: Path) -> None:
    """Where an older version did not keep the settings they were learned with."""
    saved = checkpoint.read(run / "final")
    del saved.state["model"]
    checkpoint.write(run / "final", saved.tensors, saved.state)
    config = json.loads((run / "config.json").read_text())
    config["model"]["hidden"] = 40
    (run / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=r"do not fit .*config\.json"):
        Translator.load(run)


def test_what_is_missing_in_a_run_is_told(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such run directory"):
        Translator.load(tmp_path / "nothing")
    saved = checkpoint.read(run / "final")
    shutil.rmtree(run / "final")
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(CheckpointError, match="has no weights yet; train it first"):
        Translator.load(run)
    checkpoint.write(run / "final", saved.tensors, saved.state)
    (run / "tokenizer.model").unlink()
    with pytest.raises(CheckpointError, match=r"tokenizer\.model is missing"):
        Translator.load(run)


def test_a_translator_knows_its_language(toy_data: Path) -> None:
    config: Config = QUICK.with_changes(text={"target_language": "fr"})
    tokenizer = Tokenizer.load(toy_data / "tokenizer.model")
    model = build(QUICK.model, tokenizer.size, seed=1)
    assert Translator.of(model, tokenizer, config).target_language == "fr"


def test_a_text_that_just_fits_is_translated_whole(toy_data: Path) -> None:
    """Its end takes one of the places."""
    warnings: list[str] = []
    tokens = len(Tokenizer.load(toy_data / "tokenizer.model").encode(SOURCES[0]))
    untrained(toy_data, warnings, longest_source=tokens + 1).translate(SOURCES[:1])
    assert warnings == []
    untrained(toy_data, warnings, longest_source=tokens).translate(SOURCES[:1])
    assert len(warnings) == 1


@pytest.mark.parametrize("how", [{"beam": 2}, {"sampling": Sampling(temperature=3.0)}])
def test_no_mark_is_ever_written(toy_data: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]) -> None:
    """Even by a model that would like to write nothing else."""
    nonsense = untrained(toy_data)
    written: set[int] = set()

    def decode(_: Tokenizer, ids: list[int]) -> str:
        written.update(ids)
        return ""

    monkeypatch.setattr(Tokenizer, "decode", decode)
    with torch.no_grad():
        model_of(nonsense).inputs.weight_VD[[*nonsense.tokenizer.marks]] *= 20
    nonsense.translate(SOURCES[:10], **how)
    assert written
    assert not written & {*nonsense.tokenizer.marks, nonsense.tokenizer.end}


@pytest.mark.parametrize("how", [{"beam": 1}, {"beam": 3}, {"sampling": Sampling(), "alternatives": 1}])
def test_no_batch_has_more_positions_than_asked_for(
    toy_data: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    """Padding and hypotheses included: what a sentence's translations look at counts once for each."""
    nonsense = untrained(toy_data, batch_tokens=120, extra_length=0)
    sound, positions = model_of(nonsense).step, []

    def step(target: Packed, state: State) -> tuple[torch.Tensor, State]:
        positions.append(len(target.ids_RW) * state.source_segments.size(1))
        return sound(target, state)

    monkeypatch.setattr(model_of(nonsense), "step", step)
    nonsense.translate(SOURCES[:30], **how)
    assert 60 < max(positions) <= 120


def test_on_a_cpu_a_loaded_model_is_laid_out_for_translating(toy_run: Path) -> None:
    parts = [*model_of(Translator.load(toy_run, device="cpu")).modules()]
    assert any(isinstance(part, OrderedLinear) for part in parts)
    assert not any(isinstance(part, nn.Linear) for part in parts)


def test_what_nobody_waits_for_comes_back_empty_and_the_others_as_ever(toy_run: Path) -> None:
    translator = Translator.load(toy_run, device="cpu")
    texts = ["abc", "defg", "hij"]
    found = translator.translate(texts, abandoned=lambda number: number == 1)
    alone = translator.translate(texts)
    assert [one.text for one in found] == [alone[0].text, "", alone[2].text]
    assert [one.complete for one in found] == [True, False, True]
