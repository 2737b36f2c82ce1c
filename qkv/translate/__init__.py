"""Translating text with a trained run: `Translator.load("run").translate(["Hello."])`."""

from qkv.search.sample import Sampling
from qkv.translate.options import Controls, Mbr, Rerank
from qkv.translate.translation import Translation
from qkv.translate.translator import Translator

__all__ = ["Controls", "Mbr", "Rerank", "Sampling", "Translation", "Translator"]
