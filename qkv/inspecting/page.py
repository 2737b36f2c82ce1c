"""An inspection as one page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from qkv import pages

_FRAME = (
    '<iframe sandbox="allow-scripts allow-downloads" title="Attention in a translation" srcdoc="{page}" '
    'style="width: 100%; height: 820px; border: 1px solid #8884; border-radius: 6px"></iframe>'
)


def page(
    inspection: dict[str, Any],
    compare: dict[str, Any] | None = None,
    *,
    elsewhere: Sequence[Sequence[dict[str, Any]]] = (),
) -> str:
    """The page of an inspection, as `Inspection.as_json` tells it, and of another beside it where there is one.

    `elsewhere` has pairs: the same two sentences in other languages.
    """
    data = {"inspection": inspection, "compare": compare, "elsewhere": elsewhere}
    return pages.page(pages.FOLDER / "inspector", inspection["source"]["text"], data)


def frame(inspection: dict[str, Any]) -> str:
    """The same as part of another page: what a notebook shows."""
    return _FRAME.format(page=escape(page(inspection)))
