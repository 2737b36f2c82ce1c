"""Everything that a request may have has an end, and whoever goes beyond it is told in the words of the protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qkv.serve import limits
from tests.serve.served import Served

INFER = "/v2/models/en-fr/infer"


def tensor(shape: list[int]) -> dict[str, Any]:
    return {"inputs": [{"name": "text", "datatype": "BYTES", "shape": shape, "data": ["basa koti"]}]}


@pytest.mark.parametrize("digits", ["9" * 5000, "-1", "1e3", "²", "", "1_0"])
def test_a_length_that_is_no_number_is_a_fault_of_whoever_sends_it(served: Served, digits: str) -> None:
    headers = {"Inference-Header-Content-Length": digits, "Content-Type": "application/json"}
    got = served.post(INFER, tensor([1]), headers=headers)
    assert (got.status, "not a number of bytes" in got.json["error"]) == (400, True)


@pytest.mark.parametrize("shape", [[9] * 150_000, [1] * 9, [10**4000], [2**63]], ids=["many", "nine", "large", "long"])
def test_a_shape_is_no_longer_and_larger_than_shapes_are(served: Served, shape: list[int]) -> None:
    got = served.post(INFER, tensor(shape))
    assert (got.status, "may have 8 numbers" in got.json["error"]) == (400, True)
    assert served.post(INFER, tensor([1] * 8)).json["outputs"][0]["data"] == ["itok asab"]


EXPLAIN = {"q": "basa koti", "source": "en", "target": "fr"}
GLOSSARY = {"name": "mine", "source_lang": "en", "target_lang": "fr", "entries": "a\tb"}
DEEPL = {"text": ["basa"], "target_lang": "FR"}


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("/explain", EXPLAIN | {"prefix": "o" * 2001}, "2001 characters of a prefix exceed the limit of 2000"),
        ("/explain", EXPLAIN | {"prefix": ["omir "] * 401}, "2005 characters of a prefix"),
        ("/explain", EXPLAIN | {"glossary": {str(term): "x" for term in range(1001)}}, "1001 terms"),
        ("/explain", EXPLAIN | {"glossary": {"a " * 101: "x"}}, "202 characters of the term 'a a a a a a a a a a '…"),
        ("/explain", EXPLAIN | {"glossary": {"x": "a" * 201}}, "201 characters of the term"),
        (
            "/explain",
            EXPLAIN | {"glossary": {f"{term:a>101}": "x" for term in range(500)}},
            "50500 characters of terms",
        ),
        ("/v2/glossaries", GLOSSARY | {"name": "a" * 1025}, "1025 characters of a name"),
        ("/v2/glossaries", GLOSSARY | {"entries": "a\t" + "b" * 201}, "201 characters of the term"),
        ("/v2/glossaries", GLOSSARY | {"entries": "\n".join(f"{n}\tb" for n in range(10_001))}, "10001 entries"),
        ("/v2/translate", DEEPL | {"ignore_tags": [str(name) for name in range(201)]}, "201 names of tags"),
        ("/v2/translate", DEEPL | {"splitting_tags": ",".join(map(str, range(201)))}, "201 names of tags"),
        ("/v2/translate", DEEPL | {"non_splitting_tags": ",".join(map(str, range(201)))}, "201 names of tags"),
        ("/v2/translate", DEEPL | {"text": ["a"] * 1025}, "1025 texts"),
    ],
)
def test_what_is_too_much_is_refused_and_told(served: Served, path: str, body: Any, told: str) -> None:
    got = served.post(path, body)
    assert got.status == 413
    assert told in (got.json.get("error") or got.json["message"])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/detect?api-version=3.0", [{"Text": "a"}] * 1025),
        ("/translate?api-version=3.0&to=fr", [{"Text": "a"}] * 1025),
        ("/language/translate/v2/detect", {"q": ["a"] * 1025}),
        ("/language/translate/v2", {"q": ["a"] * 1025, "target": "fr"}),
    ],
)
def test_more_texts_than_a_request_may_have_are_not_left_out_in_silence(served: Served, path: str, body: Any) -> None:
    got = served.post(path, body)
    assert (got.status, "1025 texts exceed the limit of 1024" in got.json["error"]["message"]) == (400, True)


def test_as_much_as_there_may_be_is_taken(served: Served) -> None:
    much = {"glossary": {f"{term:a>50}": "b" * 200 for term in range(1000)}, "prefix": "omir " * 20}
    assert served.post("/explain", EXPLAIN | much).status == 200
    assert served.post("/v2/translate", DEEPL | {"ignore_tags": [str(name) for name in range(200)]}).status == 200


def test_the_guide_tells_every_limit() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
    told = guide[guide.index("## Limits") : guide.index("## Settings")]
    numbers = {name: value for name, value in vars(limits).items() if isinstance(value, int)}
    assert numbers and [name for name, value in numbers.items() if f"{value:,}" not in told] == []
