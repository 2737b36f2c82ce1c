"""What several commands take."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from qkv.errors import ConfigError

Commands = argparse._SubParsersAction

_TIME_IS_UP = 75
"""EX_TEMPFAIL of sysexits.h: nothing is wrong, and the same again will do."""
_TYPED = {"mirror": "from"}
"""Options whose values have a name of their own, for Python has another use for the word that is typed."""
_COMING_AND_GOING = 3.0
"""Seconds that a process needs beside its work, at most; a fifth of a time that is short."""


def line_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", type=Path, metavar="FILE", help="a text file, .gz or .xz too (default: standard input)"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")


def search_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--beam", type=int, metavar="N", help="width of the search; 1 is greedy (default: the run's)")
    scoring_arguments(parser)


def precision_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--precision",
        choices=["float32", "bfloat16"],
        default="float32",
        help="of a beam search on a GPU; bfloat16 is several times as quick (default: float32)",
    )


def scoring_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--length-penalty", type=float, metavar="ALPHA", help="default: the run's, as trained 0.6")
    device_argument(parser)


def device_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:1 (default: auto)")


def changes_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="changes",
        metavar="NAME=VALUE",
        help="change a setting, such as training.steps=500; `qkv recipes base` lists them",
    )


def changed_settings(options: argparse.Namespace) -> dict[str, str]:
    """What `--set` was given, by the names of settings."""
    changes = {}
    for change in options.changes:
        name, equals, value = change.partition("=")
        if not equals:
            raise ConfigError(f"--set takes NAME=VALUE, such as training.steps=500, not {change!r}")
        changes[name.strip()] = value.strip()
    return changes


def time_argument(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--max-time",
        type=seconds,
        metavar="TIME",
        help="save and stop before so much time has passed, such as 90s, 25m or 2h; the same command goes on "
        f"(exit code {_TIME_IS_UP}; under torchrun 0)",
    )


def deadline_of(options: argparse.Namespace) -> float | None:
    """When `time.monotonic()` has to find a command done, where that was said."""
    if options.max_time is None:
        return None
    # A process takes a while to come and to go, beside its work.
    return float(options.begun + options.max_time - min(_COMING_AND_GOING, options.max_time / 5))


def ended(*, finished: bool) -> int:
    """The exit code of a command that may have ended because its time was up: then a queue is to give it again."""
    # torchrun would take that for a failure and start it again at once; its own code is 0 or 1 whatever theirs are.
    return 0 if finished or "TORCHELASTIC_RUN_ID" in os.environ else _TIME_IS_UP


def seconds(text: str) -> float:
    """How long `90s`, `25m` or `2h` is."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?[smh]", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90s, 25m or 2h")
    return float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


def speaks() -> bool:
    """Of several processes that train together, all find the same mistake and make the same plan: one says so."""
    return os.environ.get("RANK", "0") == "0"


def require_together(
    options: argparse.Namespace,
    *,
    of_use_only_with: Mapping[tuple[str, ...], Sequence[str]],
    not_with: Mapping[str, Sequence[str]],
) -> None:
    """Refuses options that have no effect, and such as contradict one another."""
    for what, hows in of_use_only_with.items():
        given = given_of(hows, options)
        if given and not given_of(what, options):
            needed = " or ".join(map(_option, what))
            raise ConfigError(f"{', '.join(given)}: of use only with {needed}; add {needed}")
    for one, others in not_with.items():
        contradicting = given_of(others, options)
        if given_of([one], options) and contradicting:
            raise ConfigError(f"{_option(one)} does not go with {' and '.join(contradicting)}; leave one out")


def given_of(names: Iterable[str], options: argparse.Namespace) -> list[str]:
    """Those of these options that were given, as they are typed."""
    values = ((name, getattr(options, name)) for name in names)
    return [_option(name) for name, value in values if value is not None and value is not False]


def _option(name: str) -> str:
    return f"--{_TYPED.get(name, name).replace('_', '-')}"
