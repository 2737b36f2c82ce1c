"""The table of formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import NamedTuple

from qkv.errors import ConfigError
from qkv.files.docx import translate_docx
from qkv.files.html import translate_html
from qkv.files.markdown import translate_markdown
from qkv.files.plain import translate_text
from qkv.files.po import translate_po
from qkv.files.reading import Asked
from qkv.files.subtitles import translate_srt, translate_vtt
from qkv.files.tmx import translate_tmx
from qkv.files.xliff import translate_xliff


class Kind(NamedTuple):
    """A format: what its files are called, and how one is translated."""

    name: str
    extensions: tuple[str, ...]
    media_type: str
    translate: Callable[[bytes, Asked], bytes]


_KINDS = (
    Kind("plain text", (".txt",), "text/plain", translate_text),
    Kind("Markdown", (".md", ".markdown"), "text/markdown", translate_markdown),
    Kind("HTML", (".html", ".htm", ".xhtml"), "text/html", translate_html),
    Kind(
        "Word document",
        (".docx",),
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        translate_docx,
    ),
    Kind("SubRip subtitles", (".srt",), "application/x-subrip", translate_srt),
    Kind("WebVTT subtitles", (".vtt",), "text/vtt", translate_vtt),
    Kind("gettext catalogue", (".po", ".pot"), "text/x-gettext-translation", translate_po),
    Kind("XLIFF", (".xlf", ".xliff"), "application/xliff+xml", translate_xliff),
    Kind("translation memory", (".tmx",), "application/x-tmx+xml", translate_tmx),
)


def kinds() -> tuple[Kind, ...]:
    """Every format there is."""
    return _KINDS


def kind_of(name: str) -> Kind | None:
    """The format of a file by its name, `report.docx`, or by its extension alone, `.docx` or `docx`."""
    extension = (PurePath(name).suffix or f".{name.lstrip('.')}").lower()
    return next((kind for kind in _KINDS if extension in kind.extensions), None)


def require_kind(name: str) -> Kind:
    """The same, where there must be one."""
    kind = kind_of(name)
    if kind is None:
        known = ", ".join(extension for kind in _KINDS for extension in kind.extensions)
        raise ConfigError(f"{name}: files of this kind cannot be translated; there are {known}")
    return kind
