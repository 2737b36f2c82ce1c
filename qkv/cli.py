"""The command line: thin sub-commands, each a call of one function. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import qkv
from qkv.commands.align import add_align
from qkv.commands.arguments import (
    changed_settings,
    changes_argument,
    deadline_of,
    ended,
    speaks,
    time_argument,
)
from qkv.commands.attention import add_attention
from qkv.commands.evaluate import add_evaluate
from qkv.commands.export import add_card, add_export
from qkv.commands.fetch import add_fetch
from qkv.commands.parcel import add_pack, add_unpack
from qkv.commands.reproduce import add_reproduce
from qkv.commands.score import add_score
from qkv.commands.serve import add_serve
from qkv.commands.translate import add_translate
from qkv.commands.watch import add_watch
from qkv.config import Config, override_all, settings
from qkv.errors import ConfigError, MissingExtraError, QkvError, Stopped, StorageError, is_out_of_memory
from qkv.fetch.corpora import CORPORA
from qkv.progress import tell
from qkv.recipes import RECIPES, recipe
from qkv.reproduce.experiments import EXPERIMENTS
from qkv.storage import require_run, require_utf8

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
    options = build_parser().parse_args(argv)
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
        return _fail(f"{error.filename or 'the output'}: {error.strerror or error}", StorageError.exit_code)
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
        _add_prepare,
        _add_train,
        _add_distill,
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
        _add_plot,
        _add_average,
        add_pack,
        add_unpack,
        _add_recipes,
        _add_completion,
    ):
        add(commands)
    return parser


class _Parser(argparse.ArgumentParser):
    """A parser that prints its examples as they are written, and says in one line what is wrong."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        sys.exit(_fail(f"{message}; see {self.prog} --help", ConfigError.exit_code))


_Commands = argparse._SubParsersAction


def _add_prepare(commands: _Commands[_Parser]) -> None:
    parser = commands.add_parser(
        "prepare",
        help="clean parallel text, learn its subwords and write ids",
        description="Cleans parallel text, learns one vocabulary for both languages and writes memory-mapped ids.",
        epilog="examples:\n"
        "  qkv prepare train.en train.fr --output data/\n"
        "  qkv prepare europarl.tsv.xz tatoeba.tsv.gz --valid dev.tsv --test test.tsv --output data/\n"
        "  qkv prepare europarl.en-de.tsv.xz --directions en-de,de-en --output data/\n"
        "  qkv prepare mix.toml --output data/                   what docs/languages.md tells of\n"
        "  qkv prepare train.en train.fr --set text.vocabulary=8000 --set text.algorithm=unigram --output data/",
    )
    _corpus_arguments(parser, required=True)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="where the prepared data goes")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: one a core)")
    parser.set_defaults(run=_prepare)


def _prepare(options: argparse.Namespace) -> None:
    from qkv.prepare import prepare

    prepared = prepare(
        options.files,
        options.output,
        _config(options),
        valid=options.valid,
        test=options.test,
        tokenizer=options.tokenizer,
        workers=options.workers,
    )
    tell(prepared.summary())


def _add_train(commands: _Commands[_Parser]) -> None:
    parser = commands.add_parser(
        "train",
        help="train a translator from parallel text",
        description="Prepares parallel text and trains a model on it. A run already begun goes on when the same "
        "command is given again.",
        epilog="examples:\n"
        "  qkv train train.en train.fr --recipe base --output run/\n"
        "  qkv train pairs.tsv.xz --recipe small --set training.steps=500 --output run/\n"
        "  qkv train --data data/ --recipe big --output run/\n"
        "  qkv train train.en train.fr --recipe base --output run/ --max-time 25m\n"
        "  qkv train mine.en mine.fr --adapt run/ --output adapted/       learn on, from other text\n"
        "  qkv train mine.en mine.fr --adapt models/default --output adapted/\n"
        "  qkv train train.en train.fr --recipe base --dry-run",
    )
    _corpus_arguments(parser, required=False)
    parser.add_argument("--data", type=Path, metavar="DIR", help="data that `qkv prepare` wrote, instead of files")
    parser.add_argument("--output", type=Path, metavar="RUN", help="the run directory")
    parser.add_argument(
        "--adapt",
        type=Path,
        metavar="RUN",
        help="begin with the weights, vocabulary and settings of this run, for a tenth of its steps at a tenth of its "
        "learning rate; or with those of an exported model, for about three times through the text; unless --set says "
        "otherwise",
    )
    time_argument(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the settings and what the run needs, and stop")
    # No recipe is asked for unless one is named.
    parser.set_defaults(run=_train, recipe=None)


def _train(options: argparse.Namespace) -> int:
    if options.data is not None:
        _refuse_with_data(options)
    if options.adapt is not None:
        _refuse_with_adapt(options)
    if options.output is None and not options.dry_run:
        raise ConfigError("train needs --output, the directory of the run")
    if bool(options.files) == bool(options.data):
        raise ConfigError("train needs either files of parallel text or --data, a directory that `qkv prepare` wrote")
    config = _config(options)
    from qkv.training import train, train_prepared
    from qkv.training.plan import plan_prepared_training, plan_training

    deadline = deadline_of(options)
    others = {
        "valid": options.valid, "test": options.test, "tokenizer": options.tokenizer, "adapt": options.adapt
    }  # fmt: skip
    if options.dry_run:
        plan = (
            plan_training(options.files, options.output, config, **others)
            if options.data is None
            else plan_prepared_training(options.data, options.output, config, options.adapt)
        )
        if speaks():
            print(plan)
        return 0
    if options.data is not None:
        return ended(
            finished=train_prepared(options.data, options.output, config, adapt=options.adapt, deadline=deadline)
        )
    return ended(finished=train(options.files, options.output, config, **others, deadline=deadline, say=tell))


def _refuse_with_adapt(options: argparse.Namespace) -> None:
    """What a run has settled that is learned on from cannot be asked for again."""
    # What the new run has begun with is kept in it.
    if options.output is None or not (options.output / "start").is_dir():
        require_run(options.adapt, "name one that `qkv train` has made, or a model of `qkv export`")
    given = [f"--{name}" for name in ("recipe", "tokenizer") if getattr(options, name) is not None]
    if given:
        raise ConfigError(f"{', '.join(given)}: settled by {options.adapt}; leave it out, or change settings by --set")


def _refuse_with_data(options: argparse.Namespace) -> None:
    """What prepared data has settled cannot be asked for again."""
    given = [change for change in options.changes if change.startswith(("text.", "data."))]
    given += [f"--{name}" for name in ("valid", "test", "tokenizer") if getattr(options, name, None)]
    languages = {"from": "source_language", "to": "target_language", "directions": "directions"}
    given += [f"--{word}" for word, name in languages.items() if getattr(options, name, None)]
    if given:
        raise ConfigError(
            f"{', '.join(given)}: settled when {options.data} was prepared; leave it out or prepare again"
        )


def _add_distill(commands: _Commands[_Parser]) -> None:
    parser = commands.add_parser(
        "distill",
        help="train a small, quick student on a run's translations",
        description="Translates the training sources with a finished run, the teacher, and trains a student on its "
        "translations. What was stopped goes on when the same command is given again.",
        epilog="examples:\n"
        "  qkv distill run/ --data data/ --output student/\n"
        "  qkv distill run/ --recipe student --set model.encoder_layers=6 --output student/\n"
        "  qkv distill run/ --beam 8 --n-best-by-bleu 8 --also-original --output student/",
    )
    parser.add_argument("directory", type=Path, metavar="RUN", help="the run directory of the teacher")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="data that `qkv prepare` wrote with the teacher's vocabulary (default: the data in RUN)",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="RUN", help="the run directory of the student")
    parser.add_argument("--beam", type=int, default=4, metavar="N", help="width of the teacher's search (default: 4)")
    parser.add_argument("--length-penalty", type=float, metavar="ALPHA", help="default: the teacher's")
    parser.add_argument(
        "--n-best-by-bleu",
        type=int,
        default=1,
        metavar="N",
        help="of the N best translations take the one closest to the corpus's own, by sentence BLEU (default: 1)",
    )
    parser.add_argument(
        "--also-original", action="store_true", help="learn from the corpus's own pairs too, beside the translated ones"
    )
    parser.add_argument(
        "--part", type=int, default=10_000, metavar="N", help="sentences translated between two saves (default: 10000)"
    )
    _recipe_arguments(parser, default="student")
    time_argument(parser)
    parser.set_defaults(run=_distill)


def _distill(options: argparse.Namespace) -> int:
    require_run(options.directory)
    from qkv.distill import Distilling, data_of, distill

    options.data = data_of(options.directory, options.data)
    _refuse_with_data(options)
    finished = distill(
        options.directory,
        options.data,
        options.output,
        _config(options),
        distilling=Distilling(options.beam, options.length_penalty, options.n_best_by_bleu, options.also_original),
        sentences_a_part=options.part,
        deadline=deadline_of(options),
        say=tell,
    )
    return ended(finished=finished)


def _add_plot(commands: _Commands[_Parser]) -> None:
    parser = commands.add_parser(
        "plot",
        help="draw the curves of runs to a PNG",
        description="Draws loss, BLEU, learning rate and speed of one or more runs.",
        epilog="examples:\n"
        "  qkv plot run/ other-run/ --output curves.png\n"
        "  qkv plot base/ fast/ --over minutes --only quality      # what each has learned in the same time",
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directories")
    parser.add_argument("--output", type=Path, metavar="PNG", help="default: curves.png in the first run directory")
    parser.add_argument("--over", choices=["steps", "minutes"], default="steps", help="default: steps")
    parser.add_argument("--only", choices=["loss", "quality", "rate", "speed"], help="one of the four (default: all)")
    parser.set_defaults(run=_plot)


def _plot(options: argparse.Namespace) -> None:
    from qkv.plot import plot

    output = options.output or options.runs[0] / "curves.png"
    plot(options.runs, output, over=options.over, only=options.only)
    print(output)


def _add_average(commands: _Commands[_Parser]) -> None:
    parser = commands.add_parser(
        "average",
        help="make the mean of the last checkpoints a run's weights",
        description="Replaces a run's final weights by the mean of its last checkpoints.",
        epilog="example:\n  qkv average run/ --last 5",
    )
    parser.add_argument("directory", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("--last", type=int, default=5, metavar="N", help="how many checkpoints (default: 5)")
    parser.set_defaults(run=_average)


def _average(options: argparse.Namespace) -> None:
    require_run(options.directory)
    from qkv.checkpoint import RunDirectory

    steps = RunDirectory.open(options.directory).average_last(options.last)
    print(f"{options.directory}: the weights are now the mean of those after steps {', '.join(map(str, steps))}")


def _add_recipes(commands: _Commands[_Parser]) -> None:
    parser = commands.add_parser(
        "recipes",
        help="list the recipes, or every setting of one",
        description="Lists the recipes; with a name, prints every setting of that recipe, as `--set` takes them.",
        epilog="examples:\n  qkv recipes\n  qkv recipes base",
    )
    parser.add_argument("name", nargs="?", metavar="RECIPE", help="of which every setting is printed")
    parser.set_defaults(run=_recipes)


def _recipes(options: argparse.Namespace) -> None:
    if options.name is None:
        for name, function in RECIPES.items():
            print(f"{name:16} {(function.__doc__ or '').splitlines()[0]}")
    else:
        for name, value in settings(recipe(options.name)):
            print(f"{name} = {'none' if value is None else value}")


def _add_completion(commands: _Commands[_Parser]) -> None:
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands in your shell",
        description="Prints a completion script for a shell.",
        epilog="example:\n  qkv completion bash > ~/.local/share/bash-completion/completions/qkv",
    )
    parser.add_argument("shell", choices=["bash", "zsh", "tcsh"])
    parser.set_defaults(run=_completion)


def _completion(options: argparse.Namespace) -> None:
    import shtab

    parser = build_parser()
    for commands in parser._actions:
        for command in commands.choices.values() if isinstance(commands, _Commands) else ():
            for action in command._actions:
                # This parser reads no words: what it offers refuses nothing.
                vars(action).update(_OFFERED.get(str(action.metavar), {}))
    print(shtab.complete(parser, options.shell))


# A system to score is a file or a run directory, and a shell completes the path of a directory as that of a file.
_OFFERED: dict[str, dict[str, Any]] = {
    **{key: {"complete": "file"} for key in ("FILE", "MODEL", "PNG", "SYSTEM", "TSV")},
    **{key: {"complete": "directory"} for key in ("DIR", "RUN")},
    "CORPUS": {"choices": list(CORPORA)},
    "EXPERIMENT": {"choices": [*EXPERIMENTS, "table3"]},
    "RECIPE": {"choices": list(RECIPES)},
}
"""What a shell completes an argument with, by what help calls it; `complete` is shtab's word."""


def _corpus_arguments(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "files",
        nargs="+" if required else "*",
        type=Path,
        metavar="FILE",
        help="source and target, line by line (plain, .gz or .xz), or pairs in files named *.tsv[.gz|.xz]; or one "
        "*.toml that says which corpora, in which directions and how often",
    )
    parser.add_argument("--valid", nargs="+", type=Path, default=[], metavar="FILE", help="held-out pairs, likewise")
    parser.add_argument("--test", nargs="+", type=Path, default=[], metavar="FILE", help="test pairs to watch out for")
    parser.add_argument("--tokenizer", type=Path, metavar="MODEL", help="use this vocabulary instead of learning one")
    parser.add_argument("--from", dest="source_language", metavar="CODE", help="the source's language, such as en")
    parser.add_argument("--to", dest="target_language", metavar="CODE", help="the target's language, such as fr")
    parser.add_argument(
        "--directions", metavar="LIST", help="learn several at once, such as en-de,de-en (default: as the files stand)"
    )
    _recipe_arguments(parser, default="base")


def _recipe_arguments(parser: argparse.ArgumentParser, *, default: str) -> None:
    # Not argparse's choices: an unknown recipe gets a suggestion instead of a list of thirty.
    parser.add_argument(
        "--recipe", default=default, metavar="RECIPE", help=f"default: {default}; `qkv recipes` lists them"
    )
    changes_argument(parser)


def _config(options: argparse.Namespace) -> Config:
    changes = changed_settings(options)
    adapting = getattr(options, "adapt", None) is not None
    return _asked_for(_adapted(options, changes) if adapting else recipe(options.recipe or "base"), options, changes)


def _asked_for(chosen: Config, options: argparse.Namespace, changes: Mapping[str, str]) -> Config:
    if getattr(options, "data", None) is not None:
        from qkv.prepare import Prepared

        # Before the changes: they have to fit the rows of the data, not those of the recipe.
        chosen = Prepared.open(options.data).applied_to(chosen)
    config = override_all(chosen, changes)
    languages = {name: getattr(options, name, None) for name in ("source_language", "target_language", "directions")}
    return config.with_changes(text={name: code for name, code in languages.items() if code is not None})


def _adapted(options: argparse.Namespace, changes: Mapping[str, str]) -> Config:
    """The settings of what is adapted; how often is told and saved fits the steps, asked for or those of the text."""
    from qkv.prepare import Prepared
    from qkv.prepare.mix import Mix
    from qkv.training import adapted_from, fitting_steps

    chosen = adapted_from(options.adapt, options.output)
    asked = _asked_for(chosen, options, changes)
    steps: int | None = asked.training.steps
    if "training.steps" not in changes:
        text = Mix.of(options.files, asked.text) if options.data is None else Prepared.open(options.data)
        steps = fitting_steps(options.adapt, options.output, asked, text)
    return adapted_from(options.adapt, options.output, steps=steps)


if __name__ == "__main__":
    sys.exit(main())
