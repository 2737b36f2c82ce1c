"""XLIFF 1.2 and 2: every source without a target gets one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qkv.files import inline
from qkv.files.reading import Asked
from qkv.files.segments import Part, refused, translated
from qkv.files.xml import Token, element, raw, read

_UNITS = {"trans-unit": "1.2", "segment": "2"}
_TARGET = {"1.2": ' state="translated" state-qualifier="leveraged-mt"', "2": ""}
"""What a new target says of itself; in XLIFF 2 its segment says it."""
_LANGUAGES = {"file": "target-language", "xliff": "trgLang"}
_BEFORE = ("source", "seg-source")
"""Elements of a unit that a new target stands behind."""
_STATE = re.compile(r"""(\sstate\s*=\s*)("[^"]*"|'[^']*')""")


def translate_xliff(data: bytes, asked: Asked) -> bytes:
    """The file with targets; those that it has stay, unless they are wanted again."""
    document = read(data, asked.name)
    root = next((token for token in document.tokens if token.name), None)
    if root is None or root.local != "xliff":
        raise refused(asked.name, "it is no XLIFF: its first element is not <xliff>", "export it anew as XLIFF")
    text = translated([*_parts(document.tokens, asked)], asked.translate)
    return document.decoded.encoded(text, asked.name, references=True)


def _parts(tokens: list[Token], asked: Asked) -> Iterator[Part]:
    waiting = tokens[::-1]
    version = "1.2"
    while waiting:
        token = waiting[-1]
        if token.kind == "opening" and token.attributes().get("translate") == "no":
            yield raw(element(waiting))
        elif token.kind == "opening" and token.local in _UNITS:
            yield from _unit(element(waiting), _UNITS[token.local], asked)
        elif token.kind == "opening" and token.local in _LANGUAGES:
            if token.local == "xliff":
                version = token.attributes().get("version", version)
            # Each version says it in another place.
            is_here = version.startswith("1") == (token.local == "file")
            yield _with_language(waiting.pop(), asked.target if is_here else None)
        else:
            yield waiting.pop().raw


def _with_language(token: Token, target: str | None) -> str:
    name = _LANGUAGES[token.local]
    if target is None or name in token.attributes():
        return token.raw
    return f'{token.raw[:-1]} {name}="{target}">'


def _unit(tokens: list[Token], version: str, asked: Asked) -> Iterator[Part]:
    """A unit: its source, and behind it the target, which is written where there is none."""
    children: list[list[Token]] = []
    waiting = tokens[-2:0:-1]
    while waiting:
        children.append(element(waiting))
    names = [child[0].local for child in children]
    if "source" not in names:
        yield raw(tokens)
        return
    source = children[names.index("source")]
    # Whatever stands between them: a second target would be none that a program reads.
    is_new = "target" not in names
    place = max(names.index(name) for name in _BEFORE if name in names) + 1 if is_new else names.index("target")
    target = [] if is_new else children[place]
    content = inline.parts(source[1:-1])
    has_target = any(token.kind != "text" or token.text.strip() for token in target[1:-1])
    if (has_target and not asked.again) or all(isinstance(part, str) for part in content):
        yield raw(tokens)
        return
    opening = tokens[0].raw
    prefix = source[0].name.removesuffix("source")
    if version == "2":
        opening = _STATE.sub(r'\1"translated"', opening) if _STATE.search(opening) else _stated(opening)
    yield opening + _raw(children[:place])
    if is_new:
        yield _white_space_before(children[: names.index("source")])
    yield f"<{prefix}target{_TARGET[version]}>"
    yield from content
    yield f"</{prefix}target>" + _raw(children[place + (not is_new) :]) + tokens[-1].raw


def _stated(opening: str) -> str:
    return f'{opening[:-1]} state="translated">'


def _raw(children: list[list[Token]]) -> str:
    return "".join(raw(child) for child in children)


def _white_space_before(children: list[list[Token]]) -> str:
    return _raw(children[-1:]) if children and children[-1][0].kind == "text" else ""
