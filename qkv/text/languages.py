"""Languages: their codes however they are written, and from which into which a text is translated."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from qkv.errors import ConfigError

_TABLE = """
af afr Afrikaans; am amh Amharic; ar ara Arabic; az aze Azerbaijani; be bel Belarusian; bg bul Bulgarian;
bn ben Bengali; bs bos Bosnian; ca cat Catalan; cs ces cze Czech; cy cym wel Welsh; da dan Danish;
de deu ger German; el ell gre Greek; en eng English; eo epo Esperanto; es spa Spanish; et est Estonian;
eu eus baq Basque; fa fas per Persian; fi fin Finnish; fr fra fre French; ga gle Irish; gl glg Galician;
gu guj Gujarati; he heb Hebrew; hi hin Hindi; hr hrv Croatian; hu hun Hungarian; hy hye arm Armenian;
id ind Indonesian; is isl ice Icelandic; it ita Italian; ja jpn Japanese; ka kat geo Georgian; kk kaz Kazakh;
km khm Khmer; kn kan Kannada; ko kor Korean; la lat Latin; lb ltz Luxembourgish; lt lit Lithuanian;
lv lav Latvian; mk mkd mac Macedonian; ml mal Malayalam; mn mon Mongolian; mr mar Marathi; ms msa may Malay;
mt mlt Maltese; my mya bur Burmese; nb nob Bokmål; ne nep Nepali; nl nld dut Dutch; nn nno Nynorsk;
no nor Norwegian; pa pan Punjabi; pl pol Polish; pt por Portuguese; ro ron rum Romanian; ru rus Russian;
sk slk slo Slovak; sl slv Slovenian; sq sqi alb Albanian; sr srp Serbian; sv swe Swedish; sw swa Swahili;
ta tam Tamil; te tel Telugu; th tha Thai; tr tur Turkish; uk ukr Ukrainian; ur urd Urdu; uz uzb Uzbek;
vi vie Vietnamese; zh zho chi Chinese
"""
_ROWS = [row.split() for row in _TABLE.replace("\n", " ").split(";")]
NAMES = {row[0]: row[-1] for row in _ROWS}
"""The languages that are known by more than the code a user gave; any other code is as good a name."""
_CODES = {word.lower(): row[0] for row in _ROWS for word in row}

_CODE = re.compile(r"[a-z][a-z0-9]*(_[A-Z0-9][A-Za-z0-9]*)*")
_ENDINGS = re.compile(r"\.(gz|xz|tsv|txt)$")


class Direction(NamedTuple):
    """From which language into which."""

    source: str
    target: str

    @classmethod
    def parse(cls, text: str) -> Direction:
        """`en-de`; a region is written with an underscore, `en-pt_BR`."""
        source, _, target = (part.strip() for part in text.partition("-"))
        if not source or not target or "-" in target:
            raise ConfigError(f"{text!r} is no direction; write it as en-de, and a region as en-pt_BR")
        return cls(language(source), language(target))

    @property
    def turned(self) -> Direction:
        return Direction(self.target, self.source)

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


def parse_directions(text: str | None) -> tuple[Direction, ...]:
    """Those of a list such as `en-de,de-en`, each once; none where there is no list."""
    return tuple(dict.fromkeys(Direction.parse(one) for one in (text or "").split(",") if one.strip()))


def language(text: str) -> str:
    """A code as qkv writes it: `de` for DE, ger, deu and German, `pt_BR` for pt-br."""
    first, *others = re.split("[-_]", text.strip())
    first = _CODES.get(first.lower(), first.lower())
    rest = [part.upper() if len(part) < 4 else part.title() for part in others]
    code = "_".join([first, *rest])
    if not _CODE.fullmatch(code):
        raise ConfigError(f"{text!r} is no language; give its code, such as en or pt-BR")
    return code


def closest(asked: str, known: Collection[str]) -> str | None:
    """That of the known languages which is meant: the same, or the same but for its region."""
    code = language(asked)
    if code in known:
        return code
    alike = [one for one in known if one.partition("_")[0] == code.partition("_")[0]]
    # A region that nobody asked for, or another one, is better than nothing only where there is no choice.
    return alike[0] if len(alike) == 1 else None


def named_pair(files: Sequence[Path]) -> Direction | None:
    """The languages that names of files tell: corpus.en-de.tsv.xz, or train.en and train.de."""
    codes = [_ending(file) for file in files]
    if len(codes) == 1 and codes[0].count("-") == 1:
        codes = codes[0].split("-")
    if len(codes) != 2 or codes[0] == codes[1] or any(_CODES.get(code, "") != code for code in codes):
        return None
    return Direction(*codes)


def _ending(file: Path) -> str:
    name = file.name
    while (shorter := _ENDINGS.sub("", name)) != name:
        name = shorter
    return name.rpartition(".")[2]
