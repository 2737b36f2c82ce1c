"""A folder of `qkv/page` as one page that needs nothing else: no server, no network, no other file.

Such a folder has `shell.html`, `style.css` and `main.js`. A browser runs only what was put into the page here: its
policy names the script and the style by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from pathlib import Path
from typing import Any

import qkv
from qkv.errors import StorageError

FOLDER = Path(qkv.__file__).parent / "page"

_IMPORT = re.compile(r'^import .* from "(\..*)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)
_PART = re.compile(r"\{\{(\w+)\}\}")
_INLINE = re.compile(r'<(style|script)(?: type="module")?>(.*?)</\1>', re.DOTALL)
_POLICY = "default-src 'none'; {script}; {style}; img-src data: blob:; base-uri 'none'; form-action 'none'"


def page(folder: Path, title: str, data: Any) -> str:
    """The page with what it shows, which its script finds as JSON."""
    # No sign of the data can end the element that it stands in.
    told = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return _filled(blank(folder), {"title": escape(title), "data": told})


def blank(folder: Path) -> str:
    """The page without title and data: {{title}} and {{data}} say where they go."""
    style, script = _read(folder / "style.css"), _joined((folder / "main.js").resolve(), set())
    made = _filled(_read(folder / "shell.html"), {"style": style, "script": script})
    hashes = {f"{name}": f"{name}-src '{_hash(text)}'" for name, text in _INLINE.findall(made)}
    return _filled(made, {"policy": _POLICY.format(**hashes)})


def _filled(text: str, parts: dict[str, str]) -> str:
    return _PART.sub(lambda found: parts.get(found[1], found[0]), text)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _joined(path: Path, done: set[Path]) -> str:
    """All modules as one script: what a module imports stands before it, and no name is used twice."""
    done.add(path)
    text = _read(path)
    imported = [(path.parent / other).resolve() for other in _IMPORT.findall(text)]
    before = "".join(_joined(other, done) for other in imported if other not in done)
    return before + _EXPORT.sub("", _IMPORT.sub("", text))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}; install qkv again") from error
