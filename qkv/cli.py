"""The command line: what every command has in common. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import qkv
from qkv.commands.align import add_align
from qkv.commands.arguments import speaks
from qkv.commands.attention import add_attention
from qkv.commands.average import add_average
from qkv.commands.completion import add_completion
from qkv.commands.distill import add_distill
from qkv.commands.evaluate import add_evaluate
from qkv.commands.export import add_card, add_export
from qkv.commands.fetch import add_fetch
from qkv.commands.parcel import add_pack, add_unpack
from qkv.commands.plot import add_plot
from qkv.commands.prepare import add_prepare
from qkv.commands.recipes import add_recipes
from qkv.commands.reproduce import add_reproduce
from qkv.commands.score import add_score
from qkv.commands.serve import add_serve
from qkv.commands.train import add_train
from qkv.commands.translate import add_translate
from qkv.commands.watch import add_watch
from qkv.errors import ConfigError, FullDiskError, MissingExtraError, QkvError, Stopped, StorageError, is_out_of_memory
from qkv.progress import tell
from qkv.storage import is_full, require_utf8

_EXTRAS = {
    "torch": "train", "safetensors": "train", "sacrebleu": "train", "sacremoses": "train", "matplotlib": "plot",
    "starlette": "serve", "uvicorn": "serve", "httptools": "serve", "py3langid": "serve",
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; what goes wrong for the user is one line on standard error and an exit code."""
    # Threads that wait for one another spin for milliseconds by default: where another process wants a core too, that
    # slows training down many times. OpenMP reads this when torch is imported.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    if sys.stderr is None:
        # Closed by whoever started this: what would be told is told to nobody.
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    begun = time.monotonic()
    parser = build_parser()
    if not (sys.argv[1:] if argv is None else argv):
        parser.print_help(sys.stderr)
        return ConfigError.exit_code
    options = parser.parse_args(argv)
    options.begun = begun
    try:
        require_utf8(sys.argv[1:] if argv is None else argv)
        code: int = options.run(options) or 0
        # Here and not while Python ends: there, nobody would catch what goes wrong.
        print(end="", flush=True)
        return code
    except Stopped as stopped:
        # Not printed: the terminal may be gone, and that may be why.
        tell(f"qkv: {stopped}")
        return stopped.exit_code
    except QkvError as error:
        return _fail(str(error), error.exit_code)
    except BrokenPipeError:
        # Whoever read the output has gone; Python would complain once more while closing it.
        sys.stdout = None
        return 141
    except (ImportError, OSError) as error:
        wrong = _wrong_package(error)
        if wrong is not None:
            return _fail(str(wrong), wrong.exit_code)
        if isinstance(error, ImportError):
            raise
        sys.stdout = None
        kind = FullDiskError if is_full(error) else StorageError
        return _fail(f"{error.filename or 'the output'}: {error.strerror or error}", kind.exit_code)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return _fail("there is not enough memory; ask for less at once (batch, width, beam, vocabulary)", 4)
    except KeyboardInterrupt:
        return _fail("stopped; the same command goes on where it can", 130)


def _fail(message: str, code: int) -> int:
    if speaks():
        tell(f"qkv: error: {message}")
    return code


def _wrong_package(error: ImportError | OSError) -> QkvError | None:
    """What to install, where a package is missing or could not be imported."""
    if isinstance(error, ModuleNotFoundError) and (extra := _EXTRAS.get(_package(error.name))):
        return MissingExtraError("this command needs", str(error.name), extra)
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = _package(frame.f_globals.get("__name__"))
        # Python forgets what it could not import to the end.
        if name in _EXTRAS and name not in sys.modules:
            remedy = f"install it anew: pip install --force-reinstall {name}"
            return ConfigError(f"{name} is installed and cannot be imported: {error}; {remedy}")
    return None


def _package(module: str | None) -> str:
    return (module or "").partition(".")[0]


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="qkv",
        description='The Transformer of "Attention Is All You Need": from two text files to a measured translator.',
        epilog="examples:\n"
        "  qkv translate --from en --to de < in.en > out.de              # with the model that ships\n"
        "  qkv serve                                                     # a page on http://127.0.0.1:5000\n"
        "  qkv attention --to de --html attention.html                   # a look inside\n"
        "  qkv train train.en train.fr --recipe base --output run/       # a model of your own\n"
        "  qkv translate run/ < in.en > out.fr\n"
        "  qkv evaluate run/ --source test.en --reference test.fr\n\n"
        "qkv COMMAND --help has examples of every command.\n\n"
        "exit codes: 0 done, 2 wrong usage or setting, 3 wrong data or storage, 4 training failed, 5 disk full,\n"
        "75 time was up (--max-time), 129, 130 and 143 stopped by a signal: all is saved, the same command goes on",
    )
    parser.add_argument("--version", action="version", version=f"qkv {qkv.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    for add in (
        add_prepare,
        add_train,
        add_distill,
        add_translate,
        add_align,
        add_attention,
        add_watch,
        add_score,
        add_serve,
        add_evaluate,
        add_export,
        add_card,
        add_fetch,
        add_reproduce,
        add_plot,
        add_average,
        add_pack,
        add_unpack,
        add_recipes,
    ):
        add(commands)
    add_completion(commands, build_parser)
    return parser


def _suggestion(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


class _Parser(argparse.ArgumentParser):
    """A parser that prints its examples as they are written, and says in one line what is wrong."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuses what a command does not know: else the parser of all commands does, and names its own help."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            options = [one for one in unknown if one.startswith("--")]
            meant = _suggestion(options[0].partition("=")[0], self._option_string_actions) if options else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            self.error(f"there is no command {value!r}{_suggestion(value, action.choices)}")
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        sys.exit(_fail(f"{message}; see {self.prog} --help", ConfigError.exit_code))


if __name__ == "__main__":
    sys.exit(main())
