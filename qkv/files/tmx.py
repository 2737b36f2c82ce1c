"""Translation memories, TMX: every unit gets a variant in the new language."""

from __future__ import annotations

from collections.abc import Iterator

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


def _unit(tokens: list[Token], source: str | None, target: str, *, again: bool) -> Iterator[Part]:
    """A unit, which ends with the new variant."""
    variants: list[tuple[str, list[Token]]] = []
    between: list[str] = [tokens[0].raw]
    waiting = tokens[-2:0:-1]
    while waiting:
        if waiting[-1].local == "tuv" and waiting[-1].kind == "opening":
            attributes = waiting[-1].attributes()
            variants.append((attributes.get("xml:lang", attributes.get("lang", "")), element(waiting)))
            between.append("")
        else:
            between[-1] += raw(element(waiting))
    read = next((some for language, some in variants if source and _same(language, source)), None)
    read = read or next((some for language, some in variants if not _same(language, target)), None)
    segment = _segment(read or [])
    content = inline.parts(segment[1:-1])
    if all(isinstance(part, str) for part in content):
        yield raw(tokens)
        return
    yield between[0]
    is_there = False
    for (language, some), behind in zip(variants, between[1:], strict=True):
        if again and _same(language, target) and not is_there:
            old = _segment(some)
            start = next(place for place, token in enumerate(some) if token is old[0])
            yield raw(some[: start + 1])
            yield from content
            yield raw(some[start + len(old) - 1 :])
        else:
            yield raw(some)
        is_there = is_there or _same(language, target)
        if (language, some) == variants[-1] and not is_there:
            yield between[0][len(between[0].rstrip()) :] + f'<tuv xml:lang="{target}"><seg>'
            yield from content
            yield "</seg></tuv>"
        yield behind
    yield tokens[-1].raw


def _segment(tokens: list[Token]) -> list[Token]:
    waiting = tokens[::-1]
    while waiting and not (waiting[-1].local == "seg" and waiting[-1].kind == "opening"):
        waiting.pop()
    return element(waiting) if waiting else []


def _same(one: str, other: str) -> bool:
    """Whether two names are of one language; what is said of a country counts only where both say it."""
    (first, *here), (second, *there) = (name.lower().replace("_", "-").split("-") for name in (one, other))
    return first == second and (not here or not there or here == there)
