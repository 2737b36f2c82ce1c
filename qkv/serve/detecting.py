"""Which language a text is in: py3langid, told which languages can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_ENOUGH = 2000
"""Characters: more of a text would not change what language it is in."""


class Detected(NamedTuple):
    language: str
    confidence: float
    """From 0 to 1."""


class Detector:
    """Tells languages apart, of those that it is given."""

    def __init__(self, languages: Sequence[str]) -> None:
        self._only = languages[0] if len(languages) == 1 else None
        if self._only is None:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier

            self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
            known = {*self._identifier.nb_classes}
            self._identifier.set_languages([code for code in languages if code in known])

    def ranked(self, text: str) -> list[Detected]:
        """The languages that a text may be in, likeliest first."""
        if self._only is not None:
            return [Detected(self._only, float(bool(text.strip())))]
        return [Detected(str(code), float(share)) for code, share in self._identifier.rank(text[:_ENOUGH])]

    def of(self, text: str) -> Detected:
        return self.ranked(text)[0]
