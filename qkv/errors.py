"""Errors that speak to the person who can act; each kind has the exit code of the command line."""


class QkvError(Exception):
    """A mistake a user can mend: the message says what is wrong and what would be right."""

    exit_code = 2


class ConfigError(QkvError):
    """A setting, recipe, option or path that was typed is not one that exists."""


class TextError(QkvError):
    """The content of a corpus, a tokenizer or a prepared data directory is wrong."""

    exit_code = 3


class CheckpointError(QkvError):
    """A run directory or something in it is missing, damaged or belongs to another run."""

    exit_code = 3


class StorageError(QkvError):
    """The file system refuses: full, read-only or not ours."""

    exit_code = 3


class TrainingError(QkvError):
    """Training went wrong in a way that going on would not mend."""

    exit_code = 4


class Stopped(QkvError):  # noqa: N818 - nothing is wrong: somebody asked for it
    """Work ended early because a signal asked for it, with everything saved."""

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.exit_code = code


class MissingExtraError(QkvError):
    """A command needs packages of an extra that is not installed."""
