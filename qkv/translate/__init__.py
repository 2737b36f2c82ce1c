"""Translating text with a trained run: `Translator.load("run").translate(["Hello."])`."""

from qkv.translate.options import Controls, Terms
from qkv.translate.terms import terms_of
from qkv.translate.translation import Translation
from qkv.translate.translator import Translator

__all__ = ["Controls", "Terms", "Translation", "Translator", "terms_of"]
