"""Everything that a request may have has an end, and whoever goes beyond it is told in the words of the protocol."""

from __future__ import annotations

from typing import Any

import pytest

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
