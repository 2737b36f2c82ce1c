"""Translation memories, TMX: every unit gets a variant in the new language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from qkv.files import inline
from qkv.files.reading import Asked
from qkv.files.segments import Part, refused, translated
from qkv.files.xml import Token, element, raw, read


def translate_tmx(data: bytes, asked: Asked) -> bytes:
    """The memory with one more language; a unit that has it stays, unless it is wanted again."""
    document = read(data, asked.name)
    root = next((token for token in document.tokens if token.name), None)
    if root is None or root.local != "tmx":
        raise refused(asked.name, "it is no TMX: its first element is not <tmx>", "export it anew as TMX")
    if asked.target is None:
        raise refused(asked.name, "a translation memory names its languages", "say which one to translate to (--to fr)")
    text = translated([*_parts(document.tokens, asked.target, asked)], asked.translate)
    return document.decoded.encoded(text, asked.name, references=True)


def _parts(tokens: list[Token], target: str, asked: Asked) -> Iterator[Part]:
    waiting = tokens[::-1]
    source = asked.source
    while waiting:
        token = waiting[-1]
        if token.kind == "opening" and token.local == "tu":
            own = token.attributes().get("srclang", source)
            yield from _unit(element(waiting), own, target, again=asked.again)
            continue
        if token.local == "header" and source is None:
            said = token.attributes().get("srclang", "*all*")
            source = None if said == "*all*" else said
        yield waiting.pop().raw


class _Variant(NamedTuple):
    language: str
    tokens: list[Token]
    behind: list[Token]
    """What stands between it and the next."""


def _unit(tokens: list[Token], source: str | None, target: str, *, again: bool) -> Iterator[Part]:
    """A unit, which ends with the new variant."""
    variants: list[_Variant] = []
    before: list[Token] = [tokens[0]]
    behind = before
    waiting = tokens[-2:0:-1]
    while waiting:
        if waiting[-1].local == "tuv" and waiting[-1].kind == "opening":
            attributes = waiting[-1].attributes()
            behind = []
            variants.append(_Variant(attributes.get("xml:lang", attributes.get("lang", "")), element(waiting), behind))
        else:
            behind += element(waiting)
    content = inline.parts(_read(variants, source, target))
    if all(isinstance(part, str) for part in content):
        yield raw(tokens)
        return
    head = raw(before)
    yield head
    there = next((place for place, one in enumerate(variants) if _same(one.language, target)), None)
    for place, one in enumerate(variants):
        if again and place == there:
            yield from _made_anew(one.tokens, content)
        else:
            yield raw(one.tokens)
        if there is None and place == len(variants) - 1:
            yield head[len(head.rstrip()) :] + f'<tuv xml:lang="{target}"><seg>'
            yield from content
            yield "</seg></tuv>"
        yield raw(one.behind)
    yield tokens[-1].raw


def _read(variants: list[_Variant], source: str | None, target: str) -> list[Token]:
    """The text that is translated: that in the source language, or the first that is there."""
    chosen = next((one for one in variants if source and _same(one.language, source)), None)
    chosen = chosen or next((one for one in variants if not _same(one.language, target)), None)
    start, end = _segment(chosen.tokens) if chosen else (0, 0)
    return chosen.tokens[start + 1 : end - 1] if chosen else []


def _made_anew(tokens: list[Token], content: list[Part]) -> Iterator[Part]:
    start, end = _segment(tokens)
    if start == end:
        yield raw(tokens)
        return
    opening = tokens[start]
    yield raw(tokens[:start]) + (opening.raw if opening.kind == "opening" else f"<{opening.name}>")
    yield from content
    yield f"</{opening.name}>" + raw(tokens[end:])


def _segment(tokens: list[Token]) -> tuple[int, int]:
    """Where in a variant its text begins and ends, with its tags; in one place where it has none."""
    for start, token in enumerate(tokens):
        if token.local == "seg":
            return start, start + len(element(tokens[start:][::-1]))
    return 0, 0


def _same(one: str, other: str) -> bool:
    """Whether two names are of one language; what is said of a country counts only where both say it."""
    (first, *here), (second, *there) = (name.lower().replace("_", "-").split("-") for name in (one, other))
    return first == second and (not here or not there or here == there)
