"""The table of corpora: where they live, which of their files are parallel, and how the paper prepared them.

A checksum is given where others have published one: those of TensorFlow Datasets (SHA-256), of sacreBLEU and of
torchtext (MD5). Where none is known, that of the first download is written down beside it and holds from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from qkv.config import Config
from qkv.errors import UnknownNameError

_SLACK = 1 << 20
"""Bytes that do no harm, by which a small file may have grown."""


class Download(NamedTuple):
    """A file of the web; its name is what it is called here, and on a mirror."""

    name: str
    url: str
    bytes: int
    """About, where nobody has published the size."""
    checksum: str | None = None
    """Such as `sha256:…`, as others have published it."""

    @property
    def most_bytes(self) -> int:
        """More than it can have, also where its size is not known exactly."""
        return 2 * self.bytes + _SLACK


class Side(NamedTuple):
    """One language of a text: a member of an archive, or all of a file that is no archive."""

    download: Download
    member: str | None = None


class Text(NamedTuple):
    """Two sides that translate one another, and the form they are written in (a row of `forms.FORMS`)."""

    name: str
    source: Side
    target: Side
    form: str = "lines"


@dataclass(frozen=True)
class Corpus:
    """What is trained on, what is looked at while training, and what is tested on."""

    title: str
    source: str
    target: str
    training: tuple[Text, ...]
    valid: tuple[Text, ...]
    """Where there is none, some training pairs are held out."""
    test: tuple[Text, ...]
    terms: str
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def downloads(self) -> dict[Download, list[tuple[Text, Side, str]]]:
        """Every file it needs once, with the sides of texts that are in it and their languages."""
        found: dict[Download, list[tuple[Text, Side, str]]] = {}
        for text in self.texts():
            for side, language in ((text.source, self.source), (text.target, self.target)):
                found.setdefault(side.download, []).append((text, side, language))
        return found

    def texts(self) -> Iterator[Text]:
        yield from (*self.training, *self.valid, *self.test)

    @property
    def bytes(self) -> int:
        """Of all downloads, about."""
        return sum(download.bytes for download in self.downloads())

    def config(self) -> Config:
        """The settings of text and data that it is prepared with."""
        languages = {"source_language": self.source, "target_language": self.target}
        return Config().with_changes(
            text={**self.settings.get("text", {}), **languages}, data=self.settings.get("data", {})
        )


_EUROPARL = Download(
    "training-parallel-europarl-v7.tgz",
    "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
    657_632_379,
    "sha256:0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
)
_COMMON_CRAWL = Download(
    "training-parallel-commoncrawl.tgz",
    "https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",
    918_311_367,
    "sha256:c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
)
_NEWS_COMMENTARY = Download(
    "training-parallel-nc-v9.tgz",
    "https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz",
    80_418_416,
    "sha256:cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
)
_UNITED_NATIONS = Download(
    "training-parallel-un.tgz", "https://www.statmt.org/wmt13/training-parallel-un.tgz", 2_365_000_000
)
_GIGA = Download("training-giga-fren.tar", "https://www.statmt.org/wmt10/training-giga-fren.tar", 2_595_102_720)
_DEV = Download("wmt14-dev.tgz", "https://www.statmt.org/wmt14/dev.tgz", 21_000_000)
_TEST = Download(
    "wmt14-test-full.tgz",
    "https://www.statmt.org/wmt14/test-full.tgz",
    4_000_000,
    "md5:a8cd784e006feb32ac6f3d9ec7eb389a",
)
_TALKS = Download("iwslt14-de-en.tgz", "https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz", 20_000_000)

_ALL_KEPT = {"keep_copies": True, "keep_duplicates": True, "max_ratio": 4000.0}
"""The paper speaks of no cleaning, and tensor2tensor did none: empty and endless lines are all that goes."""

_WMT_TERMS = (
    "free for research, with the WMT14 findings cited; Europarl knows of no restrictions, the rights in web, news "
    "and UN text stay with their owners"
)


def _members(name: str, download: Download, member: str, languages: tuple[str, str], form: str = "lines") -> Text:
    """A text whose sides are members of one archive that differ in their language alone."""
    source, target = (Side(download, member.format(language)) for language in languages)
    return Text(name, source, target, form)


def _wmt14(other: str, training: tuple[Text, ...], title: str, vocabulary: int) -> Corpus:
    """English and another language, with the tests of 2013 and 2014 that the paper reports."""
    stem = f"test-full/newstest2014-{other}en"
    return Corpus(
        title=title,
        source="en",
        target=other,
        training=training,
        valid=(_members("newstest2013", _DEV, "dev/newstest2013.{}", ("en", other)),),
        test=(
            Text("newstest2014", Side(_TEST, f"{stem}-src.en.sgm"), Side(_TEST, f"{stem}-ref.{other}.sgm"), "segments"),
        ),
        terms=_WMT_TERMS,
        settings={"text": {"vocabulary": vocabulary}, "data": _ALL_KEPT},
    )


def _captions(part: str, checksums: tuple[str, str]) -> Text:
    home = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
    source, target = (
        Side(Download(f"multi30k-{part}.{language}.gz", f"{home}/{part}.{language}.gz", size, f"md5:{checksum}"))
        for language, size, checksum in zip(("en", "de"), _CAPTION_BYTES[part], checksums, strict=True)
    )
    return Text(part, source, target)


_CAPTION_BYTES = {"train": (550_000, 640_000), "val": (21_000, 25_000), "test_2016_flickr": (21_000, 24_000)}
_GERMAN, _FRENCH = ("en", "de"), ("en", "fr")
_TALK_TESTS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")

CORPORA: dict[str, Corpus] = {
    "wmt14-en-de": _wmt14(
        "de",
        (
            _members("europarl-v7", _EUROPARL, "training/europarl-v7.de-en.{}", _GERMAN),
            _members("commoncrawl", _COMMON_CRAWL, "commoncrawl.de-en.{}", _GERMAN),
            _members("news-commentary-v9", _NEWS_COMMENTARY, "training/news-commentary-v9.de-en.{}", _GERMAN),
        ),
        "the paper's English-German: 4.5 million pairs, 37,000 joint subwords",
        37_000,
    ),
    "wmt14-en-fr": _wmt14(
        "fr",
        (
            _members("europarl-v7", _EUROPARL, "training/europarl-v7.fr-en.{}", _FRENCH),
            _members("commoncrawl", _COMMON_CRAWL, "commoncrawl.fr-en.{}", _FRENCH),
            _members("news-commentary-v9", _NEWS_COMMENTARY, "training/news-commentary-v9.fr-en.{}", _FRENCH),
            _members("undoc-2000", _UNITED_NATIONS, "un/undoc.2000.fr-en.{}", _FRENCH),
            _members("giga-fren", _GIGA, "giga-fren.release2.fixed.{}.gz", _FRENCH),
        ),
        "the paper's English-French: 36 to 41 million pairs, 32,000 subwords",
        32_000,
    ),
    "iwslt14-de-en": Corpus(
        title="talks, German-English: 174,000 pairs, the usual small benchmark",
        source="de",
        target="en",
        training=(_members("talks", _TALKS, "de-en/train.tags.de-en.{}", ("de", "en"), "talks"),),
        valid=(),
        test=tuple(
            _members(name, _TALKS, f"de-en/IWSLT14.{name}.de-en.{{}}.xml", ("de", "en"), "segments")
            for name in _TALK_TESTS
        ),
        terms="TED talks through WIT3: CC BY-NC-ND, not for commerce",
        # As many as others hold out, who take every 23rd pair.
        settings={"text": {"vocabulary": 10_000}, "data": {"held_out": 7000}},
    ),
    "multi30k-en-de": Corpus(
        title="captions of pictures, English-German: 29,000 pairs",
        source="en",
        target="de",
        training=(_captions("train", ("0065d13af80720a55ca8153d126e6627", "81ff90b99829c0cd4b1b587d394afd39")),),
        valid=(_captions("val", ("2b69aa9253948ac9f67e94917272dd40", "6e0e229eb049e3fc99a1ef02fb2d5f91")),),
        test=(_captions("test_2016_flickr", ("ff2c0fcb4893a13bd73414306bc250ae", "efd67d314d98489b716b145475101932")),),
        terms="Flickr30k's captions and their translations: research, not for commerce",
        settings={"text": {"vocabulary": 6000}, "data": {"row_width": 64}},
    ),
}


def corpus(name: str) -> Corpus:
    """The corpus of this name."""
    if name not in CORPORA:
        raise UnknownNameError("corpus", name, CORPORA, listed_by="qkv fetch")
    return CORPORA[name]
