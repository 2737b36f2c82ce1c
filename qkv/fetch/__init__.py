"""Public corpora: downloaded from their homes, read out of their archives, and prepared as the paper has them."""

from __future__ import annotations

from qkv.fetch.corpora import CORPORA, Corpus, corpus
from qkv.fetch.fetching import Fetched, fetch

__all__ = ["CORPORA", "Corpus", "Fetched", "corpus", "fetch"]
