"""Models are found by their languages, loaded once, and joined where none goes all the way."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import qkv
from qkv.config import Config
from qkv.errors import ConfigError
from qkv.settings import from_json, to_json
from qkv.text.languages import Direction
from qkv.training import train
from qkv.translate import Catalogue, Relay, Route, Translator, making, translate_document
from qkv.translate.making import Makings
from tests.toy import QUICK, Command, one_thread, pairs, write_tsv


def named(run: Path, folder: Path, direction: str) -> Path:
    """A copy of the toy run that says what its languages are; as nobody tags its sources, that changes nothing else."""
    folder.mkdir(parents=True)
    for name in ("tokenizer.model", "final"):
        (folder / name).symlink_to(run / name)
    config: Config = from_json((run / "config.json").read_text())
    source, target = Direction.parse(direction)
    config = config.with_changes(text={"source_language": source, "target_language": target})
    (folder / "config.json").write_text(to_json(config))
    return folder


@pytest.fixture
def models(toy_run: Path, tmp_path: Path) -> Path:
    for direction in ("en-de", "de-en", "en-fr"):
        named(toy_run, tmp_path / "models" / direction, direction)
    return tmp_path / "models"


def test_directions_are_those_of_the_models_and_those_through_english(models: Path) -> None:
    found = Catalogue.open([models]).directions()
    assert {*found} == {Route("en", "de"), Route("de", "en"), Route("en", "fr"), Route("de", "fr", "en")}
    assert str(found[-1]) == "de-fr (through en)"


def test_a_model_is_loaded_once_and_when_it_is_needed(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    def counted(path: Path, *how: Any) -> Makings:
        loaded.append(path.name)
        return making.loaded(path, *how)

    monkeypatch.setattr("qkv.translate.translator.loaded", counted)
    catalogue = Catalogue.open([models])
    assert loaded == []
    for _ in range(2):
        translator = catalogue.translator("EN", "deu")
        assert [one.text for one in translator.translate(["basa koti"])] == ["itok asab"]
    assert loaded == ["en-de"]


def test_a_relay_translates_twice_and_links_the_words_of_both_ends(models: Path) -> None:
    relay = Catalogue.open([models]).translator("de", "fr")
    assert isinstance(relay, Relay)
    assert (relay.source_language, relay.through, relay.target_language) == ("de", "en", "fr")
    texts = ["basa koti", "", "nemo ludu risa"]
    found = relay.translate(texts, align=True, alternatives=1)
    step = Translator.load(models / "en-de")
    between = [one.text for one in step.translate(texts)]
    assert [one.text for one in found] == [one.text for one in step.translate(between)]
    assert [len(one.alternatives) for one in found] == [1, 0, 1]
    alignment = found[2].alignment
    assert alignment is not None
    assert (alignment.source_text, alignment.target_text) == (texts[2], found[2].text)
    stream = relay.stream("basa koti")
    assert "".join(stream) == step.translate([between[0]], beam=1)[0].text
    note = "The text went from de into en first; this is how en became fr."
    assert [one.attention.model.note for one in (found[0], stream.translation) if one is not None] == [note, note]
    assert len(translate_document(relay, "basa koti\nnemo").translations) == 2
    with pytest.raises(ConfigError, match="de-fr goes through en"):
        relay.score(["a"], ["b"])


def test_what_is_cut_off_on_the_way_is_cut_off(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Translator.load(models / "de-en"), Translator.load(models / "en-fr")
    texts = ["basa koti", "nemo ludu"]
    whole, cut = first.translate(texts)
    found = Relay(first, second).translate(texts, alternatives=1)
    assert [one.complete for best in found for one in (best, *best.alternatives)] == [True] * 4
    cut = dataclasses.replace(cut, complete=False)
    monkeypatch.setattr(first, "translate", lambda texts, **_: [whole, cut] if len(texts) == 2 else [cut])
    again = Relay(first, second).translate(texts, alternatives=1)
    assert [one.complete for best in again for one in (best, *best.alternatives)] == [True, True, False, False]
    assert [one.text for one in again] == [one.text for one in found]
    stream = Relay(first, second).stream(texts[1])
    assert "".join(stream) == second.translate([cut.text], beam=1)[0].text
    assert stream.translation is not None
    assert not stream.translation.complete


def test_what_no_model_can_do_is_told_with_what_they_can(models: Path) -> None:
    catalogue = Catalogue.open([models])
    with pytest.raises(ConfigError, match=r"translates from it into en; there is de-en, en-de, en-fr, de-fr \(through"):
        catalogue.translator("Italian", "en")
    with pytest.raises(ConfigError, match=r"there are several directions, en-de, en-fr; say which"):
        catalogue.translator("en", None)
    assert catalogue.route(None, "en") == Route("de", "en")


def test_models_are_looked_for_in_the_usual_places(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QKV_MODELS", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    package = tmp_path / "checkout" / "qkv" / "__init__.py"
    monkeypatch.setattr(qkv, "__file__", str(package))
    with pytest.raises(ConfigError) as told:
        Catalogue.open().route("en", "de")
    place = tmp_path / "home" / "qkv" / "models"
    for words in (f"copy the folder models/ of qkv's repository to {place}", f"--output {place}/NAME", "QKV_MODELS"):
        assert words in str(told.value)
    assert "\n" not in str(told.value)
    (tmp_path / "home" / "qkv").mkdir(parents=True)
    shutil.copytree(models, tmp_path / "home" / "qkv" / "models", symlinks=True)
    assert len(Catalogue.open().directions()) == 4
    # What is not qkv's own checkout may have a folder of that name for something else.
    package.parent.mkdir(parents=True)
    (package.parent.parent / "models").symlink_to(models / "en-de")
    assert Catalogue.open().directions()[0] == Route("de", "en")
    (package.parent.parent / "pyproject.toml").touch()
    assert Catalogue.open().directions()[0] == Route("en", "de")
    monkeypatch.setenv("QKV_MODELS", f"{tmp_path / 'nothing'}:{models / 'en-fr'}")
    assert Catalogue.open().directions()[0] == Route("en", "fr")


def test_a_wrong_place_in_the_environment_is_told_of(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    places = [tmp_path / "nothing", tmp_path / "empty", models]
    monkeypatch.setenv("QKV_MODELS", os.pathsep.join(map(str, places)))
    assert Catalogue.open().directions()[0] == Route("de", "en")
    assert capsys.readouterr().err.splitlines() == [
        f"qkv: warning: QKV_MODELS: no such directory: {tmp_path / 'nothing'}; mend it, or unset it",
        f"qkv: warning: QKV_MODELS: there is no model in {tmp_path / 'empty'}; mend it, or unset it",
    ]


def test_a_model_that_cannot_be_read_is_left_out(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (models / "de-en" / "config.json").write_text(json.dumps({"text": {"nothing": 1}}))
    assert Route("de", "en") not in Catalogue.open([models]).directions()
    told = capsys.readouterr().err
    assert f"{models / 'de-en' / 'config.json'} cannot be read" in told
    assert "it is left out" in told


@pytest.mark.parametrize("lost", ["config.json", "tokenizer.model", "manifest.json", "step.onnx"])
def test_the_only_model_is_there_though_it_is_damaged(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command, lost: str
) -> None:
    model = tmp_path / "checkout" / "models" / "default"
    shutil.copytree(exported, model)
    config = from_json((model / "config.json").read_text())
    config = config.with_changes(text={"source_language": "en", "target_language": "de"})
    (model / "config.json").write_text(to_json(config))
    (model / lost).unlink()
    monkeypatch.delenv("QKV_MODELS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(qkv, "__file__", str(tmp_path / "checkout" / "qkv" / "__init__.py"))
    (tmp_path / "checkout" / "pyproject.toml").touch()
    for named in ([], ["--model", model.parent]):
        ran = command("translate", *named, "--from", "en", "--to", "de", given=b"basa\n")
        assert (ran.code, ran.out) == (3, b"")
        assert str(model) in ran.err
        assert "no model" not in ran.err


def test_translate_needs_no_run_where_there_are_models(models: Path, command: Command) -> None:
    ran = command("translate", "--model", models, "--from", "en-GB", "--to", "German", given=b"basa koti\n")
    assert (ran.code, ran.lines) == (0, ["itok asab"])
    ran = command("translate", "--model", models, "--from", "de", "--to", "fr", given=b"basa koti\n")
    assert (ran.code, len(ran.lines)) == (0, 1)
    assert "translating de to fr through en" in ran.err
    ran = command("translate", "--model", models, "--from", "de", "--to", "it", given=b"basa\n")
    assert (ran.code, "there is de-en, en-de, en-fr" in ran.err) == (2, True)
    ran = command("translate", models / "en-de", "--to", "fr", given=b"basa\n")
    assert (ran.code, "no model here translates into fr; there is en-de" in ran.err) == (2, True)


def test_a_model_of_several_directions_goes_through_a_language_of_its_own(tmp_path: Path, command: Command) -> None:
    some = pairs(260)
    files = [write_tsv(tmp_path / "a.en-de.tsv", some[:130]), write_tsv(tmp_path / "b.en-fr.tsv", some[130:])]
    run = tmp_path / "run"
    with one_thread():
        train(files, run, QUICK.with_changes(text={"directions": "en-de,de-en,en-fr", "vocabulary": 340}))
    asked = ["--from", "de", "--to", "fr"]
    found = [command("translate", *named, *asked, given=b"basa koti\n") for named in ([run], ["--model", run])]
    assert [ran.code for ran in found] == [0, 0], found[0].err
    assert found[0].out == found[1].out
    for ran in found:
        assert "translating de to fr through en" in ran.err
    # What neither way has, both refuse with the same list.
    for named in ([run], ["--model", run]):
        ran = command("translate", *named, "--from", "fr", "--to", "de", given=b"basa\n")
        assert (ran.code, "fr into de; there is en-de, de-en, en-fr, de-fr (through en)" in ran.err) == (2, True)


def test_scoring_and_aligning_need_no_run_either(models: Path, command: Command) -> None:
    pair = b"basa koti\titok asab\n"
    scored = command("score", "--model", models, "--from", "en", "--to", "de", given=pair)
    assert (scored.code, scored.lines) == (0, command("score", models / "en-de", given=pair).lines)
    aligned = command("align", "--model", models, "--from", "en", "--to", "de", "--words", given=pair)
    assert (aligned.code, aligned.lines) == (0, command("align", models / "en-de", "--words", given=pair).lines)
    through = command("score", "--model", models, "--from", "de", "--to", "fr", given=pair)
    assert (through.code, "de-fr goes through en" in through.err) == (2, True)
