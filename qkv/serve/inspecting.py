"""One sentence, looked into for a person who waits."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from qkv.errors import ConfigError, RuleError
from qkv.serve.models import Steps
from qkv.serve.orders import Order
from qkv.serve.settings import Settings
from qkv.translate import COMMONLY_KEPT, Terms, Translation, Translator, noted_through, part, terms_of


def inspected(order: Order, steps: Steps, settings: Settings, *, abandoned: Callable[[], bool]) -> dict[str, Any]:
    """What is shown of the sentence, or the vectors of the one head that is asked for, as JSON.

    Of a way through another language it is the last step. Whatever is abandoned on the way has no answer.
    """
    sentences = part(steps[0], order.texts[0], language=order.source).sentences
    if len(sentences) != 1:
        raise ConfigError(f"one sentence can be looked into at a time, and this text has {len(sentences)}")
    (text,) = sentences
    terms = terms_of(text, keep=COMMONLY_KEPT)
    for translator in steps:
        _require_short(translator, text, settings)
        found = _translated(translator, text, terms, settings.beam or None, abandoned)
        if abandoned():
            return {}
        text = found.text
    attention = noted_through(steps, found).attention
    if order.vectors is not None:
        return {"inspected": json.dumps(attention.head(**order.vectors))}
    told = attention.as_json()
    # Some models do not know their languages: whoever serves them does.
    languages = {"from": told["from"] or order.source, "to": told["to"] or order.target}
    return {"inspected": json.dumps(told | languages, ensure_ascii=False)}


def _require_short(translator: Translator, text: str, settings: Settings) -> None:
    tokens, most = translator.measure(text) + 1, settings.inspected_tokens
    if tokens > most:
        raise ConfigError(
            f"a sentence of {tokens} tokens is too long to be looked into; this server takes {most} at most"
        )


def _translated(
    translator: Translator, text: str, terms: Terms, beam: int | None, abandoned: Callable[[], bool]
) -> Translation:
    """As it is translated where nobody looks inside."""
    wanted = None if terms == Terms() else [terms]
    try:
        return translator.translate([text], beam=beam, terms=wanted, abandoned=lambda _: abandoned())[0]
    except RuleError:
        # What should stay as it is cannot: the translation is worth more than that.
        return _translated(translator, text, Terms(), beam, abandoned)
