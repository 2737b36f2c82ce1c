"""Looking inside over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from qkv import Translator
from qkv.serve.inspecting import inspected
from qkv.serve.orders import Order
from qkv.serve.settings import Settings
from tests.serve.served import Served, serving
from tests.toy import held_out

TEXT, _ = held_out()[0]
ASKED = {"q": TEXT, "source": "en", "target": "fr"}


def test_the_server_shows_what_the_translator_shows(served: Served, exported: Path) -> None:
    got = served.post("/inspect", ASKED)
    assert (got.status, got.headers["content-type"]) == (200, "application/json")
    own = Translator.load(exported).between("en", "fr").translate([TEXT])[0].attention.as_json()
    told = got.json
    assert told.keys() == own.keys()
    assert told["target"] == own["target"]
    assert told["target"]["text"] == served.translate(TEXT).json["translatedText"]
    assert (told["from"], told["to"]) == ("en", "fr")
    assert told["attention"] == own["attention"]


def test_one_heads_vectors_can_be_asked_for(served: Served) -> None:
    whole = served.post("/inspect", ASKED).json
    got = served.post("/inspect", {**ASKED, "vectors": {"use": "cross", "layer": 1, "head": 0}}).json
    assert (got["use"], got["layer"], got["head"]) == ("cross", 1, 0)
    assert got["k"]["shape"] == whole["vectors"]["cross"]["k"]["shape"][2:]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"q": ""}, "this text has 0"),
        ({"q": f"{TEXT.capitalize()}. {TEXT.capitalize()}."}, "this text has 2"),
        ({"q": ["a", "b"]}, "q must be one text"),
        ({"target": None}, "missing target"),
        ({"target": "xx"}, "xx"),
        ({"source": "fr", "target": "fr"}, "fr"),
        ({"vectors": {"use": "cross", "layer": 9, "head": 0}}, "no head 0 in layer 9"),
        ({"vectors": {"use": "sideways", "layer": 0, "head": 0}}, "vectors must be like"),
        ({"vectors": "all"}, "vectors must be like"),
        ({"vectors": {"use": "cross", "layer": True, "head": 0}}, "vectors must be like"),
    ],
)
def test_what_cannot_be_looked_into_is_refused_in_a_sentence(
    served: Served, changed: dict[str, object], said: str
) -> None:
    got = served.post("/inspect", {**ASKED, **changed})
    assert got.status == 400
    assert said in got.json["error"]


def test_a_sentence_that_is_too_long_to_be_looked_into_is_refused(exported: Path) -> None:
    with serving(exported, "--inspected-tokens", "2") as served:
        got = served.post("/inspect", ASKED)
        assert (got.status, "this server takes 2 at most" in got.json["error"]) == (400, True)


def test_nothing_is_looked_into_for_who_has_left(exported: Path) -> None:
    order, asked = Order([" ".join([TEXT] * 5)], "en", "fr", inspected=True), []

    def abandoned() -> bool:
        asked.append(True)
        return len(asked) > 2

    steps = (Translator.load(exported).between("en", "fr"),)
    assert inspected(order, steps, Settings(), abandoned=abandoned) == {}
    # The search is given up where it stands.
    assert len(asked) < 8


def test_it_is_described(served: Served) -> None:
    described = served.get("/openapi.json").json["paths"]["/inspect"]["post"]
    body = described["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["vectors"]["properties"]["use"]["enum"] == ["encoder", "decoder", "cross"]
