"""All models that are here are served by one server, and what no model has goes through English."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from qkv.config import Config
from qkv.errors import ConfigError
from qkv.export import export
from qkv.serve.desk import Desk
from qkv.serve.detecting import Detector
from qkv.serve.engine import Engine
from qkv.serve.languages import Direction, Languages, language
from qkv.serve.models import load
from qkv.serve.settings import Settings
from qkv.settings import from_json, to_json
from qkv.text.languages import NAMES, OWN_NAMES
from tests.serve.served import Served, running, with_turns
from tests.toy import Command


@pytest.fixture(scope="module")
def models(toy_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy run, which turns words round, as models of three directions."""
    folder = tmp_path_factory.mktemp("catalogue")
    config: Config = from_json((toy_run / "config.json").read_text())
    for source, target in (("en", "de"), ("de", "en"), ("en", "pt_BR")):
        run = folder / "runs" / target
        run.mkdir(parents=True)
        for name in ("tokenizer.model", "final"):
            (run / name).symlink_to(toy_run / name)
        (run / "config.json").write_text(
            to_json(config.with_changes(text={"source_language": source, "target_language": target}))
        )
        export(run, folder / "models" / f"{source}-{target}", precision="int8", shortlist=False)
    return folder / "models"


@pytest.fixture(scope="module")
def several(models: Path) -> Iterator[Served]:
    with running("--model", str(models)) as server:
        yield server


def test_all_models_of_a_folder_are_served(several: Served) -> None:
    assert several.get("/languages").json == [
        {"code": "de", "name": "German", "targets": ["en", "pt-BR"]},
        {"code": "en", "name": "English", "targets": ["de", "pt-BR"]},
    ]
    assert "de-pt-BR" in several.log.read_text()
    assert {one["language"] for one in several.get("/v2/languages?type=target").json} == {"DE", "EN", "PT-BR"}
    pairs = several.get("/v2/glossary-language-pairs").json["supported_languages"]
    assert {"source_lang": "de", "target_lang": "pt-BR"} in pairs
    assert {*several.get("/languages?api-version=3.0").json["translation"]} == {"de", "en", "pt-BR"}
    google = several.get("/language/translate/v2/languages?target=en").json["data"]["languages"]
    assert {"language": "pt-BR", "name": "Portuguese (BR)"} in google
    assert several.get("/v2/models/de-pt-BR").status == 200


def translated(served: Served, text: str, source: str, target: str) -> str:
    told: str = served.post("/translate", {"q": text, "source": source, "target": target}).json["translatedText"]
    return told


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("de", "en"), ("en", "pt")])
def test_each_direction_is_translated(several: Served, source: str, target: str) -> None:
    assert translated(several, "basa koti", source, target) == "itok asab"


def test_what_no_model_has_goes_through_english(several: Served) -> None:
    between = translated(several, "basa koti", "de", "en")
    both = translated(several, between, "en", "pt-BR")
    assert translated(several, "basa koti", "de", "pt-br") == both
    grown = several.post("/stream", {"q": "basa koti", "source": "de", "target": "pt-BR"})
    assert "event: done" in grown.body.decode()


def test_tags_placeholders_and_terms_go_through_english_too(several: Served) -> None:
    asked = {"source_lang": "DE", "target_lang": "PT-BR"}
    tagged = {"text": ["basa <b>koti</b>", "basa {name}"], "tag_handling": "html", **asked}
    first, second = [one["text"] for one in several.post("/v2/translate", tagged).json["translations"]]
    assert (first.count("<b>"), first.count("</b>")) == (1, 1)
    assert second.count("{name}") == 1
    made = several.post("/v2/glossaries", {"name": "mine", "entries": "koti\tkitty", **asked})
    held = several.post("/v2/translate", {"text": ["basa koti"], "glossary_id": made.json["glossary_id"], **asked})
    assert "kitty" in held.json["translations"][0]["text"].lower()


def test_of_a_way_through_english_the_last_step_is_looked_into(several: Served) -> None:
    told = several.post("/inspect", {"q": "basa koti", "source": "de", "target": "pt-BR"}).json
    assert told["source"]["text"] == translated(several, "basa koti", "de", "en")
    assert told["target"]["text"] == translated(several, "basa koti", "de", "pt-BR")
    assert (told["from"], told["to"]) == ("en", "pt_BR")
    assert "from de into en first" in told["model"]["note"]


def test_words_are_explained_through_english_too(several: Served) -> None:
    asked = {"q": "basa koti", "source": "de", "target": "pt-BR", "alternatives": 2}
    (sentence,) = several.post("/explain", asked).json["sentences"]
    best, *others = sentence["wordings"]
    assert best["text"] == translated(several, "basa koti", "de", "pt-BR") and others
    for wording in sentence["wordings"]:
        # Places are those of the text that was sent, not of what it became on the way.
        assert all([*span] in ([0, 4], [5, 9]) for word in wording["words"] for span in word["sources"])
    (sentence,) = several.post("/explain", {**asked, "prefix": ""}).json["sentences"]
    assert len({one["text"].split()[0] for one in sentence["wordings"]}) == 3


def test_some_of_the_models_can_be_chosen(models: Path, command: Command) -> None:
    with running("--model", str(models), "--from", "en") as served:
        assert [one["targets"] for one in served.get("/languages").json] == [["de", "pt-BR"]]
        assert served.post("/translate", {"q": "basa", "source": "de", "target": "en"}).status == 400
    ran = command("serve", "--port", "0", "--model", models, "--from", "fr")
    assert (ran.code, "no model here translates from fr; there is" in ran.err) == (2, True)


def test_where_there_is_no_model_it_is_told_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qkv.translate.catalogue.usual_places", lambda: [tmp_path])
    with pytest.raises(ConfigError, match="there is no model here; copy the folder models/ of"):
        load(Settings())


def test_codes_are_found_however_they_are_written() -> None:
    languages = Languages([Direction("en", "pt-BR"), Direction("xx", "en")])
    for code in ("pt", "PT-BR", "pt_br", "pt-PT"):
        assert languages.target(code) == "pt-BR"
    assert language("xx") == ("xx", "xx", "xx", False)


def test_a_server_calls_languages_what_everybody_else_does() -> None:
    for code, name in NAMES.items():
        assert language(code)[:3] == (code, name, OWN_NAMES[code])
        assert OWN_NAMES[code] != code
    assert language("nb") == ("nb", "Norwegian Bokmål", "norsk bokmål", False)
    assert language("no-NO") == ("no-NO", "Norwegian (NO)", "norsk (NO)", False)
    assert language("ur").right_to_left


def test_a_language_that_nobody_can_tell_is_the_last_guess() -> None:
    ranked = Detector(["xx", "en", "pt-BR"]).ranked("Where are all the children today?")
    assert [one.language for one in ranked] == ["en", "pt-BR", "xx"]
    assert Detector(["xx", "yy"]).ranked("a")[0] == ("xx", 0.0)


@pytest.mark.parametrize("text", ["Hello.", "12345", "Das ist ein Haus.", "Bonjour", "The street was too wide."])
def test_short_texts_are_in_one_of_the_languages(text: str) -> None:
    assert sum(one.confidence for one in Detector(["en", "de", "fr"]).ranked(text)) == pytest.approx(1)


@pytest.mark.parametrize("text", ["مرحبا بالعالم، كيف حالك اليوم؟", "Me gustaría comprar una casa nueva, ¿y tú?"])
def test_nobody_is_sure_of_a_text_in_none_of_the_languages(text: str) -> None:
    assert Detector(["en", "de", "fr"]).ranked(text)[0].confidence < 0.001


def test_a_word_that_is_in_any_language_is_taken_to_be_in_another_than_is_wanted() -> None:
    directions = [Direction("en", "de"), Direction("de", "en"), Direction("en", "fr"), Direction("fr", "en")]
    desk = Desk(Engine(Settings()), directions, Settings())

    def source(text: str, target: str) -> str:
        return asyncio.run(desk.source(text, target))

    assert source("World", "de") == source("World", "fr") == "en"
    assert source("World", "en") == "de"
    assert source("Das ist ein schönes Haus.", "de") == "de"


def test_others_have_their_turn_while_languages_are_told_apart() -> None:
    settings = Settings()
    desk = Desk(Engine(settings), [Direction("en", "de")], settings)
    texts = ["The animal did not cross the street because it was too tired. " * 30] * 1000
    found, turns = asyncio.run(with_turns(desk.detect(texts)))
    assert [likeliest.language for likeliest, *_ in found] == ["en"] * 1000
    assert turns >= 5
