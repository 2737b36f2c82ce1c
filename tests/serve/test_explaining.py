"""The page and what it asks for: words and their sources, other wordings, other words, files that browsers keep."""

from __future__ import annotations

import gzip
import re
from typing import Any

import pytest

from tests.serve.served import Served

PAIR = {"source": "en", "target": "fr"}


def part(text: str, span: list[int]) -> str:
    """A part of a text as JavaScript counts its places."""
    return text.encode("utf-16-le")[2 * span[0] : 2 * span[1]].decode("utf-16-le")


def explained(served: Served, text: str, **more: Any) -> dict[str, Any]:
    got = served.post("/explain", {"q": text, **PAIR, **more})
    assert got.status == 200, got.body
    told: dict[str, Any] = got.json
    return told


def test_the_best_wordings_are_the_translation(served: Served) -> None:
    text = " basa koti.\n\nRimo nesa koti.  "
    told = explained(served, text)
    joined = "".join(one["before"] + one["wordings"][0]["text"] for one in told["sentences"]) + told["after"]
    assert joined == served.post("/translate", {"q": text, **PAIR}).json["translatedText"]
    assert (told["source"], told["confidence"], told["target"]) == ("en", 1.0, "fr")


def test_words_are_told_with_their_sources_and_how_sure_they_are(served: Served) -> None:
    (sentence,) = explained(served, "basa koti")["sentences"]
    (wording,) = sentence["wordings"]
    words = wording["words"]
    assert [part(wording["text"], word["span"]) for word in words] == ["itok", "asab"]
    assert [part("basa koti", word["sources"][0]) for word in words] == ["koti", "basa"]
    assert all(0.5 < word["probability"] <= 1 for word in words)
    assert 0.5 < wording["probability"] <= 1


def test_places_are_counted_as_javascript_counts_them(served: Served) -> None:
    (sentence,) = explained(served, "😀 basa koti")["sentences"]
    (wording,) = sentence["wordings"]
    sources = [part(sentence["text"], span) for word in wording["words"] for span in word["sources"]]
    assert {"basa", "koti"} & {*sources}
    assert all(one.strip() == one and one for one in sources)
    assert "".join(part(wording["text"], word["span"]) for word in wording["words"]) == wording["text"].replace(" ", "")


def test_other_wordings_come_when_asked_for(served: Served) -> None:
    (sentence,) = explained(served, "basa koti", alternatives=2)["sentences"]
    texts = [one["text"] for one in sentence["wordings"]]
    assert texts[0] == "itok asab" and len(texts) == len({*texts}) == 3


def test_a_prefix_is_gone_on_from_with_different_words(served: Served) -> None:
    (sentence,) = explained(served, "basa koti rimo", prefix="omir ", alternatives=2)["sentences"]
    texts = [one["text"] for one in sentence["wordings"]]
    assert texts[0] == "omir itok asab"
    assert len({text.split()[1] for text in texts}) == 3 and all(text.startswith("omir ") for text in texts)


@pytest.mark.parametrize("text", ["\x1a", "2:1", "!!!"])
def test_what_has_no_words_is_no_sentence_and_stays_as_it_is(served: Served, text: str) -> None:
    for more in ({}, {"prefix": "omir "}):
        told = explained(served, text, **more)
        assert (told["sentences"], told["after"]) == ([], text)


def test_a_glossary_is_kept_to(served: Served) -> None:
    (sentence,) = explained(served, "basa koti", glossary={"koti": "nesa"})["sentences"]
    assert "nesa" in sentence["wordings"][0]["text"].lower()


def test_a_text_that_is_in_the_language_already_stays_as_it_is(served: Served) -> None:
    told = explained(served, "bonjour", source="fr")
    assert (told["sentences"], told["after"]) == ([], "bonjour")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"q": ["a", "b"]}, "q must be one text"),
        ({"target": None}, "missing target"),
        ({"target": "zz"}, "zz is not supported"),
        ({"alternatives": 99}, "exceeds limit"),
        ({"glossary": "koti"}, "glossary must be an object"),
        ({"glossary": {"koti": " "}}, "glossary must be an object"),
        ({"glossary": {"koti": 3}}, "glossary must be an object"),
        ({"prefix": "a", "q": "Basa. Koti."}, "a prefix is that of one sentence"),
    ],
)
def test_what_cannot_be_explained_is_refused(served: Served, more: dict[str, Any], sentence: str) -> None:
    got = served.post("/explain", {"q": "basa", **PAIR, **more})
    assert got.status == 400
    assert sentence in got.json["error"]


def test_a_text_that_is_too_long_is_refused(served: Served) -> None:
    assert served.post("/explain", {"q": "a" * 50_001, **PAIR}).status == 413


def test_the_page_brings_only_what_is_its_own(served: Served) -> None:
    got = served.get("/")
    assert got.status == 200 and got.headers["content-type"].startswith("text/html")
    policy = got.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
    assert got.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/", "/page/style.css", "/page/inspector/main.js", "/page/inspector/saved.html"])
def test_the_page_is_sent_compressed_to_who_can_read_that(served: Served, path: str) -> None:
    plain = served.get(path)
    small = served.get(path, headers={"Accept-Encoding": "deflate, GZIP;q=0.5"})
    assert "content-encoding" not in plain.headers and small.headers["content-encoding"] == "gzip"
    assert gzip.decompress(small.body) == plain.body
    assert plain.headers["vary"] == small.headers["vary"] == "Accept-Encoding"
    # Whoever keeps one of them is not told that it is the other.
    assert served.get(path, headers={"If-None-Match": small.headers["etag"]}).status == 200
    for said in ("identity", "gzip;q=0", "gzip; q=0.0, br", "x-gzipped"):
        assert "content-encoding" not in served.get(path, headers={"Accept-Encoding": said}).headers, said


def test_a_first_visit_takes_less_than_a_hundred_kilobytes(served: Served) -> None:
    page = served.get("/").body.decode()
    parts = {"/", *re.findall(r'(?:src|href)="(/page/[^"]+)"', page)}
    seen: set[str] = set()
    total = 0
    while parts - seen:
        path = (parts - seen).pop()
        seen.add(path)
        got = served.get(path, headers={"Accept-Encoding": "gzip"})
        assert got.status == 200, path
        total += len(got.body)
        if path.endswith(".js"):
            found = re.findall(r'^import .* from "\./(.*)";', gzip.decompress(got.body).decode(), re.MULTILINE)
            parts |= {f"/page/{name}" for name in found}
    assert len(seen) > 10
    assert total < 100_000


def test_browsers_keep_the_page_until_it_changes(served: Served) -> None:
    for path in ("/", "/page/main.js", "/page/style.css"):
        first = served.get(path)
        again = served.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status, again.body) == (304, b"")
        assert first.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/page/", "/page/none.js", "/page/../serve/keys.py", "/page/%2e%2e/py.typed"])
def test_nothing_but_the_page_is_given_away(served: Served, path: str) -> None:
    assert served.get(path).status == 404
