"""What DeepL's clients may ask for beside a translation: it is done, makes no difference, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serve.served import Got, Served, eventually, send


def asked(served: Served, text: str, **more: Any) -> Got:
    return served.post("/v2/translate", {"text": [text], "source_lang": "EN", "target_lang": "FR", **more})


def found(served: Served, text: str, **more: Any) -> str:
    got = asked(served, text, **more)
    assert got.status == 200, got.body
    translation: str = got.json["translations"][0]["text"]
    return translation


@pytest.mark.parametrize(
    ("more", "translation"),
    [
        ({}, "asab\nitok"),
        ({"split_sentences": "1"}, "asab\nitok"),
        ({"split_sentences": 1}, "asab\nitok"),
        ({"split_sentences": "nonewlines"}, "itok asab"),
        ({"split_sentences": "0"}, "itok asab"),
        ({"tag_handling": "xml"}, "asab\nitok"),
        # A new line of HTML is white space.
        ({"tag_handling": "html"}, "itok asab"),
        ({"tag_handling": "html", "split_sentences": "1"}, "asab\nitok"),
    ],
)
def test_sentences_end_where_it_is_said(served: Served, more: dict[str, Any], translation: str) -> None:
    assert found(served, "basa\nkoti", **more) == translation


def test_full_stops_end_no_sentence_where_none_is_to_end(served: Served) -> None:
    text = "Basa! Basa! Basa!"
    whole, parted = (found(served, text, split_sentences=how) for how in ("0", "nonewlines"))
    assert parted == " ".join([found(served, "Basa!")] * 3)
    assert whole != parted
    # What is longer than the model reads is cut all the same.
    assert len(found(served, "basa koti\n" * 100, split_sentences="0").splitlines()) == 100


@pytest.mark.parametrize(
    ("text", "more", "translation"),
    [
        ("<p>basa koti</p><p>rimo nesa</p>", {"tag_handling": "html"}, "<p>itok asab</p><p>asen omir</p>"),
        ("basa koti<br>rimo nesa", {"tag_handling": "html"}, "itok asab<br>asen omir"),
        (
            "<par>basa koti</par><par>rimo nesa</par>",
            {"tag_handling": "xml", "splitting_tags": ["par"]},
            "<par>itok asab</par><par>asen omir</par>",
        ),
        (
            "<par>basa koti</par><li>rimo nesa</li>",
            {"tag_handling": "xml", "splitting_tags": "par,LI", "outline_detection": False},
            "<par>itok asab</par><li>asen omir</li>",
        ),
    ],
)
def test_tags_that_end_a_sentence_do(served: Served, text: str, more: dict[str, Any], translation: str) -> None:
    assert found(served, text, **more) == translation


def test_tags_that_end_no_sentence_do_not(served: Served) -> None:
    text = "<li>basa</li> <li>koti</li>"
    assert found(served, text, tag_handling="html") == "<li>asab</li> <li>itok</li>"
    inline = found(served, text, tag_handling="html", non_splitting_tags=["li"])
    assert inline.replace("<li>", "").replace("</li>", "").split() == ["itok", "asab"]


def test_html_of_other_protocols_ends_sentences_alike(served: Served) -> None:
    page, translation = "<h1>basa koti</h1><p>rimo nesa</p>", "<h1>itok asab</h1><p>asen omir</p>"
    libre = {"q": page, "source": "en", "target": "fr", "format": "html"}
    assert served.post("/translate", libre).json == {"translatedText": translation}
    google = served.post("/language/translate/v2", {"q": page, "source": "en", "target": "fr"}).json
    assert google["data"]["translations"] == [{"translatedText": translation}]


@pytest.mark.parametrize("more", [{"formality": "more"}, {"formality": "less"}])
def test_formality_that_has_to_be_is_refused(served: Served, more: dict[str, str]) -> None:
    got = asked(served, "basa", **more)
    assert (got.status, got.json["message"]) == (400, "'formality' is not supported for given 'target_lang'.")
    assert send(served, "/v2/document", "a.txt", b"basa", target_lang="FR", **more).json == got.json


@pytest.mark.parametrize(
    "more",
    [
        {"formality": "default"},
        {"formality": "prefer_more"},
        {"formality": "prefer_less"},
        {"formality": ""},
        {"preserve_formatting": True},
        {"preserve_formatting": "0"},
        {"outline_detection": "1"},
        {"show_billed_characters": False},
        {"context": "Something that was said before."},
        {"tag_handling": "xml", "tag_handling_version": "v2"},
        {"custom_instructions": ["Be brief."]},
    ],
)
def test_what_makes_no_difference_is_taken(served: Served, more: dict[str, Any]) -> None:
    told = asked(served, "basa koti", **more).json["translations"]
    assert told == [{"detected_source_language": "EN", "text": "itok asab", "billed_characters": 9}]


@pytest.mark.parametrize(
    ("model_type", "used"),
    [
        ("quality_optimized", "quality_optimized"),
        ("prefer_quality_optimized", "quality_optimized"),
        ("latency_optimized", "latency_optimized"),
    ],
)
def test_the_model_that_was_asked_for_is_told(served: Served, model_type: str, used: str) -> None:
    assert asked(served, "basa", model_type=model_type).json["translations"][0]["model_type_used"] == used


@pytest.mark.parametrize(
    "name",
    [
        "formality",
        "split_sentences",
        "preserve_formatting",
        "outline_detection",
        "show_billed_characters",
        "model_type",
        "tag_handling",
        "tag_handling_version",
    ],
)
def test_a_value_that_there_is_not_is_refused(served: Served, name: str) -> None:
    got = asked(served, "basa", **{name: "much"})
    assert (got.status, got.json["message"]) == (400, f"Value for '{name}' not supported.")


def test_a_file_stays_what_it_is(served: Served) -> None:
    form = {"source_lang": "EN", "target_lang": "FR"}
    wrong = send(served, "/v2/document", "a.txt", b"basa", output_format="docx", **form)
    assert (wrong.status, wrong.json["message"]) == (400, "Value for 'output_format' not supported.")
    sent = send(served, "/v2/document", "a.TXT", b"basa", output_format="txt", formality="prefer_more", **form).json
    where, key = f"/v2/document/{sent['document_id']}", {"document_key": sent["document_key"]}
    assert eventually(lambda: served.post(where, key).json["status"] == "done")
    assert served.post(f"{where}/result", key).body == b"asab"
