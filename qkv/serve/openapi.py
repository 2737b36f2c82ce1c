"""The OpenAPI document: every address, what it takes and what it gives. Tests send it what it allows, and much else."""

from __future__ import annotations

from typing import Any

from qkv import __version__
from qkv.serve.settings import Settings

Json = dict[str, Any]

_TEXT: Json = {"type": "string"}
_ERROR: Json = {"type": "object", "properties": {"error": _TEXT}, "required": ["error"]}
_MESSAGE: Json = {"type": "object", "properties": {"message": _TEXT, "detail": _TEXT}, "required": ["message"]}
_CODED: Json = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"code": {"type": "integer"}, "message": _TEXT},
            "required": ["code", "message"],
        }
    },
    "required": ["error"],
}
_REFUSALS = (400, 401, 403, 404, 405, 408, 413, 415, 429, 456, 503, 504)


def document(settings: Settings, *, title: str = "qkv") -> Json:
    """The description of a server with these settings."""
    paths = {**_libretranslate(settings), **_deepl(), **_google(), **_inference(), **_own()}
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__, "description": "Machine translation."},
        "paths": paths,
    }


def _libretranslate(settings: Settings) -> Json:
    texts = {"oneOf": [_TEXT, {"type": "array", "items": _TEXT}]}
    detected = _object({"confidence": {"type": "number"}, "language": _TEXT})
    either = {"oneOf": [detected, {"type": "array", "items": detected}]}
    asked = {
        "q": texts,
        "source": _TEXT | {"description": "a code of /languages, or auto"},
        "target": _TEXT,
        "format": {"enum": ["text", "html"]},
        "alternatives": {"type": "integer", "minimum": 0, "maximum": settings.request_alternatives},
        "api_key": _TEXT,
    }
    translated = _object({"translatedText": texts, "detectedLanguage": either, "alternatives": {"type": "array"}},
                         required=["translatedText"])  # fmt: skip
    language = _object({"code": _TEXT, "name": _TEXT, "targets": {"type": "array", "items": _TEXT}})
    return {
        "/translate": {"post": _operation(translated, _ERROR, body=_object(asked, required=["q", "source", "target"]))},
        "/detect": {
            "post": _operation(
                {"type": "array", "items": detected},
                _ERROR,
                body=_object({"q": _TEXT, "api_key": _TEXT}, required=["q"]),
            )
        },
        "/languages": {"get": _operation({"type": "array", "items": language}, _ERROR)},
        "/frontend/settings": {"get": _operation({"type": "object"}, _ERROR)},
        "/health": {"get": _operation(_object({"status": _TEXT}), _ERROR)},
        "/spec": {"get": _operation({"type": "object"}, _ERROR)},
        "/suggest": {"post": _operation(_object({"success": {"type": "boolean"}}), _ERROR, body={"type": "object"})},
    }


def _deepl() -> Json:
    asked = {
        "text": {"type": "array", "items": _TEXT, "minItems": 1},
        "source_lang": _TEXT,
        "target_lang": _TEXT,
        "tag_handling": {"enum": ["xml", "html"]},
        "ignore_tags": {"type": "array", "items": _TEXT},
        "glossary_id": _TEXT,
    }
    one = _object({"detected_source_language": _TEXT, "text": _TEXT, "billed_characters": {"type": "integer"}})
    translated = _object({"translations": {"type": "array", "items": one}})
    glossary = _object({
        "glossary_id": _TEXT, "name": _TEXT, "ready": {"type": "boolean"}, "source_lang": _TEXT, "target_lang": _TEXT,
        "creation_time": _TEXT, "entry_count": {"type": "integer"},
    })  # fmt: skip
    made = _object({"name": _TEXT, "source_lang": _TEXT, "target_lang": _TEXT, "entries": _TEXT,
                    "entries_format": {"enum": ["tsv", "csv"]}})  # fmt: skip
    number = [_parameter("number", "path")]
    named = _object({"language": _TEXT, "name": _TEXT}, required=["language", "name"])
    usage = _object({"character_count": {"type": "integer"}, "character_limit": {"type": "integer"}})
    return {
        "/v2/translate": {
            "post": _operation(translated, _MESSAGE, body=_object(asked, required=["text", "target_lang"]))
        },
        "/v2/languages": {
            "get": _operation({"type": "array", "items": named}, _MESSAGE, parameters=[_parameter("type", "query")])
        },
        "/v3/languages": {"get": _operation({"type": "array"}, _MESSAGE)},
        "/v2/usage": {"get": _operation(usage, _MESSAGE)},
        "/v2/glossary-language-pairs": {"get": _operation({"type": "object"}, _MESSAGE)},
        "/v2/glossaries": {
            "get": _operation(_object({"glossaries": {"type": "array", "items": glossary}}), _MESSAGE),
            "post": _operation(glossary, _MESSAGE, body=made, status=201),
        },
        "/v2/glossaries/{number}": {
            "get": _operation(glossary, _MESSAGE, parameters=number),
            "delete": _operation(None, _MESSAGE, parameters=number, status=204),
        },
        "/v2/glossaries/{number}/entries": {
            "get": _operation(_TEXT, _MESSAGE, parameters=number, media="text/tab-separated-values")
        },
    }


def _google() -> Json:
    asked = {
        "q": {"type": "array", "items": _TEXT},
        "target": _TEXT,
        "source": _TEXT,
        "format": {"enum": ["text", "html"]},
    }
    data = _object({"data": {"type": "object"}})
    return {
        "/language/translate/v2": {"post": _operation(data, _CODED, body=_object(asked, required=["q", "target"]))},
        "/language/translate/v2/detect": {"post": _operation(data, _CODED, body=_object({"q": asked["q"]}))},
        "/language/translate/v2/languages": {
            "get": _operation(data, _CODED, parameters=[_parameter("target", "query")])
        },
    }


def _inference() -> Json:
    model = [_parameter("model", "path")]
    tensor = _object({"name": _TEXT, "datatype": _TEXT, "shape": {"type": "array", "items": {"type": "integer"}},
                      "data": {"type": "array"}}, required=["name", "datatype", "shape"])  # fmt: skip
    inputs = _object({"id": _TEXT, "inputs": {"type": "array", "items": tensor}}, required=["inputs"])
    outputs = _object({"model_name": _TEXT, "outputs": {"type": "array", "items": tensor}})
    anything = {"type": "object"}
    return {
        "/v2": {"get": _operation(anything, _ERROR)},
        "/v2/health/live": {"get": _operation(anything, _ERROR)},
        "/v2/health/ready": {"get": _operation(anything, anything)},
        "/v2/models/{model}": {"get": _operation(anything, _ERROR, parameters=model)},
        "/v2/models/{model}/ready": {"get": _operation(anything, anything, parameters=model)},
        "/v2/models/{model}/infer": {"post": _operation(outputs, _ERROR, parameters=model, body=inputs)},
    }


def _own() -> Json:
    asked = _object({"q": _TEXT, "source": _TEXT, "target": _TEXT, "api_key": _TEXT}, required=["q", "target"])
    return {
        "/stream": {"post": _operation(_TEXT, _ERROR, body=asked, media="text/event-stream")},
        "/ready": {"get": _operation(_object({"status": _TEXT}), _object({"status": _TEXT}))},
        "/metrics": {"get": _operation(_TEXT, _ERROR, media="text/plain")},
        "/openapi.json": {"get": _operation({"type": "object"}, _ERROR)},
    }


def _object(properties: Json, *, required: list[str] | None = None) -> Json:
    """An object that has all of these, unless it is said which it must have."""
    return {"type": "object", "properties": properties, "required": [*properties] if required is None else required}


def _parameter(name: str, place: str) -> Json:
    return {"name": name, "in": place, "required": place == "path", "schema": _TEXT}


def _operation(
    answer: Json | None,
    refusal: Json,
    *,
    body: Json | None = None,
    parameters: list[Json] | None = None,
    status: int = 200,
    media: str = "application/json",
) -> Json:
    right: Json = {"description": "as asked for"}
    if answer is not None:
        right["content"] = {media: {"schema": answer}}
    wrong = {"description": "refused", "content": {"application/json": {"schema": refusal}}}
    operation: Json = {"responses": {str(status): right} | {str(number): wrong for number in _REFUSALS}}
    if parameters:
        operation["parameters"] = parameters
    if body is not None:
        content = {"application/json": {"schema": body}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation
