"""An inspection as one page that needs nothing else: no server, no network, no other file.

`qkv/page/inspector` has the shell of such a page, its style and its modules; a page that is served saves itself the
same way (`saving.js`).
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

import qkv
from qkv.errors import StorageError

MODULES = Path(qkv.__file__).parent / "page" / "inspector"

_IMPORT = re.compile(r'^import .* from "\./(.*)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)
_PART = re.compile(r"\{\{(\w+)\}\}")
_FRAME = (
    '<iframe sandbox="allow-scripts allow-downloads" title="Attention in a translation" srcdoc="{page}" '
    'style="width: 100%; height: 820px; border: 1px solid #8884; border-radius: 6px"></iframe>'
)


def page(inspection: dict[str, Any], compare: dict[str, Any] | None = None, *, modules: Path | None = None) -> str:
    """The page of an inspection, as `Inspection.as_json` tells it, and of another beside it where there is one."""
    modules = modules or MODULES
    data = json.dumps({"inspection": inspection, "compare": compare}, ensure_ascii=False)
    parts = {
        "title": escape(inspection["source"]["text"]),
        "style": _read(modules / "inspector.css"),
        "script": _joined(modules, "main.js", set()),
        # No sign of the data can end the element that it stands in.
        "data": data.replace("<", "\\u003c"),
    }
    return _PART.sub(lambda found: parts[found[1]], _read(modules / "shell.html"))


def frame(inspection: dict[str, Any]) -> str:
    """The same as part of another page: what a notebook shows."""
    return _FRAME.format(page=escape(page(inspection)))


def _joined(modules: Path, name: str, done: set[str]) -> str:
    """All modules as one script: what a module imports stands before it, and no name is used twice."""
    done.add(name)
    text = _read(modules / name)
    before = "".join(_joined(modules, other, done) for other in _IMPORT.findall(text) if other not in done)
    return before + _EXPORT.sub("", _IMPORT.sub("", text))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}; install qkv again") from error
