"""What is shown of a translation, for every kind of translator."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qkv import Translator
from qkv.errors import ConfigError
from qkv.export import export
from qkv.inspecting.inspection import USES, Inspection
from qkv.inspecting.opened import Came, Opened
from qkv.inspecting.sides import side
from qkv.text.subwords import Tokenizer
from qkv.translate import Mbr, Relay, Sampling
from tests.engines.exporting import exported
from tests.models.families import END, FAMILIES, small_model
from tests.toy import held_out

TEXT, _ = held_out()[0]


@pytest.fixture(scope="module", params=["run", "float32", "int8"])
def translator(request: pytest.FixtureRequest, toy_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Translator:
    if request.param == "run":
        return Translator.load(toy_run, device="cpu")
    output = tmp_path_factory.mktemp("inspected") / "model"
    export(toy_run, output, precision=request.param, shortlist=request.param == "int8")
    return Translator.load(output)


@pytest.fixture(scope="module")
def inspection(translator: Translator) -> Inspection:
    return translator.translate([TEXT])[0].attention


def unpacked(packed: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["data"]), "<f2").astype(np.float32).reshape(packed["shape"])


def test_rows_are_who_looks_and_columns_who_is_seen_and_every_row_sums_to_one(inspection: Inspection) -> None:
    told = json.loads(inspection.to_json())
    source, target, read = (len(told[name]["tokens"]) for name in ("source", "target", "read"))
    layers, heads = told["model"]["encoder_layers"], told["model"]["heads"]
    assert target == read == len(told["probabilities"])
    assert {use: tuple(told["attention"][use]["shape"]) for use in USES} == {
        "encoder": (layers, heads, source, source),
        "decoder": (told["model"]["decoder_layers"], heads, read, read),
        "cross": (told["model"]["decoder_layers"], heads, read, source),
    }
    for use in USES:
        np.testing.assert_allclose(unpacked(told["attention"][use]).sum(-1), 1, atol=5e-3)
    assert not np.triu(unpacked(told["attention"]["decoder"]), 1).any()


def test_the_vectors_make_the_weights(inspection: Inspection) -> None:
    told = inspection.as_json()
    for use in ("encoder", "cross"):
        query, key, value = (unpacked(told["vectors"][use][name]) for name in "qkv")
        score = query @ key.swapaxes(-1, -2) / np.sqrt(told["model"]["key_width"])
        power = np.exp(score - score.max(-1, keepdims=True))
        np.testing.assert_allclose(power / power.sum(-1, keepdims=True), unpacked(told["attention"][use]), atol=2e-2)
        assert value.shape[:3] == key.shape[:3]
    one = inspection.head("cross", 0, 1)
    assert (one["use"], one["layer"], one["head"]) == ("cross", 0, 1)
    np.testing.assert_array_equal(unpacked(one["k"]), unpacked(told["vectors"]["cross"]["k"])[0, 1])


def test_vectors_that_are_too_many_are_left_out(inspection: Inspection) -> None:
    whole = inspection.as_json()
    count = sum(np.prod(packed["shape"]) for use in whole["vectors"].values() for packed in use.values())
    assert inspection.as_json(most_vectors=count) == whole
    assert inspection.as_json(most_vectors=count - 1) == {**whole, "vectors": None}


def test_tokens_are_what_was_written_and_words_are_made_of_them(translator: Translator, inspection: Inspection) -> None:
    found = translator.translate([TEXT], align=True)[0]
    told = inspection.as_json()
    assert tuple(one["text"] for one in told["target"]["tokens"]) == found.tokens
    assert [one["text"] for one in told["read"]["tokens"]] == ["<s>", *found.tokens[:-1]]
    assert (told["source"]["text"], told["target"]["text"]) == (TEXT, found.text)
    for name, text in (("source", TEXT), ("target", found.text)):
        tokens = told[name]["tokens"]
        assert [word["text"] for word in told[name]["words"]] == text.split()
        for number, word in enumerate(told[name]["words"]):
            first, behind = word["tokens"]
            assert "".join(one["text"] for one in tokens[first:behind]).replace("▁", "") == word["text"]
            assert {one["word"] for one in tokens[first:behind]} == {number}
        assert tokens[-1] == {"text": "</s>", "word": None}
    assert found.alignment is not None
    links = {(link.source, link.target) for link in found.alignment.links}
    assert {(source, target) for target, some in enumerate(told["alignment"]) for source in some} == links


def test_the_search_tells_how_the_translation_was_found(translator: Translator, inspection: Inspection) -> None:
    found, search = translator.translate([TEXT])[0], inspection.as_json()["search"]
    assert search["beam"] == translator.beam
    root, *chosen = [node for node in search["nodes"] if node["state"] == "chosen"]
    assert (root["id"], root["parent"], root["token"]) == (0, None, None)
    assert tuple(node["token"] for node in chosen) == found.tokens
    assert chosen[-1]["score"] == pytest.approx(found.score, abs=1e-4)
    assert all(node["why"] for node in search["nodes"])


def test_probabilities_are_the_models_and_the_others_come_in_order(
    translator: Translator, inspection: Inspection
) -> None:
    found = translator.translate([TEXT])[0]
    own = np.exp(found.token_scores)
    shown = np.array([one.probability for one in inspection.probabilities])
    if inspection.model.note is None:
        np.testing.assert_allclose(shown, own, atol=1e-3)
    else:
        # A shortlist leaves out what is hardly likely: what is left is likelier.
        assert "shortlist" in inspection.model.note
        assert (shown < own + 5e-3).all()
    for text, one in zip(found.tokens, inspection.probabilities, strict=True):
        likely = [other.probability for other in one.others]
        assert likely == sorted(likely, reverse=True)
        assert len(likely) == 9
        assert text not in [other.text for other in one.others]
        assert one.probability + sum(likely) < 1 + 1e-4


def test_looking_inside_waits_until_somebody_asks_and_is_done_once(translator: Translator) -> None:
    found = translator.translate([TEXT], alternatives=2)[0]
    assert "attention" not in vars(found)
    assert found.attention is found.attention
    assert found.attention.weights["cross"].ndim == 4
    other = found.alternatives[0]
    assert other.attention.target.text == other.text
    assert other.attention.search is not None
    chosen = [node.token for node in other.attention.search.nodes if node.state == "chosen"]
    assert len(chosen) == len(other.tokens) + 1


@pytest.mark.parametrize("how", [{"sampling": Sampling()}, {"mbr": Mbr(samples=3)}])
def test_what_no_beam_found_has_no_search_to_show(toy_run: Path, how: dict[str, Any]) -> None:
    found = Translator.load(toy_run, device="cpu").translate([TEXT], **how)[0]
    assert found.attention.search is None
    assert found.attention.as_json()["search"] is None


def test_given_translations_and_such_that_grow_can_be_looked_into(toy_run: Path) -> None:
    translator = Translator.load(toy_run, device="cpu")
    given = translator.score([TEXT], [TEXT])[0]
    assert (given.attention.target.text, given.attention.search) == (TEXT, None)
    stream = translator.stream(TEXT)
    text = "".join(stream)
    assert stream.translation is not None
    grown = stream.translation.attention
    assert grown.target.text == text
    assert grown.search is not None
    assert grown.search.beam == 1


def test_a_relay_shows_its_second_step_and_says_so(toy_run: Path) -> None:
    translator = Translator.load(toy_run, device="cpu")
    first, second = translator.between("fi", "en"), translator.between("en", "de")
    relay = Relay(first, second)
    shown = relay.translate([TEXT])[0].attention
    assert shown.source.text == first.translate([TEXT])[0].text
    assert (shown.source_language, shown.target_language) == ("en", "de")
    assert shown.model.note is not None
    assert "en" in shown.model.note


def test_what_cannot_be_looked_into_says_what_can(toy_run: Path) -> None:
    translator = Translator.load(toy_run, device="cpu")
    empty = translator.translate([""])[0]
    several = Translator.joined({"one": translator, "other": translator}).translate([TEXT])[0]
    for one in (empty, several):
        with pytest.raises(ConfigError, match="one model, loaded from its directory"):
            _ = one.attention


def test_a_right_to_left_model_shows_what_it_wrote_in_the_order_of_writing(toy_data: Path) -> None:
    tokenizer = Tokenizer.load(toy_data / "tokenizer.model")
    ids = [*tokenizer.encode("basa koti lu")]
    shown = side(tokenizer, [*ids[::-1], tokenizer.end], backwards=True)
    assert shown.text == "basa koti lu"
    assert [token.text for token in shown.tokens] == [*map(tokenizer.piece, ids[::-1]), "</s>"]
    for word in shown.words:
        pieces = [token.text for token in shown.tokens[word.first : word.behind]]
        assert "".join(pieces[::-1]).replace("▁", "") == word.text


@pytest.mark.parametrize("family", ["learned", "paper"])
def test_learned_positions_are_told(family: str, toy_data: Path, tmp_path: Path) -> None:
    model = small_model(family)
    exported(tmp_path, model, "float32")
    opened = Opened.exported(tmp_path, FAMILIES[family], Tokenizer.load(toy_data / "tokenizer.model"))
    told = opened.inspect(Came([9, 5, END], [7, END], False, (None, None), None, None, None)).as_json()["positions"]
    if family == "paper":
        assert told is None
    else:
        # More than there are tokens, so that a pattern can be seen.
        expected = model.state_dict()["inputs.positions.weight_KD"][:24]
        np.testing.assert_allclose(unpacked(told), expected, atol=1e-3)
