"""The Open Inference Protocol, version 2: a model for each direction, texts in and texts out."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from qkv import __version__
from qkv.serve.families.family import Family
from qkv.serve.keys import Account
from qkv.serve.languages import Direction
from qkv.serve.limits import LARGEST_DIMENSION, MOST_DIMENSIONS
from qkv.serve.orders import Order
from qkv.serve.reading import Asked
from qkv.serve.refusals import Refusal

_INPUT = "text"
_OUTPUT = "translation"
_JSON_LENGTH = "Inference-Header-Content-Length"
_LENGTH = struct.Struct("<I")


class Inference(Family):
    name = "inference"

    def routes(self) -> list[Route]:
        routes = [
            Route("/v2", self.endpoint(self.server, public=True), methods=["GET"]),
            Route("/v2/health/live", self.endpoint(self.live, public=True), methods=["GET"]),
            Route("/v2/health/ready", self.endpoint(self.ready, public=True), methods=["GET"]),
        ]
        for path in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
            routes += [
                Route(path, self.endpoint(self.model, public=True), methods=["GET"]),
                Route(f"{path}/ready", self.endpoint(self.model_ready, public=True), methods=["GET"]),
                Route(f"{path}/infer", self.endpoint(self.infer, works=True), methods=["POST"]),
            ]
        return routes

    def key(self, asked: Asked) -> str | None:
        return asked.credentials("bearer")

    def error(self, status: int, refusal: Refusal) -> Any:  # noqa: ARG002
        return {"error": refusal.explanation}

    async def server(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        return JSONResponse({"name": "qkv", "version": __version__, "extensions": ["binary_tensor_data"]})

    async def live(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        return JSONResponse({"live": True})

    async def ready(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        return JSONResponse({"ready": self.desk.ready}, 200 if self.desk.ready else 503)

    async def model(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        self._direction(asked)
        return JSONResponse(
            {
                "name": asked.request.path_params["model"],
                "versions": ["1"],
                "platform": "qkv",
                "inputs": [{"name": _INPUT, "datatype": "BYTES", "shape": [-1]}],
                "outputs": [{"name": _OUTPUT, "datatype": "BYTES", "shape": [-1]}],
            }
        )

    async def model_ready(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        self._direction(asked)
        name = asked.request.path_params["model"]
        ready = self.desk.ready
        return JSONResponse({"name": name, "ready": ready}, 200 if ready else 503)

    async def infer(self, asked: Asked, account: Account) -> Response:
        direction = self._direction(asked)
        if not isinstance(asked.document, dict):
            raise Refusal("bad", "the body must be a JSON object")
        tensor = _tensor(asked.document)
        shape = self._shape(tensor)
        texts = [*_texts(tensor, asked.rest)]
        if math.prod(shape) != len(texts):
            raise Refusal("bad", f"the shape of {_INPUT!r} is {shape}, and there are {len(texts)} texts")
        answers = await self.translate(account, Order(texts, *direction))
        data = [one.text for one in answers]
        told: dict[str, Any] = {
            "model_name": asked.request.path_params["model"],
            "model_version": "1",
            "outputs": [{"name": _OUTPUT, "datatype": "BYTES", "shape": [len(data)]}],
        }
        if isinstance(asked.document.get("id"), str):
            told["id"] = asked.document["id"]
        (output,) = told["outputs"]
        if not _wants_bytes(asked.document):
            output["data"] = data
            return JSONResponse(told)
        behind = b"".join(_LENGTH.pack(len(one)) + one for one in (text.encode() for text in data))
        output["parameters"] = {"binary_data_size": len(behind)}
        head = json.dumps(told).encode()
        return Response(head + behind, media_type="application/octet-stream", headers={_JSON_LENGTH: str(len(head))})

    def _shape(self, tensor: dict[str, Any]) -> list[int]:
        """How many texts there are along each dimension."""
        shape = tensor.get("shape")
        if not isinstance(shape, list) or not all(type(one) is int and one >= 0 for one in shape):
            raise Refusal("bad", f"the shape of {_INPUT!r} must be a list of whole numbers")
        if len(shape) > MOST_DIMENSIONS or any(one > LARGEST_DIMENSION for one in shape):
            limit = f"{MOST_DIMENSIONS} numbers, none above {LARGEST_DIMENSION}"
            raise Refusal("bad", f"the shape of {_INPUT!r} may have {limit}")
        return shape

    def _direction(self, asked: Asked) -> Direction:
        name = asked.request.path_params["model"]
        directions = self.desk.languages.directions
        if name not in directions:
            raise Refusal("not_found", f"there is no model called {name[:80]!r}; there is: {', '.join(directions)}")
        return directions[name]


def _tensor(document: dict[str, Any]) -> dict[str, Any]:
    inputs = document.get("inputs")
    if not isinstance(inputs, list) or len(inputs) != 1 or not isinstance(inputs[0], dict):
        raise Refusal("bad", f"there must be one input, called {_INPUT!r}")
    tensor: dict[str, Any] = inputs[0]
    if tensor.get("datatype") != "BYTES":
        raise Refusal("bad", f"the input {_INPUT!r} must have the datatype BYTES")
    return tensor


def _texts(tensor: dict[str, Any], rest: bytes) -> Iterator[str]:
    if "data" in tensor:
        waiting = [tensor["data"]]
        while waiting:
            one = waiting.pop()
            if isinstance(one, list):
                waiting += reversed(one)
            elif isinstance(one, str):
                yield one
            else:
                raise Refusal("bad", "the data of BYTES must be texts")
        return
    position = 0
    while position < len(rest):
        if position + _LENGTH.size > len(rest):
            raise Refusal("bad", "the bytes behind the JSON end in the middle of a length")
        (length,) = _LENGTH.unpack_from(rest, position)
        position += _LENGTH.size
        text = rest[position : position + length]
        if len(text) < length:
            raise Refusal("bad", "the bytes behind the JSON end in the middle of a text")
        position += length
        try:
            yield text.decode()
        except UnicodeDecodeError as error:
            raise Refusal("bad", "texts must be UTF-8") from error


def _wants_bytes(document: dict[str, Any]) -> bool:
    def asked_of(one: Any, name: str) -> bool:
        parameters = one.get("parameters") if isinstance(one, dict) else None
        return isinstance(parameters, dict) and parameters.get(name) is True

    outputs = document.get("outputs")
    several = outputs if isinstance(outputs, list) else []
    return asked_of(document, "binary_data_output") or any(asked_of(one, "binary_data") for one in several)
