"""What is asked for wrongly is told before anything is computed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from qkv.errors import ConfigError
from qkv.progress import warn
from qkv.translate.options import Precision, Terms
from qkv.translate.wording import Wording

_DEVICE = re.compile("auto|(cpu|cuda)(:[0-9]+)?")


def require_texts(texts: Sequence[str], name: str) -> None:
    if isinstance(texts, str):
        raise TypeError(f"{name} is a list of texts, such as [text], not one text")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name} are texts, and {name}[{number}] is {text!r}")


def require_as_many(count: int, name: str, other_count: int, other: str) -> None:
    if count != other_count:
        raise ConfigError(f"there are {other_count:,} {other} for {count:,} {name}; give one for each")


def require_one_each(
    texts: Sequence[str],
    *,
    prefixes: Sequence[str] | None,
    terms: Sequence[Terms | None] | None,
    originals: Sequence[str] | None,
) -> None:
    if prefixes is not None:
        require_texts(prefixes, "prefixes")
        require_as_many(len(texts), "texts", len(prefixes), "prefixes")
    if terms is not None:
        require_as_many(len(texts), "texts", len(terms), "terms, or None,")
    if originals is not None:
        require_texts(originals, "originals")
        require_as_many(len(texts), "texts", len(originals), "originals")


def require_float32(precision: Precision, path: Path) -> None:
    """Refuses other numbers where a device does not search in them."""
    if precision != "float32":
        raise ConfigError(
            f"{precision} is for translating with a run on a GPU, and {path} is not one; on a CPU, a model that was "
            "exported in int8 is quick"
        )


def require_device(device: str, path: Path) -> None:
    """Refuses what is called like no device, as `devices` does where there is torch; tells who hoped for a GPU."""
    if not _DEVICE.fullmatch(device):
        raise ConfigError(f"no device is called {device!r}; try auto or cpu: {path} is an exported model")
    if device.startswith("cuda"):
        # No error: beside it there may be runs, which are on the GPU.
        warn(f"{path} is an exported model, which is for CPUs: {device} is of no use to it")


def require_alike(name: str, one: Wording, other_name: str, other: Wording) -> None:
    """Refuses models that cannot translate together, word for word."""
    if other.tokenizer.fingerprint != one.tokenizer.fingerprint:
        raise ConfigError(
            f"{other_name} has not the same vocabulary as {name}, so they cannot translate together; train it with "
            f"--tokenizer {name}/tokenizer.model"
        )
    if other.right_to_left != one.right_to_left:
        raise ConfigError(
            f"one of {name} and {other_name} writes from right to left, the other does not, so they cannot "
            "translate together; use one to rerank what the other finds"
        )
    if other.plain_marks != one.plain_marks:
        raise ConfigError(
            f"one of {name} and {other_name} has learned plain quotation marks and apostrophes alone "
            "(data.typography), the other has not, so they cannot translate together"
        )
