"""Translating text with a trained run: `Translator.load("run").translate(["Hello."])`."""

from qkv.translate.options import Controls
from qkv.translate.translation import Translation
from qkv.translate.translator import Translator

__all__ = ["Controls", "Translation", "Translator"]
