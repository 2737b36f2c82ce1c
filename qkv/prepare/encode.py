"""The last steps: the vocabulary is learned from an even sample, and the workers turn all pairs into ids."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qkv.config import Config, TextConfig
from qkv.data.corpus import CorpusWriter, Sentences
from qkv.errors import ConfigError
from qkv.prepare.clean import FATES, CleanCorpus, CleanText
from qkv.prepare.directory import text_files
from qkv.prepare.report import LineLog
from qkv.prepare.workers import Workers, run_apart
from qkv.progress import Progress, clear, write_line
from qkv.text.files import Fault
from qkv.text.subwords import Tokenizer, tagged_languages

TOO_MANY_TOKENS = "too many tokens"

# Learning from less than this takes no longer than starting a process for it.
_QUICK_BYTES = 1 << 20


def learn_vocabulary(corpus: CleanCorpus, config: TextConfig, sample: Path, output: Path) -> int:
    """Learns the vocabulary from training pairs drawn evenly from the whole corpus; gives the number of lines."""
    lines = _write_sample(corpus, max(1, config.sample_lines // 2), sample)
    if sample.stat().st_size < _QUICK_BYTES:
        Tokenizer.learn([sample], config, output)
    else:
        # It cannot be interrupted, and takes the memory it needs with it when it ends.
        with _announced(f"learning {config.vocabulary:,} subwords from {lines:,} lines"):
            run_apart(_learn, sample, config, output)
    return lines


def fitting_tokenizer(path: Path, config: TextConfig) -> Tokenizer:
    """A vocabulary that was learned before, if it is what the settings describe."""
    tokenizer = Tokenizer.load(path)
    if tokenizer.size != config.vocabulary:
        raise ConfigError(
            f"the tokenizer {path} has {tokenizer.size} subwords and text.vocabulary is {config.vocabulary}; "
            f"--set text.vocabulary={tokenizer.size}"
        )
    for language in tagged_languages(config):
        tokenizer.tag(language)
    for domain in (config.domains or "").split(","):
        if domain:
            tokenizer.domain(domain)
    return tokenizer


class Encoder:
    """Turns clean pairs into ids and writes them to the corpora `train` and `valid`."""

    def __init__(
        self, directory: Path, tokenizer: Path, config: Config, workers: Workers, log: LineLog, *, tags: int = 0
    ) -> None:
        """Room is left for so many tags on either side."""
        self._model = _Model(str(tokenizer), hashlib.sha256(tokenizer.read_bytes()).hexdigest())
        self._config = config
        self._workers = workers
        self._log = log
        # End takes a place of the source's row; of the target's, begin does on the way in and end on the way out.
        self._room = config.data.row_width - 1 - tags
        self._vocabulary = _tokenizer(self._model).size
        self._directory = directory
        self._files = contextlib.ExitStack()

    def __enter__(self) -> Encoder:
        with contextlib.ExitStack() as opened:
            self._writers = {
                name: opened.enter_context(CorpusWriter(self._directory, name, vocabulary=self._vocabulary))
                for name in ("train", "valid")
            }
            self._valid_texts = [opened.enter_context(path.open("wb")) for path in text_files(self._directory, "valid")]
            self._files = opened.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._files.__exit__(*exception)  # type: ignore[arg-type]

    def encode(self, corpus: CleanCorpus, destinations: dict[str, str]) -> None:
        """Encodes the pairs of each fate to the corpus that `destinations` names for it."""
        for copy in range(self._config.text.segmentations):
            wanted = {fate: name for fate, name in destinations.items() if copy == 0 or name == "train"}
            count = sum(corpus.count(fate) for fate in wanted)
            with Progress("encoding", total=count, unit="pairs") as progress:
                for encoded in self._workers.map(_encode, self._tasks(corpus, wanted, copy)):
                    self._write(corpus, encoded)
                    progress.advance(len(encoded.lines) + len(encoded.unfit))

    def result(self, name: str) -> dict[str, int]:
        """How much was written to one corpus."""
        return self._writers[name].counts

    def _tasks(self, corpus: CleanCorpus, destinations: dict[str, str], copy: int) -> Iterator[_Task]:
        for some in corpus.texts():
            for fate, name in destinations.items():
                chosen = some.where(some.fates == FATES.index(fate))
                if len(chosen.lines):
                    yield _Task(name, chosen, copy, self._model, self._config, self._room)

    def _write(self, corpus: CleanCorpus, encoded: _Encoded) -> None:
        self._writers[encoded.destination].extend(encoded.source, encoded.target, encoded.lines)
        for line, fault in encoded.unfit:
            self._log.drop(corpus.tally, line, fault)
        if encoded.destination == "valid":
            for file, text in zip(self._valid_texts, encoded.texts, strict=True):
                file.write(text)


class _Model(NamedTuple):
    path: str
    digest: str


class _Task(NamedTuple):
    destination: str
    some: CleanText
    copy: int
    model: _Model
    config: Config
    room: int
    """Tokens that a row has places for, on each side."""


class _Encoded(NamedTuple):
    destination: str
    source: Sentences
    target: Sentences
    lines: npt.NDArray[np.int64]
    unfit: list[tuple[int, Fault]]
    texts: tuple[bytes, bytes]


@functools.lru_cache(maxsize=1)
def _tokenizer(model: _Model) -> Tokenizer:
    return Tokenizer.load(Path(model.path))


@contextlib.contextmanager
def _announced(what: str) -> Iterator[None]:
    """Says what is being done where nothing tells how far it is."""
    live = sys.stderr.isatty()
    write_line(sys.stderr, what, live=live)
    try:
        yield
    finally:
        if live:
            clear(sys.stderr)


def _learn(sample: Path, config: TextConfig, output: Path) -> None:
    Tokenizer.learn([sample], config, output)


def _encode(task: _Task) -> _Encoded:
    tokenizer = _tokenizer(task.model)
    pairs = [line.split("\t") for line in task.some.text.decode().removesuffix("\n").split("\n")]
    sides = [tokenizer.encode_all([pair[side] for pair in pairs]) for side in (0, 1)]
    room = task.room
    fits = [max(len(source), len(target)) <= room for source, target in zip(*sides, strict=True)]
    unfit = [
        (int(line), Fault(TOO_MANY_TOKENS, "source" if len(source) > room else "target"))
        for line, source, fit in zip(task.some.lines, sides[0], fits, strict=True)
        if not fit
    ]
    if task.copy:
        sides = [_sampled(tokenizer, task, side, [pair[side] for pair in pairs], sides[side]) for side in (0, 1)]
    if task.config.text.right_to_left:
        sides[1] = [ids[::-1] for ids in sides[1]]
    source, target = ([ids for ids, fit in zip(side, fits, strict=True) if fit] for side in sides)
    kept = [pair for pair, fit in zip(pairs, fits, strict=True) if fit]
    texts = ["".join(pair[side] + "\n" for pair in kept).encode() for side in (0, 1) if task.destination == "valid"]
    return _Encoded(
        task.destination,
        Sentences.of(source),
        Sentences.of(target),
        task.some.lines[np.array(fits, bool)],
        # Another cut of a pair that was left out is no second loss.
        [] if task.copy else unfit,
        (texts[0], texts[1]) if texts else (b"", b""),
    )


def _sampled(tokenizer: Tokenizer, task: _Task, side: int, texts: list[str], best: list[list[int]]) -> list[list[int]]:
    """Other cuts of the texts, each with a seed of its own; the best one where another would not fit a row."""
    result = []
    for text, line, plain in zip(texts, task.some.lines, best, strict=True):
        place = f"{task.config.training.seed} {task.copy} {line} {side}"
        seed = int.from_bytes(hashlib.blake2b(place.encode(), digest_size=8).digest(), "little")
        other = tokenizer.sample(text, task.config.text.sampling_alpha, seed)
        result.append(other if len(other) <= task.room else plain)
    return result


def _write_sample(corpus: CleanCorpus, wanted: int, sample: Path) -> int:
    """Writes `wanted` training pairs, evenly spread over the corpus, a line for each side; gives the lines written."""
    available = corpus.count("training")
    wanted = min(wanted, available)
    seen = 0
    with sample.open("wb") as file:
        for some in corpus.texts():
            training = some.where(some.fates == FATES.index("training"))
            number = seen + np.arange(len(training.lines), dtype=np.int64)
            taken = (number + 1) * wanted // available > number * wanted // available
            file.write(training.where(taken).text.replace(b"\t", b"\n"))
            seen += len(number)
    return 2 * wanted
