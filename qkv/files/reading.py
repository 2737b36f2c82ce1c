"""What a format is given: the name of the file, who translates, and what is wanted."""

from __future__ import annotations

from dataclasses import dataclass

from qkv.files.segments import Translate

MOST_TAGS = 500_000
"""Of a file: hundreds of pages have fewer, and every one takes memory."""


@dataclass(frozen=True)
class Asked:
    """How a file is to be translated; errors name it."""

    name: str
    translate: Translate
    source: str | None = None
    """The languages, for formats that say them: `lang="fr"`."""
    target: str | None = None
    again: bool = False
    """Whether translations that are there already are made anew."""
