"""How texts are wanted, in the words of DeepL: what can be had is done, what has to be and cannot is refused."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from qkv.serve.limits import MOST_TAGS, require_few
from qkv.serve.reading import Asked
from qkv.serve.refusals import Refusal
from qkv.text.sentences import Ends
from qkv.translate import Cuts, Markup

_TAGS: dict[str, Markup] = {"": "none", "xml": "tags", "html": "html"}
_ENDS: dict[str, Ends] = {"0": "nowhere", "1": "lines", "nonewlines": "marks"}
_USUAL_ENDS = {"": "1", "xml": "1", "html": "nonewlines"}
"""By how tags are handled: a new line of HTML is white space."""
_MODELS = {
    "quality_optimized": "quality_optimized",
    "prefer_quality_optimized": "quality_optimized",
    "latency_optimized": "latency_optimized",
}
"""What is told to have been used: there is one model for all."""
_SWITCH = ("0", "1", "false", "true")
_FORMALITIES = ("default", "prefer_more", "prefer_less", "more", "less")
_REQUIRED_FORMALITIES = ("more", "less")


class Options(NamedTuple):
    """How the texts of a request are wanted."""

    markup: Markup
    cuts: Cuts
    untouched: tuple[str, ...]
    """Names of tags whose content stays as it is."""
    model: str | None
    """What is told of the model, where one was asked for."""


def options(asked: Asked) -> Options:
    """What a request for texts asks for, or a `Refusal` in DeepL's words."""
    require_usual_formality(asked)
    # No text is made neater than its translation is, no structure is guessed, and characters are always told: either
    # way of these is the same. A sentence is translated by itself, whatever the context.
    for name in ("preserve_formatting", "outline_detection", "show_billed_characters"):
        _one_of(asked, name, _SWITCH)
    _one_of(asked, "tag_handling_version", ("v1", "v2"))
    asked.texts("context")
    tags = _one_of(asked, "tag_handling", _TAGS) or ""
    ends = _ENDS[_one_of(asked, "split_sentences", _ENDS) or _USUAL_ENDS[tags]]
    model = _one_of(asked, "model_type", _MODELS)
    return Options(
        _TAGS[tags],
        Cuts(ends, _names(asked, "splitting_tags"), _names(asked, "non_splitting_tags")),
        _names(asked, "ignore_tags"),
        _MODELS[model] if model else None,
    )


def require_usual_formality(asked: Asked) -> None:
    """No model here can be told how formal to be: whoever only prefers it has what there is."""
    if _one_of(asked, "formality", _FORMALITIES) in _REQUIRED_FORMALITIES:
        raise Refusal("bad", "'formality' is not supported for given 'target_lang'.", parameter="formality")


def _one_of(asked: Asked, name: str, allowed: Container[str]) -> str | None:
    value = asked.word(name)
    if value and value not in allowed:
        raise Refusal("bad", f"Value for '{name}' not supported.", parameter=name)
    return value


def _names(asked: Asked, name: str) -> tuple[str, ...]:
    """Names of tags, given as a list or with commas between."""
    parts = (part.strip().lower() for text in asked.texts(name) for part in text.split(","))
    names = dict.fromkeys(part for part in parts if part)
    require_few(names, MOST_TAGS, "names of tags", parameter=name)
    return (*names,)
