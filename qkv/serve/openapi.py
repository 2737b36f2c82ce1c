"""The OpenAPI document: every address, what it takes and what it gives. Tests send it what it allows, and much else."""

from __future__ import annotations

from typing import Any

from qkv import __version__
from qkv.serve.languages import Languages
from qkv.serve.limits import (
    LARGEST_DIMENSION,
    LONGEST_NAME,
    LONGEST_PREFIX,
    LONGEST_TERM,
    MOST_DIMENSIONS,
    MOST_TAGS,
    MOST_TERMS,
)
from qkv.serve.settings import Settings

Json = dict[str, Any]


def document(settings: Settings, languages: Languages, *, title: str = "qkv") -> Json:
    """The description of a server with these settings and languages."""
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__, "description": "Machine translation."},
        "paths": {
            **_libretranslate(settings, languages),
            **_deepl(languages),
            **_google(languages),
            **_inference(languages),
            **_own(settings, languages),
        },
    }


def _list(items: Json, **more: Any) -> Json:
    return {"type": "array", "items": items, **more}


def _object(properties: Json, *, required: list[str] | None = None) -> Json:
    """An object that has all of these, unless it is said which it must have."""
    return {"type": "object", "properties": properties, "required": [*properties] if required is None else required}


def _one_of(*values: str) -> Json:
    return {"type": "string", "enum": [*values]}


_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": "integer"}
_TRUTH: Json = {"type": "boolean"}
_ANYTHING: Json = {"type": "object"}
_FILE: Json = {"type": "string", "format": "binary"}
_ANY_MEDIA = "*/*"
_ERROR = _object({"error": _TEXT})
_MESSAGE = _object({"message": _TEXT, "detail": _TEXT})
_CODED = _object({"error": _object({"code": _NUMBER, "message": _TEXT})})
_REFUSALS = (400, 401, 403, 404, 405, 408, 413, 415, 429, 456, 503, 504)


def _libretranslate(settings: Settings, languages: Languages) -> Json:
    texts = {"oneOf": [_TEXT, _list(_TEXT)]}
    detected = _object({"confidence": {"type": "number"}, "language": _TEXT})
    asked = {
        "q": texts,
        "source": _one_of(*languages.sources, "auto"),
        "target": _one_of(*languages.all_targets),
        "format": _one_of("text", "html"),
        "alternatives": {"type": "integer", "minimum": 0, "maximum": settings.request_alternatives},
        "api_key": _TEXT,
    }
    translated = {
        "translatedText": texts,
        "detectedLanguage": {"oneOf": [detected, _list(detected)]},
        "alternatives": {"type": "array"},
    }
    language = _object({"code": _TEXT, "name": _TEXT, "targets": _list(_TEXT)})
    return {
        "/translate": {
            "post": _operation(
                _object(translated, required=["translatedText"]),
                _ERROR,
                body=_object(asked, required=["q", "source", "target"]),
            )
        },
        "/detect": {"post": _operation(_list(detected), _ERROR, body=_object({"q": _TEXT}))},
        "/languages": {"get": _operation(_list(language), _ERROR)},
        "/frontend/settings": {"get": _operation(_ANYTHING, _ERROR)},
        "/health": {"get": _operation(_object({"status": _TEXT}), _ERROR)},
        "/spec": {"get": _operation(_ANYTHING, _ERROR)},
        "/translate_file": {
            "post": _operation(
                _object({"translatedFileUrl": _TEXT}),
                _ERROR,
                body=_object(
                    {"file": _FILE, "source": asked["source"], "target": asked["target"], "api_key": _TEXT},
                    required=["file", "source", "target"],
                ),
                sent="multipart/form-data",
            )
        },
        "/download_file/{name}": {
            "get": _operation(_FILE, _ERROR, parameters=[_parameter("name", "path", _TEXT)], media=_ANY_MEDIA)
        },
        "/suggest": {"post": _operation(_object({"success": _TRUTH}), _ERROR, body=_ANYTHING)},
    }


def _deepl(languages: Languages) -> Json:
    pair = {
        "source_lang": _one_of(*(code.upper() for code in languages.sources)),
        "target_lang": _one_of(*(code.upper() for code in languages.all_targets)),
    }
    return {**_deepl_texts(pair), **_deepl_documents(pair), **_deepl_glossaries(pair)}


def _deepl_texts(pair: Json) -> Json:
    asked = {
        "text": _list(_TEXT, minItems=1),
        **pair,
        "tag_handling": _one_of("xml", "html"),
        "tag_handling_version": _one_of("v1", "v2"),
        **dict.fromkeys(("ignore_tags", "splitting_tags", "non_splitting_tags"), _list(_TEXT, maxItems=MOST_TAGS)),
        "split_sentences": _one_of("0", "1", "nonewlines"),
        "formality": _one_of("default", "prefer_more", "prefer_less"),
        "model_type": _one_of("quality_optimized", "prefer_quality_optimized", "latency_optimized"),
        **dict.fromkeys(("preserve_formatting", "outline_detection", "show_billed_characters"), _TRUTH),
        "context": _TEXT,
    }
    one = _object({"detected_source_language": _TEXT, "text": _TEXT, "billed_characters": _NUMBER})
    kind = _parameter("type", "query", _one_of("source", "target"))
    named = _list(_object({"language": _TEXT, "name": _TEXT}))
    usage = _object({"character_count": _NUMBER, "character_limit": _NUMBER})
    return {
        "/v2/translate": {
            "post": _operation(
                _object({"translations": _list(one)}), _MESSAGE, body=_object(asked, required=["text", "target_lang"])
            )
        },
        "/v2/languages": {"get": _operation(named, _MESSAGE, parameters=[kind])},
        "/v3/languages": {"get": _operation(_list(_ANYTHING), _MESSAGE)},
        "/v2/usage": {"get": _operation(usage, _MESSAGE)},
    }


def _deepl_documents(pair: Json) -> Json:
    filename = {"type": "string", "pattern": "^[a-z]{1,8}[.](txt|html|srt|po)$"}
    asked = {"file": _FILE, "filename": filename, "glossary_id": _TEXT, **pair}
    number = [_parameter("number", "path", _TEXT)]
    key = _object({"document_key": _TEXT})
    statuses = _one_of("queued", "translating", "done", "error")
    document = _object({"document_id": _TEXT, "status": statuses, "billed_characters": _NUMBER,
                        "seconds_remaining": _NUMBER, "error_message": _TEXT},
                       required=["document_id", "status"])  # fmt: skip
    return {
        "/v2/document": {
            "post": _operation(
                _object({"document_id": _TEXT, "document_key": _TEXT}),
                _MESSAGE,
                body=_object(asked, required=["file", "target_lang"]),
                sent="multipart/form-data",
                links={
                    "status": _link("post", "/v2/document/{number}", "document_id", document_key="document_key"),
                    "result": _link("post", "/v2/document/{number}/result", "document_id", document_key="document_key"),
                },
            )
        },
        "/v2/document/{number}": {"post": _operation(document, _MESSAGE, parameters=number, body=key)},
        "/v2/document/{number}/result": {
            "post": _operation(_FILE, _MESSAGE, parameters=number, body=key, media=_ANY_MEDIA)
        },
    }


def _deepl_glossaries(pair: Json) -> Json:
    told = {"glossary_id": _TEXT, "name": _TEXT, "ready": _TRUTH, "creation_time": _TEXT}
    glossary = _object({**told, "source_lang": _TEXT, "target_lang": _TEXT, "entry_count": _NUMBER})
    entries = {"type": "string", "description": "lines of two terms with a tab between", "pattern": "^[a-z]+\t[a-z]+$"}
    made = _object(
        {"name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": LONGEST_NAME}, **pair, "entries": entries}
    )
    number = [_parameter("number", "path", _TEXT)]
    return {
        "/v2/glossary-language-pairs": {"get": _operation(_ANYTHING, _MESSAGE)},
        "/v2/glossaries": {
            "get": _operation(_object({"glossaries": _list(glossary)}), _MESSAGE),
            "post": _operation(
                glossary,
                _MESSAGE,
                body=made,
                status=201,
                links={
                    "glossary": _link("get", "/v2/glossaries/{number}", "glossary_id"),
                    "entries": _link("get", "/v2/glossaries/{number}/entries", "glossary_id"),
                    "removed": _link("delete", "/v2/glossaries/{number}", "glossary_id"),
                },
            ),
        },
        "/v2/glossaries/{number}": {
            "get": _operation(glossary, _MESSAGE, parameters=number),
            "delete": _operation(None, _MESSAGE, parameters=number, status=204),
        },
        "/v2/glossaries/{number}/entries": {
            "get": _operation(_TEXT, _MESSAGE, parameters=number, media="text/tab-separated-values")
        },
    }


def _google(languages: Languages) -> Json:
    root = "/language/translate/v2"
    texts = _list(_TEXT, minItems=1)
    asked = {
        "q": texts,
        "target": _one_of(*languages.all_targets),
        "source": _one_of(*languages.sources),
        "format": _one_of("text", "html"),
    }
    data = _object({"data": _ANYTHING})
    named = [_parameter("target", "query", _TEXT)]
    return {
        root: {"post": _operation(data, _CODED, body=_object(asked, required=["q", "target"]))},
        f"{root}/detect": {"post": _operation(data, _CODED, body=_object({"q": texts}))},
        f"{root}/languages": {"get": _operation(data, _CODED, parameters=named)},
    }


def _inference(languages: Languages) -> Json:
    model = [_parameter("model", "path", _one_of(*languages.directions))]
    shape = _list({"type": "integer", "minimum": 0, "maximum": LARGEST_DIMENSION}, maxItems=MOST_DIMENSIONS)
    tensor = _object({"name": _TEXT, "datatype": _one_of("BYTES"), "shape": shape, "data": _list(_TEXT)})
    inputs = _object({"id": _TEXT, "inputs": _list(tensor, minItems=1, maxItems=1)}, required=["inputs"])
    outputs = _object({"model_name": _TEXT, "outputs": _list(tensor)})
    ready = _object({"ready": _TRUTH})
    return {
        "/v2": {"get": _operation(_ANYTHING, _ERROR)},
        "/v2/health/live": {"get": _operation(_ANYTHING, _ERROR)},
        "/v2/health/ready": {"get": _operation(ready, ready)},
        "/v2/models/{model}": {"get": _operation(_ANYTHING, _ERROR, parameters=model)},
        "/v2/models/{model}/ready": {"get": _operation(ready, _ANYTHING, parameters=model)},
        "/v2/models/{model}/infer": {"post": _operation(outputs, _ERROR, parameters=model, body=inputs)},
    }


def _own(settings: Settings, languages: Languages) -> Json:
    source, target = _one_of(*languages.sources, "auto"), _one_of(*languages.all_targets)
    asked = _object({"q": _TEXT, "source": source, "target": target, "api_key": _TEXT}, required=["q", "target"])
    status = _object({"status": _TEXT})
    term = {"type": "string", "pattern": "^[a-z]+$", "maxLength": LONGEST_TERM}
    terms = {"type": "object", "additionalProperties": term, "propertyNames": term, "maxProperties": MOST_TERMS}
    more = {
        "prefix": {"type": "string", "maxLength": LONGEST_PREFIX},
        "glossary": terms,
        "alternatives": {"type": "integer", "minimum": 0, "maximum": settings.request_alternatives},
    }
    span = _list(_NUMBER, minItems=2, maxItems=2)
    word = _object({"span": span, "probability": {"type": "number"}, "sources": _list(span)})
    wording = _object({"text": _TEXT, "probability": {"type": "number"}, "words": _list(word)})
    sentence = _object({"before": _TEXT, "text": _TEXT, "wordings": _list(wording)})
    explained = {"source": _TEXT, "confidence": {"type": "number"}, "target": _TEXT, "after": _TEXT}
    own = {
        "/stream": {"post": _operation(None, _ERROR, body=asked)},
        "/explain": {
            "post": _operation(
                _object({**explained, "sentences": _list(sentence)}),
                _ERROR,
                body={**asked, "properties": asked["properties"] | more},
            )
        },
        "/inspect": {"post": _operation(_ANYTHING, _ERROR, body=_inspected(source, target))},
        "/ready": {"get": _operation(status, status)},
        "/openapi.json": {"get": _operation(_ANYTHING, _ERROR)},
    }
    return own | ({"/metrics": {"get": _operation(_TEXT, _ERROR, media="text/plain")}} if settings.metrics else {})


def _link(method: str, path: str, number: str, **body: str) -> Json:
    """Where what was made is found again, by which parts of the answer."""
    where = path.replace("/", "~1")
    link: Json = {"operationRef": f"#/paths/{where}/{method}", "parameters": {"number": f"$response.body#/{number}"}}
    asked = {name: f"$response.body#/{value}" for name, value in body.items()}
    return link | ({"requestBody": asked} if asked else {})


def _inspected(source: Json, target: Json) -> Json:
    number = {"type": "integer", "minimum": 0}
    head = _object({"use": _one_of("encoder", "decoder", "cross"), "layer": number, "head": number})
    asked = {"q": _TEXT, "source": source, "target": target, "vectors": head, "api_key": _TEXT}
    return _object(asked, required=["q", "target"])


def _parameter(name: str, place: str, schema: Json) -> Json:
    return {"name": name, "in": place, "required": place == "path", "schema": schema}


def _operation(
    answer: Json | None,
    refusal: Json,
    *,
    body: Json | None = None,
    parameters: list[Json] | None = None,
    status: int = 200,
    media: str = "application/json",
    sent: str = "application/json",
    links: Json | None = None,
) -> Json:
    right: Json = {"description": "as asked for"} | ({"links": links} if links else {})
    if answer is not None:
        right["content"] = {media: {"schema": answer}}
    wrong = {"description": "refused", "content": {"application/json": {"schema": refusal}}}
    operation: Json = {"responses": {str(status): right} | {str(number): wrong for number in _REFUSALS}}
    if parameters:
        operation["parameters"] = parameters
    if body is not None:
        operation["requestBody"] = {"required": True, "content": {sent: {"schema": body}}}
    return operation
