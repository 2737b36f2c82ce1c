"""Scores of translations against references, each with a signature that says how it was computed.

`sacreBLEU` is the number to compare between systems. The paper's own numbers (Table 2) are of another flavour: both
sides through the tokenizer of Moses, hyphenated compounds split, then multi-bleu.perl. On the same text that usually
reads higher than sacreBLEU, so it is named as what it is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from qkv.errors import ConfigError, MissingExtraError, TextError

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric
    from sacrebleu.metrics.bleu import BLEU


@dataclass(frozen=True)
class Score:
    """A number between 0 and 100, the name of its measure, and what one needs to know to compute it again."""

    name: str
    value: float
    signature: str


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The sacreBLEU score alone, for use while training."""
    check(hypotheses, references)
    return _corpus_score(sacrebleu_bleu(), hypotheses, references)


def sentence_bleu(hypothesis: str, reference: str) -> float:
    """BLEU of one sentence, smoothed, and of the orders of n-grams that it is long enough for."""
    return float(_sentence_bleu().sentence_score(hypothesis, [reference]).score)


def score(hypotheses: Sequence[str], references: Sequence[str], *, language: str | None = "en") -> dict[str, Score]:
    """Every score of `METRICS` by its name; `language` chooses the rules of the tokenizer of Moses, and None leaves out
    what needs them."""
    check(hypotheses, references)
    scores = {name: metric(hypotheses, references) for name, metric in METRICS.items()}
    if language is not None:
        scores["paper"] = _paper_bleu(hypotheses, references, language)
    return scores


def check(hypotheses: Sequence[str], references: Sequence[str], system: str = "the system") -> None:
    """Raises a TextError where translations and references do not pair up."""
    if len(hypotheses) != len(references):
        raise TextError(
            f"{system} has {len(hypotheses):,} translations, but there are {len(references):,} references; "
            "line n of the one must translate what line n of the other does"
        )
    require_text(references)


def require_text(references: Sequence[str], where: str = "") -> None:
    """Raises a TextError where there is nothing to compare with."""
    if not any(line.strip() for line in references):
        raise TextError(f"nothing to score: the {len(references):,} references{where} hold no text")


def require_packages() -> None:
    """Raises where a package that `score` needs is missing; to be asked before an hour of translating, not after it."""
    sacrebleu_bleu()
    moses_languages()


def moses_tokenizer(language: str) -> Callable[[str], str]:
    """The tokenizer of Moses as the paper's script called it (its rules of 2017): words parted by single spaces."""
    with scoring_packages():
        from sacremoses import MosesTokenizer
    # Moses itself takes English rules for a language it does not know, and the score would not say so.
    if language not in moses_languages():
        raise ConfigError(
            f"the tokenizer of Moses has no rules for the language {language!r}; it knows "
            f"{', '.join(moses_languages())}"
        )
    tokenizer = MosesTokenizer(language)

    def tokenize(line: str) -> str:
        return str(tokenizer.tokenize(line, return_str=True))

    return tokenize


def moses_languages() -> list[str]:
    """The languages that the tokenizer of Moses has rules for."""
    with scoring_packages():
        from sacremoses.corpus import NonbreakingPrefixes
    return sorted(set(NonbreakingPrefixes().available_langs.values()))


def split_compounds(line: str) -> str:
    """Hyphenated words in three: `rich-text` becomes `rich ##AT##-##AT## text`, by the rule of the paper's script."""
    # The script's Perl reads bytes, and a match eats the byte after its hyphen: `a-b-c` is split once, `a-é-c` twice.
    return _COMPOUND.sub(rb"\1 ##AT##-##AT## \2", line.encode()).decode()


_COMPOUND = re.compile(rb"(\S)-(\S)")


@contextmanager
def scoring_packages() -> Iterator[None]:
    """Where the packages that compute scores are imported: one that is missing is named with its cure."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError("scoring needs", str(error.name), "train") from error


def sacrebleu_bleu(*, force: bool = True) -> Metric:
    """BLEU as sacreBLEU defines it; without `force` it warns of text that looks tokenised."""
    with scoring_packages():
        from sacrebleu.metrics.bleu import BLEU
    return BLEU(tokenize="13a", force=force)


def sacrebleu_chrf() -> Metric:
    """chrF2: character n-grams up to six, recall counting double."""
    with scoring_packages():
        from sacrebleu.metrics.chrf import CHRF
    return CHRF()


@functools.cache
def _sentence_bleu() -> BLEU:
    with scoring_packages():
        from sacrebleu.metrics.bleu import BLEU
    return BLEU(tokenize="13a", effective_order=True)


def _bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    metric = sacrebleu_bleu(force=False)
    value = _corpus_score(metric, hypotheses, references)
    return Score("sacreBLEU", value, str(metric.get_signature()))


def _chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    metric = sacrebleu_chrf()
    value = _corpus_score(metric, hypotheses, references)
    return Score("chrF2", value, str(metric.get_signature()))


def _paper_bleu(hypotheses: Sequence[str], references: Sequence[str], language: str) -> Score:
    with scoring_packages():
        from sacrebleu.metrics.bleu import BLEU
    tokenize = moses_tokenizer(language)
    # multi-bleu.perl: words are what white space separates, and an order of n-grams without a match makes the score 0.
    value = _corpus_score(
        BLEU(tokenize="none", smooth_method="none", force=True),
        [split_compounds(tokenize(line)) for line in hypotheses],
        [split_compounds(tokenize(line)) for line in references],
    )
    signature = (
        f"nrefs:1|case:mixed|tok:moses|lang:{language}|aggressive:no|escape:yes|compounds:##AT##-##AT##"
        f"|smooth:none|sacremoses:{version('sacremoses')}|sacrebleu:{version('sacrebleu')}"
    )
    return Score("tokenised BLEU, compounds split (as in the paper; not comparable to sacreBLEU)", value, signature)


METRICS: dict[str, Callable[[Sequence[str], Sequence[str]], Score]] = {"bleu": _bleu, "chrf": _chrf}
"""Those that need to know nothing of the language."""


def _corpus_score(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> float:
    return float(metric.corpus_score(hypotheses, [references]).score)
