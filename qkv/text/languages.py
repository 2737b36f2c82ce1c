"""Languages: their codes however they are written, and from which into which a text is translated."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from qkv.errors import ConfigError

_TABLE = """
af afr = Afrikaans = Afrikaans; am amh = Amharic = አማርኛ; ar ara = Arabic = العربية; az aze = Azerbaijani = azərbaycan;
be bel = Belarusian = беларуская; bg bul = Bulgarian = български; bn ben = Bengali = বাংলা;
bs bos = Bosnian = bosanski; ca cat = Catalan = català; cs ces cze = Czech = čeština; cy cym wel = Welsh = Cymraeg;
da dan = Danish = dansk; de deu ger = German = Deutsch; el ell gre = Greek = Ελληνικά; en eng = English = English;
eo epo = Esperanto = Esperanto; es spa = Spanish = español; et est = Estonian = eesti; eu eus baq = Basque = euskara;
fa fas per = Persian = فارسی; fi fin = Finnish = suomi; fr fra fre = French = français; ga gle = Irish = Gaeilge;
gl glg = Galician = galego; gu guj = Gujarati = ગુજરાતી; he heb = Hebrew = עברית; hi hin = Hindi = हिन्दी;
hr hrv = Croatian = hrvatski; hu hun = Hungarian = magyar; hy hye arm = Armenian = հայերեն;
id ind = Indonesian = Indonesia; is isl ice = Icelandic = íslenska; it ita = Italian = italiano;
ja jpn = Japanese = 日本語; ka kat geo = Georgian = ქართული; kk kaz = Kazakh = қазақ тілі; km khm = Khmer = ខ្មែរ;
kn kan = Kannada = ಕನ್ನಡ; ko kor = Korean = 한국어; la lat = Latin = Latina; lb ltz = Luxembourgish = Lëtzebuergesch;
lt lit = Lithuanian = lietuvių; lv lav = Latvian = latviešu; mk mkd mac = Macedonian = македонски;
ml mal = Malayalam = മലയാളം; mn mon = Mongolian = монгол; mr mar = Marathi = मराठी; ms msa may = Malay = Melayu;
mt mlt = Maltese = Malti; my mya bur = Burmese = မြန်မာ; nb nob bokmål = Norwegian Bokmål = norsk bokmål;
ne nep = Nepali = नेपाली; nl nld dut = Dutch = Nederlands; nn nno nynorsk = Norwegian Nynorsk = norsk nynorsk;
no nor = Norwegian = norsk; pa pan = Punjabi = ਪੰਜਾਬੀ; pl pol = Polish = polski; pt por = Portuguese = português;
ro ron rum = Romanian = română; ru rus = Russian = русский; sk slk slo = Slovak = slovenčina;
sl slv = Slovenian = slovenščina; sq sqi alb = Albanian = shqip; sr srp = Serbian = српски;
sv swe = Swedish = svenska; sw swa = Swahili = Kiswahili; ta tam = Tamil = தமிழ்; te tel = Telugu = తెలుగు;
th tha = Thai = ไทย; tr tur = Turkish = Türkçe; uk ukr = Ukrainian = українська; ur urd = Urdu = اردو;
uz uzb = Uzbek = o‘zbek; vi vie = Vietnamese = Tiếng Việt; zh zho chi = Chinese = 中文
"""
"""For each language its codes, the one that is used first, what it is called in English, and what it calls itself."""


class _Row(NamedTuple):
    codes: list[str]
    name: str
    own_name: str


def _rows() -> Iterator[_Row]:
    for row in _TABLE.replace("\n", " ").split(";"):
        codes, name, own_name = (part.strip() for part in row.split("="))
        yield _Row(codes.split(), name, own_name)


NAMES = {row.codes[0]: row.name for row in _rows()}
"""The languages that are known by more than the code a user gave; any other code is as good a name."""
OWN_NAMES = {row.codes[0]: row.own_name for row in _rows()}
"""What they call themselves."""
RIGHT_TO_LEFT = {"ar", "fa", "he", "ur"}
"""Those of them that are written so."""
_CODES = {word.lower(): row.codes[0] for row in _rows() for word in (*row.codes, row.name)}

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
