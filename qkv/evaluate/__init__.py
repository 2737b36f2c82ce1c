"""How good translations are: BLEU in its flavours and chrF, each with its signature, and whether a gain is chance."""

from qkv.evaluate.report import Report, evaluate
from qkv.evaluate.scores import METRICS, Score, bleu, score, split_compounds
from qkv.evaluate.significance import Comparison, Estimate, compare

__all__ = [
    "METRICS",
    "Comparison",
    "Estimate",
    "Report",
    "Score",
    "bleu",
    "compare",
    "evaluate",
    "score",
    "split_compounds",
]
