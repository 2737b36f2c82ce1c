"""How much of everything a request may have; what depends on the machine is in `serve.settings`.

Each number is far above what people send, and small enough that the most of everything is a moment's work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized

from qkv.serve.refusals import Refusal

MOST_DIMENSIONS = 8
"""Of a tensor of texts."""
LARGEST_DIMENSION = 2**63 - 1
"""What other servers of that protocol can count to."""
LONGEST_PREFIX = 2000
"""Characters that a translation is begun with: more than the longest sentence has that a model reads."""
LONGEST_TERM = 200
"""Characters of a term of a glossary, and of what it becomes."""
MOST_TERMS = 1000
"""Of a glossary that comes with a text."""
MOST_TERM_CHARACTERS = 50_000
"""Of all these terms, what they become left out: a tree is made of them, each time."""
MOST_ENTRIES = 10_000
"""Of a glossary that is kept."""
MOST_ENTRY_CHARACTERS = 250_000
"""The same of these: their tree is kept for a while."""
MOST_GLOSSARIES = 1000
MOST_KEPT_CHARACTERS = 32 << 20
"""Of all glossaries that are kept."""
LONGEST_NAME = 1024
"""Characters that a glossary is called by."""
MOST_TAGS = 200
"""Names of tags that are to be handled in one way."""


def require_few(some: Sized, most: int, what: str, *, parameter: str) -> None:
    """Refuses more of something than there may be: `what` is such as `terms` or `characters of a prefix`."""
    if len(some) > most:
        message = f"Invalid request: {len(some)} {what} exceed the limit of {most}"
        raise Refusal("too_much", message, parameter=parameter)


def require_short_terms(terms: Mapping[str, str], most: int, *, parameter: str) -> None:
    """Refuses a term that is no term, and more characters than all of them may have."""
    for term in (*terms, *terms.values()):
        require_few(term, LONGEST_TERM, f"characters of the term {term[:20]!r}…", parameter=parameter)
    require_few("".join(terms), most, "characters of terms", parameter=parameter)
