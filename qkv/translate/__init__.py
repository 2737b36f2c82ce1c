"""Translating text with a trained run: `Translator.load("run").translate(["Hello."])`."""

from qkv.search.sample import Sampling
from qkv.translate.catalogue import Catalogue, Route
from qkv.translate.document import (
    USUAL_CUTS,
    Cuts,
    Document,
    Markup,
    Parted,
    are_typeset,
    part,
    translate_document,
    translate_documents,
)
from qkv.translate.options import Controls, Mbr, Precision, Rerank, Terms
from qkv.translate.relay import Relay, linked_through, noted_through
from qkv.translate.stream import Stream
from qkv.translate.terms import COMMONLY_KEPT, terms_of
from qkv.translate.translation import Translation
from qkv.translate.translator import Translator

__all__ = [
    "COMMONLY_KEPT",
    "USUAL_CUTS",
    "Catalogue",
    "Controls",
    "Cuts",
    "Document",
    "Markup",
    "Mbr",
    "Parted",
    "Precision",
    "Relay",
    "Rerank",
    "Route",
    "Sampling",
    "Stream",
    "Terms",
    "Translation",
    "Translator",
    "are_typeset",
    "linked_through",
    "noted_through",
    "part",
    "terms_of",
    "translate_document",
    "translate_documents",
]
