"""LibreTranslate as its users run it, with models of qkv: what is left to compare are the two servers.

    python -m bench.libre --model model/ --from en --to fr --port 5001

runs where LibreTranslate and what qkv translates with are installed; other options are LibreTranslate's own. Its list
of models is replaced, and nothing else: each text goes to the same translator that `qkv serve` has, in the same process
and on the threads of LibreTranslate.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import argostranslate.translate
import libretranslate
import libretranslate.init

from qkv.translate import Translator, part


class Translation(argostranslate.translate.ITranslation):  # type: ignore[misc]
    """A translation as LibreTranslate asks for it."""

    def __init__(self, source: Any, target: Any, translator: Translator) -> None:
        self.from_lang, self.to_lang = source, target
        self._translator = translator

    def hypotheses(self, input_text: str, num_hypotheses: int = 4) -> list[Any]:
        """As many wordings of a text as are wanted, best first."""
        parted = part(self._translator, input_text, language=self.from_lang.code)
        found = self._translator.translate(parted.sentences, alternatives=num_hypotheses - 1)
        ranked = [(one, *one.alternatives) for one in found]
        return [
            argostranslate.translate.Hypothesis(parted.joined([some[min(rank, len(some) - 1)] for some in ranked]), 0.0)
            for rank in range(num_hypotheses)
        ]


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--model", required=True)
    parser.add_argument("--from", dest="source", required=True)
    parser.add_argument("--to", dest="target", required=True)
    chosen, sys.argv[1:] = parser.parse_known_args()
    translator = Translator.load(chosen.model).between(chosen.source, chosen.target)
    source, target = (argostranslate.translate.Language(code, code) for code in (chosen.source, chosen.target))
    # Kept as LibreTranslate keeps those of its own models.
    source.translations_from = [argostranslate.translate.CachedTranslation(Translation(source, target, translator))]
    argostranslate.translate.get_installed_languages = lambda: [source, target]
    # It would ask the network for models otherwise, as it has none.
    libretranslate.init.boot = lambda *_: None
    libretranslate.main()


if __name__ == "__main__":
    main()
