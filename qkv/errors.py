"""Errors that speak to the person who can act; each kind has the exit code of the command line."""

import difflib
import re
from collections.abc import Iterable

_OUT_OF_MEMORY = re.compile(
    r"out of memory|(?:can't|cannot|failed to) allocate memory|not enough memory|bad_alloc|_STATUS_ALLOC_FAILED",
    re.IGNORECASE,
)


class QkvError(Exception):
    """A mistake a user can mend: the message says what is wrong and what would be right."""

    exit_code = 2


class ConfigError(QkvError):
    """A setting, recipe, option or path that was typed is not one that exists."""


class UnknownNameError(ConfigError):
    """A name that nothing has; most are another one misspelt."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, listed_by: str) -> None:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}?" if close else f"`{listed_by}` lists them"
        super().__init__(f"no {kind} is called {name!r}; {hint}")


class TextError(QkvError):
    """The content of a corpus, a tokenizer or a prepared data directory is wrong."""

    exit_code = 3


class CheckpointError(QkvError):
    """A run directory or something in it is missing, damaged or belongs to another run."""

    exit_code = 3


class StorageError(QkvError):
    """The file system refuses: full, read-only or not ours; `what` is the message without what to do about it."""

    exit_code = 3

    def __init__(self, what: str, remedy: str | None = None) -> None:
        super().__init__(what if remedy is None else f"{what}; {remedy}")
        self.what = what


class FullDiskError(StorageError):
    """There is no room; nothing else is wrong, so a queue can wait for room and give the same command again."""

    exit_code = 5


class DownloadError(QkvError):
    """A file of the web cannot be had, or is not what it should be."""

    exit_code = 3


class TrainingError(QkvError):
    """Training went wrong in a way that going on would not mend."""

    exit_code = 4


class NoTimeError(TrainingError):
    """The time that was given is not enough to get on at all, so that the same command would not get on either."""


class NotFiniteError(QkvError):
    """A model's scores are no numbers: its weights have blown up."""

    exit_code = 4

    def __init__(self) -> None:
        super().__init__(
            "the model's scores are not finite, so its weights are of no use; train it again with a smaller "
            "training.learning_rate"
        )


class RuleError(QkvError):
    """What a translation was asked to keep to cannot be kept to, all at once."""

    def __init__(self, sentence: int, called: str | None = None) -> None:
        super().__init__(
            f"{called or f'text {sentence + 1:,}'}: no translation has all that was asked for and nothing that was "
            "forbidden; ask for less, or look for terms that contradict one another"
        )
        self.sentence = sentence
        """Which of the sentences it is, counted from 0."""


class Stopped(QkvError):  # noqa: N818 - nothing is wrong: somebody asked for it
    """Work ended early because a signal asked for it, with everything saved."""

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.exit_code = code


class MissingExtraError(QkvError):
    """A command needs packages of an extra that is not installed."""

    def __init__(self, who: str, package: str, extra: str) -> None:
        # Not by its name alone: no index of packages is known to have it, and somebody else's may come.
        super().__init__(f"{who} {package}: in a clone of qkv, pip install '.[{extra}]', or make setup")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: libraries say so in errors of all kinds, and in other words for each kind of memory."""
    return isinstance(error, MemoryError) or _OUT_OF_MEMORY.search(str(error)) is not None
