"""Subwords: text to ids and back, over SentencePiece (section 5.1 learns one vocabulary for both languages).

The vocabulary begins with padding, begin, end and unknown, then the tags `<to:xx>` and `<domain:xx>`, the reserved
symbols and the 256 bytes; the rest is learned. Tags and reserved symbols are control symbols: no text, whatever it
says, encodes to them.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import sentencepiece

from qkv.config import TextConfig
from qkv.errors import ConfigError, StorageError, TextError
from qkv.text.files import read_lines
from qkv.text.languages import parse_directions
from qkv.text.sampling import META, Sampler
from qkv.text.words import Span

# Beyond this share of the corpus's characters, a rare one is cheaper as bytes than as a row of the vocabulary.
_CHARACTER_COVERAGE = 0.9999
# A fixed number: unigram's sums, and so its pieces, depend on how many threads they are split among.
_THREADS = 16
_LARGEST_FILE = 1 << 26
_LANGUAGE = re.compile(r"[A-Za-z0-9_-]+")
# A plane for private use: more characters than a text has, and none that a vocabulary is likely to have learned.
_STAND_INS = range(0xF0000, 0xFFFFE)


class Tokenizer:
    """One vocabulary of subwords: `Tokenizer.load(path).encode("a cat")`."""

    padding = 0
    begin = 1
    end = 2
    unknown = 3

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._processor = _processor(model)
        self._controls = frozenset(index for index in range(self.size) if self._processor.is_control(index))
        self._bytes = [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]
        self._values = {token: byte for byte, token in enumerate(self._bytes)}
        self._sampler: Sampler | None = None
        self._pieces: dict[int, str] = {}

    @classmethod
    def learn(cls, files: Sequence[Path], config: TextConfig, output: Path) -> Tokenizer:
        """Learns a vocabulary from the lines of the files, which are already normalised, and writes it to `output`."""
        tokenizer = cls(_learn((line for file in files for line in read_lines(file)), config))
        try:
            output.write_bytes(tokenizer.model)
        except OSError as error:
            raise StorageError(f"cannot write {output}: {error.strerror}") from error
        return tokenizer

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """The tokenizer in a file that `learn` wrote."""
        try:
            if path.stat().st_size > _LARGEST_FILE:
                raise TextError(f"{path} is no tokenizer: it is larger than {_LARGEST_FILE >> 20} MiB")
            model = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ConfigError(f"no such file: {path}") from error
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from error
        try:
            return cls(model)
        except TextError as error:
            raise TextError(f"{path}: {error}") from error

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.model).hexdigest()

    @property
    def size(self) -> int:
        return int(self._processor.get_piece_size())

    @property
    def marks(self) -> tuple[int, ...]:
        """Ids that are no part of any text, but for the end: no translation has them."""
        return tuple(sorted((self._controls | {self.padding, self.begin, self.unknown}) - {self.end}))

    def encode(self, text: str) -> list[int]:
        """The ids of a normalised text, without begin or end."""
        if META in text:
            return self._encode_meta(text)
        return list(self._processor.encode(text, num_threads=1))

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many normalised texts."""
        if any(META in text for text in texts):
            return [self.encode(text) for text in texts]
        return list(self._processor.encode(list(texts), num_threads=1))

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; control symbols among them say nothing."""
        return str(self._processor.decode([int(token) for token in ids if token not in self._controls]))

    def tag(self, language: str) -> int:
        """The control symbol that asks for a language."""
        index = int(self._processor.piece_to_id(f"<to:{language}>"))
        if index not in self._controls:
            known = ", ".join(self.languages) or "none"
            raise ConfigError(f"the vocabulary has no tag for the language {language!r}; it has: {known}")
        return index

    def domain(self, name: str) -> int:
        """The control symbol that says what kind of text it is."""
        index = int(self._processor.piece_to_id(f"<domain:{name}>"))
        if index not in self._controls:
            known = ", ".join(filter(None, map(self.domain_of, sorted(self._controls)))) or "none"
            raise ConfigError(f"the vocabulary has no tag for the domain {name!r}; it has: {known}")
        return index

    def domain_of(self, token: int) -> str | None:
        """The domain whose symbol this is, if it is one's."""
        piece = self.piece(token)
        return piece[8:-1] if token in self._controls and piece.startswith("<domain:") else None

    @property
    def languages(self) -> list[str]:
        """The languages that have a tag."""
        pieces = [self._processor.id_to_piece(index) for index in sorted(self._controls)]
        return [piece[4:-1] for piece in pieces if piece.startswith("<to:")]

    def sample(self, text: str, alpha: float, seed: int) -> list[int]:
        """One way of many to cut a normalised text, drawn with its likelihood to the power `alpha`; for unigram."""
        if self._sampler is None:
            self._sampler = Sampler(self._learned_pieces(), self._bytes)
        return self._sampler.sample(text, alpha, seed)

    def piece(self, token: int) -> str:
        """How an id looks: its piece of text, `▁` for a space, or the name of its symbol."""
        if token not in self._pieces:
            self._pieces[token] = str(self._processor.id_to_piece(token))
        return self._pieces[token]

    def is_control(self, token: int) -> bool:
        """Whether an id is a symbol that says nothing in a text."""
        return token in self._controls

    def byte(self, token: int) -> int | None:
        """The byte that an id stands for, if it stands for one."""
        return self._values.get(token)

    def surface(self, token: int) -> bytes:
        """What an id adds to a text, in UTF-8, a space where a word begins; a symbol that is no text adds nothing."""
        if (value := self.byte(token)) is not None:
            return bytes([value])
        if self.is_control(token) or self._processor.is_unknown(token):
            return b""
        return self.piece(token).replace(META, " ").encode()

    def spans(self, ids: Sequence[int]) -> list[Span]:
        """Where in their text, as `decode` gives it, the characters of each id are."""
        text, place, found = self.decode(ids), 0, []
        for number, token in enumerate(ids):
            # What stands in bytes, and what is written otherwise than its piece says, is decoded with all before it.
            plain = not (self._processor.is_byte(token) or self.is_control(token))
            written = self.piece(token).replace(META, " ") if plain else ""
            after = place + len(written) - (place == 0 and written.startswith(" "))
            if not plain or text[place:after] != written[len(written) - (after - place) :]:
                # Bytes that are no character yet show as something else than what the whole text has there.
                begun, after = self.decode(ids[: number + 1]), place
                while after < min(len(begun), len(text)) and begun[after] == text[after]:
                    after += 1
            found.append(Span(place, after))
            place = after
        return found

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[bytes]]:
        return Tokenizer, (self.model,)

    def _learned_pieces(self) -> dict[str, tuple[int, float]]:
        processor = self._processor
        return {
            processor.id_to_piece(index): (index, processor.get_score(index))
            for index in range(self.size)
            if not (self.is_control(index) or processor.is_byte(index) or processor.is_unknown(index))
        }

    def _as_bytes(self, text: str) -> list[int]:
        return [self._bytes[byte] for byte in text.encode()]

    def _encode_meta(self, text: str) -> list[int]:
        """SentencePiece takes `▁` for a space: a stand-in goes through it, and its bytes are changed afterwards."""
        taken = set(text)
        free = (character for character in map(chr, _STAND_INS) if character not in taken)
        stand_in = next(one for one in free if self._processor.piece_to_id(one) == self.unknown)
        ids = self._processor.encode(text.replace(META, stand_in), num_threads=1)
        before, after = self._as_bytes(stand_in), self._as_bytes(META)
        result: list[int] = []
        position = 0
        while position < len(ids):
            found = ids[position : position + len(before)] == before
            result.extend(after if found else ids[position : position + 1])
            position += len(before) if found else 1
        return result


def _processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    if not model:
        raise TextError("the tokenizer is empty")
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        specials = [processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id()]
        byte_pieces = [processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]
        sound = all(processor.is_byte(index) for index in byte_pieces)
    except (RuntimeError, ValueError, IndexError) as error:
        raise TextError("not a SentencePiece model, or a damaged one") from error
    if specials != [Tokenizer.padding, Tokenizer.begin, Tokenizer.end, Tokenizer.unknown] or not sound:
        raise TextError("a SentencePiece model, but not one of qkv's: padding 0, begin 1, end 2, unknown 3, all bytes")
    return processor


def _learn(lines: Iterator[str], config: TextConfig) -> bytes:
    first = next((line for line in lines if line), None)
    if first is None:
        raise TextError("there is no text to learn a vocabulary from")
    controls = require_learnable(config)
    written = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=itertools.chain([first], lines),
            model_writer=written,
            model_type=config.algorithm,
            vocab_size=config.vocabulary,
            pad_id=Tokenizer.padding,
            bos_id=Tokenizer.begin,
            eos_id=Tokenizer.end,
            unk_id=Tokenizer.unknown,
            control_symbols=controls,
            byte_fallback=True,
            character_coverage=_CHARACTER_COVERAGE,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            max_sentence_length=1 << 30,
            num_threads=_THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _explained(str(error), config) from error
    return written.getvalue()


def tagged_languages(config: TextConfig) -> list[str]:
    """The languages that a vocabulary has tags for."""
    given = [config.source_language, config.target_language]
    given += [language for direction in parse_directions(config.directions) for language in direction]
    return list(dict.fromkeys(language for language in given if language is not None))


def target_tags(config: TextConfig, tokenizer: Tokenizer) -> list[int]:
    """What the sources of a model begin with: a tag for each language it writes, where there are several directions."""
    targets = dict.fromkeys(direction.target for direction in parse_directions(config.directions))
    return [tokenizer.tag(target) for target in targets]


def require_learnable(config: TextConfig) -> list[str]:
    """The control symbols of a vocabulary; refuses a tag that cannot be one, and a size that no corpus would fit."""
    controls = _control_symbols(config)
    if config.vocabulary <= (fixed := 4 + len(controls) + 256):
        raise _too_small(config, fixed)
    return controls


def _control_symbols(config: TextConfig) -> list[str]:
    languages = tagged_languages(config)
    for language in languages:
        if not _LANGUAGE.fullmatch(language):
            raise ConfigError(f"{language!r} cannot be a language's tag; use letters, digits, - and _")
    tags = [f"<to:{language}>" for language in languages]
    tags += [f"<domain:{domain}>" for domain in (config.domains or "").split(",") if domain]
    return tags + [f"<reserved:{number}>" for number in range(config.reserved)]


def _explained(message: str, config: TextConfig) -> TextError:
    """What SentencePiece said about the size of the vocabulary, as something that can be set."""
    if largest := re.search(r"too high.*<= (\d+)", message):
        return TextError(
            f"text.vocabulary {config.vocabulary} is too large for this corpus, which has no more than "
            f"{largest[1]} different subwords; --set text.vocabulary={largest[1]}"
        )
    if smallest := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return _too_small(config, int(smallest[1]))
    return TextError(f"no vocabulary could be learned from this corpus: {message}")


def _too_small(config: TextConfig, needed: int) -> TextError:
    return TextError(
        f"text.vocabulary {config.vocabulary} is too small: the special symbols, the 256 bytes and the characters "
        f"of this corpus alone are {needed} or more; --set text.vocabulary={2 * needed}"
    )
