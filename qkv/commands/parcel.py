"""`qkv pack` and `qkv unpack`: prepared data and runs on their way to another machine."""

from __future__ import annotations

import argparse
import contextlib
import math
from pathlib import Path
from typing import Any

from qkv.commands.arguments import Commands
from qkv.directories import require_run
from qkv.errors import ConfigError
from qkv.progress import tell
from qkv.storage import readable_size


def add_pack(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "pack",
        help="put prepared data or a run into small parts with checksums, to send it elsewhere",
        description="Writes prepared data or a run as compressed parts of one size, for a machine that is reached by "
        "small transfers. `qkv unpack` makes the same directory of them there; docs/stretches.md tells the whole way.",
        epilog="examples:\n"
        "  qkv pack data/ --output parcel/ --part-size 60\n"
        "  qkv pack run/ --output parcel/                                 what training needs to go on\n"
        "  qkv pack run/ --output parcel/ --what weights --precision bfloat16\n"
        "  qkv unpack parcel/ --output run/",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="prepared data, or a run directory")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="where the parts go")
    parser.add_argument("--part-size", type=_megabytes, default=15.0, metavar="MB", help="at most (default: 15)")
    parser.add_argument(
        "--what",
        choices=["all", "newest", "weights"],
        help="of a run: all checkpoints, the newest one (default), or only the weights it translates with",
    )
    parser.add_argument("--precision", choices=["float32", "bfloat16"], help="of a run's numbers (default: float32)")
    parser.set_defaults(run=_pack)


def add_unpack(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "unpack",
        help="make prepared data or a run of the parts that `qkv pack` wrote",
        description="Verifies the parts of a parcel, and makes the directory of them that was packed.",
        epilog="example:\n  qkv unpack parcel/ --output data/",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="the directory with all parts")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="prepared data or a run, as packed")
    parser.set_defaults(run=_unpack)


def _pack(options: argparse.Namespace) -> None:
    part_bytes = int(options.part_size * 1e6)
    if (options.directory / "prepared.json").is_file():
        if options.what or options.precision:
            raise ConfigError("--what and --precision are for runs; data travels as it is")
        from qkv.parcel.data import pack_data

        parts = pack_data(options.directory, options.output, part_bytes=part_bytes)
    else:
        require_run(options.directory, "name one that `qkv train` has made, or data of `qkv prepare`")
        # Only who packs a run needs torch.
        from qkv.parcel.run import pack_run

        parts = pack_run(
            options.directory,
            options.output,
            part_bytes=part_bytes,
            what=options.what or "newest",
            precision=options.precision or "float32",
        )
    size = sum(path.stat().st_size for path in options.output.iterdir())
    tell(f"{options.output}: {readable_size(size)} in {parts:,} {'part' if parts == 1 else 'parts'}")


def _unpack(options: argparse.Namespace) -> None:
    from qkv.parcel.parts import kind_of

    if kind_of(options.directory) == "data":
        from qkv.parcel.data import unpack_data

        unpack_data(options.directory, options.output)
    else:
        from qkv.parcel.run import unpack_run

        unpack_run(options.directory, options.output)
    tell(f"{options.output}: whole")


def _megabytes(text: str) -> float:
    """How many megabytes `15` or `0.5` is."""
    with contextlib.suppress(ValueError):
        if 0 < (megabytes := float(text)) < math.inf:
            return megabytes
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of megabytes such as 15 or 0.5")
