"""Translating files as they are: `translate_file(data, "report.docx", translate)`; everything but the text stays."""

from __future__ import annotations

from qkv.files.kinds import Kind, kind_of, kinds, require_kind
from qkv.files.reading import Asked
from qkv.files.segments import Translate, refused

__all__ = ["MOST_BYTES", "Kind", "Translate", "kind_of", "kinds", "require_kind", "translate_file"]

MOST_BYTES = 64 << 20
"""The largest file that is read."""


def translate_file(
    data: bytes,
    name: str,
    translate: Translate,
    *,
    source: str | None = None,
    target: str | None = None,
    again: bool = False,
) -> bytes:
    """The file translated; its name, or its extension alone, says what kind it is.

    `translate` is called once with all texts of the file. They are like HTML: `&`, `<` and `>` are entities, and the
    tags in them must all come back, once each. Languages are written into formats that say them. Translations that a
    file has already are kept, unless they are wanted `again`.
    """
    kind = require_kind(name)
    if len(data) > MOST_BYTES:
        raise refused(name, f"it has {len(data):,} bytes, and {MOST_BYTES:,} is the limit", "split it")
    return kind.translate(data, Asked(name, translate, source, target, again))
