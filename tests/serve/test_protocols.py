"""Each protocol says what its clients expect, and refuses in its own words."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from tests.serve.served import Served, eventually, serving

LIBRE = {"source": "en", "target": "fr"}


def test_libretranslate_translates_texts_and_lists_of_them(served: Served) -> None:
    one = served.post("/translate", {"q": "basa koti", **LIBRE}).json
    several = served.post("/translate", {"q": ["basa koti", "", "rimo nesa"], **LIBRE}).json
    assert one == {"translatedText": "itok asab"}
    assert several == {"translatedText": ["itok asab", "", "asen omir"]}
    assert served.post("/translate", {"q": ["basa koti"], **LIBRE}).json == {"translatedText": ["itok asab"]}
    assert served.post("/translate", {"q": [], **LIBRE}).json == {"translatedText": []}


def test_json_forms_and_query_strings_say_the_same(served: Served) -> None:
    expected = {"translatedText": "itok asab"}
    assert served.post("/translate", form={"q": "basa koti", **LIBRE}).json == expected
    assert served.post("/translate?q=basa+koti&source=en&target=fr").json == expected
    assert served.post("/translate?source=en&target=fr", {"q": "basa koti", "format": None}).json == expected
    marked = b"\xef\xbb\xbf" + json.dumps({"q": "basa koti", **LIBRE}).encode()
    assert served.post("/translate", marked, headers={"Content-Type": "application/json"}).json == expected
    boundary = "xyz"
    parts = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in {"q": "basa koti", **LIBRE}.items()
    )
    sent = f"{parts}--{boundary}--\r\n".encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    assert served.post("/translate", sent, headers=headers).json == expected


def test_alternatives_and_the_language_come_when_asked_for(served: Served) -> None:
    told = served.post("/translate", {"q": "basa koti", "source": "auto", "target": "fr", "alternatives": 2}).json
    assert set(told) == {"translatedText", "detectedLanguage", "alternatives"}
    assert len(told["alternatives"]) <= 2 and told["translatedText"] not in told["alternatives"]
    assert told["detectedLanguage"]["language"] in ("en", "fr")
    assert 0 <= told["detectedLanguage"]["confidence"] <= 100


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"source": "en", "target": "fr"}, 400, "Invalid request: missing q parameter"),
        ({"q": "a", "target": "fr"}, 400, "Invalid request: missing source parameter"),
        ({"q": "a", "source": "en"}, 400, "Invalid request: missing target parameter"),
        ({"q": "a", "source": "xx", "target": "fr"}, 400, "xx is not supported"),
        ({"q": "a", "source": "en", "target": "zz"}, 400, "zz is not supported"),
        ({"q": "a", "source": "en", "target": "fr", "format": "pdf"}, 400, "pdf format is not supported"),
        ({"q": "a" * 50_001, "source": "en", "target": "fr"}, 400, "exceeds text limit (50000)"),
        ({"q": "汉" * 40_000, "source": "en", "target": "fr"}, 400, "exceeds text limit (32768 tokens)"),
        ({"q": 5, "source": "en", "target": "fr"}, 400, "must be a text"),
        ({"q": [None], "source": "en", "target": "fr"}, 400, "must be a text"),
        ({"q": {}, "source": "en", "target": "fr"}, 400, "must be a text"),
        ({"q": "a", "source": "en", "target": "fr", "alternatives": "x"}, 400, "alternatives must be a whole number"),
        ({"q": "a", "source": "en", "target": "fr", "alternatives": 10**6}, 400, "exceeds limit"),
        ({"q": "a", "source": ["en", 3], "target": {}}, 400, "must be a text"),
        (["a"], 400, "missing q parameter"),
    ],
)
def test_libretranslate_refuses_with_a_sentence(served: Served, body: object, status: int, sentence: str) -> None:
    got = served.post("/translate", body)
    assert (got.status, set(got.json)) == (status, {"error"})
    assert sentence in got.json["error"]


def test_libretranslate_describes_itself(served: Served) -> None:
    assert served.get("/languages").json == [{"code": "en", "name": "English", "targets": ["fr"]}]
    assert served.get("/health").json == {"status": "ok"}
    assert served.get("/spec").json["info"]["title"] == "LibreTranslate"
    settings = served.get("/frontend/settings").json
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    assert (settings["charLimit"], settings["keyRequired"]) == (50_000, False)
    assert served.post("/suggest", {"q": "a", "s": "b"}).status == 403
    (found,) = served.post("/detect", {"q": "Everybody wants to know where the children are."}).json
    assert found["language"] == "en" and found["confidence"] > 90


@pytest.mark.parametrize(("method", "path"), [("GET", "/translate"), ("POST", "/languages"), ("PUT", "/v2/translate")])
def test_a_wrong_method_is_told_in_json(served: Served, method: str, path: str) -> None:
    got = served.ask(method, path)
    assert got.status == 405 and "allow" in got.headers
    assert {"error", "message"} & set(got.json)


def test_what_is_not_there_is_told_in_the_words_of_its_protocol(served: Served) -> None:
    assert set(served.get("/nothing").json) == {"error"}
    assert set(served.get("/v2/nothing").json) == {"message", "detail"}
    assert served.get("/language/translate/v2/nothing").json["error"]["code"] == 404
    assert served.get("/nothing?api-version=3.0").json["error"]["code"] == 404_000
    assert "en-fr" in served.get("/v2/models/xx-yy").json["error"]


def test_tags_and_entities_of_html_survive(served: Served) -> None:
    text = "<p>abc <b>de</b><br/> &lt;script&gt;</p>"
    told = served.post("/translate", {"q": text, "format": "html", **LIBRE}).json["translatedText"]
    for tag in ("<p>", "</p>", "<b>", "</b>", "<br/>"):
        assert told.count(tag) == 1
    assert "<script>" not in told
    whole = "<script>if (a < b) c()</script>"
    assert (
        whole in served.post("/translate", {"q": f"abc {whole} de", "format": "html", **LIBRE}).json["translatedText"]
    )


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("/v2/translate", {"text": ["a"], "target_lang": "XX"}, ["detail"]),
        ("/language/translate/v2", {"q": "a", "target": "XX"}, ["error", "message"]),
        ("/translate?api-version=3.0&to=XX", [{"Text": "a"}], ["error", "message"]),
        ("/explain", {"q": "a", "source": "en", "target": "XX"}, ["error"]),
    ],
)
def test_a_language_that_is_not_here_is_refused_with_those_that_are(
    served: Served, path: str, body: object, place: list[str]
) -> None:
    got = served.post(path, body)
    told = got.json
    for name in place:
        told = told[name]
    assert (got.status, told) == (400, "XX is not supported; supported: fr")


def test_libretranslate_keeps_to_the_sentence_that_its_clients_compare(served: Served) -> None:
    assert served.post("/translate", {"q": "a", "source": "en", "target": "XX"}).json == {
        "error": "XX is not supported"
    }


def test_deepl_speaks_both_ways_of_asking(served: Served) -> None:
    told = served.post(
        "/v2/translate", {"text": ["basa koti", "rimo nesa"], "target_lang": "FR", "source_lang": "EN-GB"}
    ).json
    assert told["translations"] == [
        {"detected_source_language": "EN", "text": "itok asab", "billed_characters": 9},
        {"detected_source_language": "EN", "text": "asen omir", "billed_characters": 9},
    ]
    form = {"text": ["basa koti", "rimo nesa"], "target_lang": "fr", "source_lang": "en"}
    assert served.post("/v2/translate", form=form).json == told
    wrong = served.post("/v2/translate", {"text": ["a"], "target_lang": "XX"})
    assert (wrong.status, wrong.json["message"]) == (400, "Value for 'target_lang' not supported.")
    kept = served.post(
        "/v2/translate",
        {"text": ['abc <x id="1">de f</x>'], "target_lang": "FR", "tag_handling": "xml", "ignore_tags": ["x"]},
    )
    assert '<x id="1">de f</x>' in kept.json["translations"][0]["text"]
    languages = served.get("/v2/languages?type=target").json
    assert languages == [{"language": "FR", "name": "French", "supports_formality": False}]
    assert served.get("/v2/usage").json["character_limit"] > 0
    assert served.get("/v3/languages").json[0]["lang"] == "en"


def test_a_glossary_is_kept_used_and_removed(served: Served) -> None:
    said = {
        "name": "mine",
        "source_lang": "EN",
        "target_lang": "FR",
        "entries": "koti\tkitty\n",
        "entries_format": "tsv",
    }
    made = served.post("/v2/glossaries", said)
    assert (made.status, made.json["entry_count"], made.json["ready"]) == (201, 1, True)
    number = made.json["glossary_id"]
    assert served.get(f"/v2/glossaries/{number}/entries").body == b"koti\tkitty\n"
    assert number in [one["glossary_id"] for one in served.get("/v2/glossaries").json["glossaries"]]
    asked = {"text": ["basa koti"], "source_lang": "EN", "target_lang": "FR", "glossary_id": number}
    assert "kitty" in served.post("/v2/translate", asked).json["translations"][0]["text"].lower()
    assert served.ask("DELETE", f"/v2/glossaries/{number}").status == 204
    assert served.get(f"/v2/glossaries/{number}").status == 404
    assert served.post("/v2/translate", asked).status == 404
    assert served.post("/v2/glossaries", {**said, "entries": "no tab"}).status == 400


@pytest.mark.parametrize(
    ("kind", "entries", "kept"),
    [
        ("csv", '"a, b","say ""no"""\r\n\r\nc, d,en,fr', 'a, b\tsay "no"\nc\td\n'),
        ("tsv", 'a "b"\tc, d\ten', 'a "b"\tc, d\n'),
    ],
)
def test_entries_of_a_glossary_are_read_as_they_are_written(served: Served, kind: str, entries: str, kept: str) -> None:
    said = {"name": "a", "source_lang": "en", "target_lang": "fr", "entries_format": kind}
    number = served.post("/v2/glossaries", {**said, "entries": entries}).json["glossary_id"]
    assert served.get(f"/v2/glossaries/{number}/entries").body.decode() == kept
    served.ask("DELETE", f"/v2/glossaries/{number}")
    for wrong in ('"a,b', "a,", "\0" if kind == "tsv" else '"a"b,c'):
        assert served.post("/v2/glossaries", {**said, "entries": wrong}).status == 400


def test_google_speaks_html_unless_told_otherwise(served: Served) -> None:
    asked = {"q": ["a & b"], "target": "fr", "source": "en", "format": None}
    told = served.post("/language/translate/v2", asked).json["data"]["translations"]
    assert set(told[0]) == {"translatedText"} and "& " not in told[0]["translatedText"]
    detected = served.post("/language/translate/v2", {"q": "basa koti", "target": "fr"}).json["data"]["translations"]
    assert detected[0]["detectedSourceLanguage"] in ("en", "fr")
    wrong = served.post("/language/translate/v2", {"q": "basa koti", "target": "zz"})
    assert (wrong.status, wrong.json["error"]["code"], wrong.json["error"]["status"]) == (400, 400, "INVALID_ARGUMENT")
    languages = served.get("/language/translate/v2/languages?target=en").json["data"]["languages"]
    assert languages == [{"language": "en", "name": "English"}, {"language": "fr", "name": "French"}]
    found = served.post("/language/translate/v2/detect", {"q": ["Where are the children?"]}).json["data"]["detections"]
    assert found[0][0]["language"] == "en"


def test_azure_has_two_versions_at_the_addresses_of_libretranslate(served: Served) -> None:
    old = served.post("/translate?api-version=3.0&to=fr&from=en", [{"Text": "basa koti"}, {"text": "rimo nesa"}]).json
    assert old == [
        {"translations": [{"text": "itok asab", "to": "fr"}]},
        {"translations": [{"text": "asen omir", "to": "fr"}]},
    ]
    body = {"inputs": [{"text": "basa koti", "language": "en", "targets": [{"language": "fr"}]}]}
    new = served.post("/translate?api-version=2026-06-06", body).json
    assert new == {"value": [{"translations": [{"language": "fr", "text": "itok asab"}]}]}
    assert served.get("/languages?api-version=3.0").json["translation"]["fr"]["nativeName"] == "français"
    wrong = served.post("/translate?api-version=3.0&to=fr", {"q": "basa koti"})
    assert (wrong.status, wrong.json["error"]["code"]) == (400, 400_000)


def test_texts_that_azure_wants_alike_are_one_order_within_the_limits_of_one(exported: Path) -> None:
    def asked(count: int, target: str = "fr") -> dict[str, object]:
        one = {"text": "basa koti", "language": "en", "targets": [{"language": "fr"}]}
        return {"inputs": [one] * (count - 1) + [{**one, "targets": [{"language": target}]}]}

    path = "/translate?api-version=2026-06-06"
    with serving(exported, "--queue-tokens", "100", "--batch-tokens", "64") as served:
        told = served.post(path, asked(200))
        assert (told.status, len(told.json["value"])) == (200, 200), told.body
        assert "exceed the limit" in served.post(path, asked(1025)).json["error"]["message"]
        # Where one is refused, nobody waits for the others.
        assert served.post(path, asked(1000, "zz")).status == 400
        assert eventually(lambda: served.metric("orders") == 0, 0.5)
        assert served.post("/translate?api-version=3.0&to=fr&from=en", [{"text": "basa koti"}] * 1025).status == 400


def test_open_inference_takes_texts_as_json_and_as_bytes(served: Served) -> None:
    tensor = {"name": "text", "datatype": "BYTES", "shape": [2]}
    told = served.post(
        "/v2/models/en-fr/infer", {"inputs": [{**tensor, "data": ["basa koti", "rimo nesa"]}], "id": "7"}
    ).json
    (output,) = told["outputs"]
    assert (told["id"], output["data"], output["shape"]) == ("7", ["itok asab", "asen omir"], [2])
    wrong = served.post("/v2/models/en-fr/infer", {"inputs": [{**tensor, "data": ["basa koti"]}]})
    assert (wrong.status, wrong.json) == (400, {"error": "the shape of 'text' is [2], and there are 1 texts"})
    head = json.dumps({
        "inputs": [{**tensor, "parameters": {"binary_data_size": 26}}],
        "outputs": [{"name": "translation", "parameters": {"binary_data": True}}],
    }).encode()  # fmt: skip
    behind = b"".join(struct.pack("<I", len(one)) + one for one in (b"basa koti", b"rimo nesa"))
    headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
    got = served.post("/v2/models/en-fr/infer", head + behind, headers=headers)
    length = int(got.headers["inference-header-content-length"])
    assert got.body[length:] == b"".join(struct.pack("<I", len(one)) + one for one in (b"itok asab", b"asen omir"))
    assert served.get("/v2/health/live").status == served.get("/v2/health/ready").status == 200
    assert served.get("/v2/models/en-fr").json["inputs"][0]["datatype"] == "BYTES"
    assert served.get("/v2/models/en-fr/ready").status == 200


def test_a_translation_can_be_watched_as_it_grows(served: Served) -> None:
    got = served.post("/stream", {"q": "basa koti", "source": "en", "target": "fr"})
    assert got.headers["content-type"].startswith("text/event-stream")
    events = [event.split("\n", 1) for event in got.body.decode().strip().split("\n\n")]
    texts = [json.loads(data.removeprefix("data: "))["text"] for _, data in events]
    assert events[-1][0] == "event: done" and "".join(texts[:-1]) == texts[-1] == "itok asab"
    assert served.post("/stream", {"q": "basa koti", "source": "en", "target": "zz"}).status == 400


def test_placeholders_survive(served: Served) -> None:
    told = served.post("/translate", {"q": "abc {name} de %s", **LIBRE}).json["translatedText"]
    assert told.count("{name}") == 1 and told.count("%s") == 1


HALF = "\ud800"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/translate", {"q": "a", "source": HALF, "target": "fr"}),
        ("/translate", {"q": "a", "source": "en", "target": HALF}),
        ("/translate", {"q": "a", "source": "en", "target": "fr", "format": HALF}),
        ("/v2/translate", {"text": ["a"], "target_lang": HALF}),
        ("/v2/glossaries", {"name": "a", "source_lang": HALF, "target_lang": "fr", "entries": "a\tb"}),
        ("/language/translate/v2", {"q": "a", "target": HALF}),
        ("/translate?api-version=2026-06-06", {"inputs": [{"text": "a", "targets": [{"language": HALF}]}]}),
        ("/stream", {"q": "a", "target": HALF}),
        ("/explain", {"q": "a", "target": HALF}),
    ],
)
def test_half_a_character_can_be_refused_in_a_sentence(served: Served, path: str, body: object) -> None:
    got = served.post(path, body)
    assert got.status == 400
    assert {"error", "message"} & set(got.json)


def test_half_a_character_in_the_name_of_a_glossary_is_kept_as_a_sign_for_it(served: Served) -> None:
    said = {"name": HALF, "source_lang": "en", "target_lang": "fr", "entries": "a\tb"}
    made = served.post("/v2/glossaries", said)
    assert (made.status, made.json["name"]) == (201, "\ufffd")
    assert served.ask("DELETE", f"/v2/glossaries/{made.json['glossary_id']}").status == 204
    # Both halves are a character.
    whole = {"q": "\ud83d\ude00", "source": "en", "target": "fr"}
    assert served.post("/translate", json.dumps(whole).encode()).status == 200
