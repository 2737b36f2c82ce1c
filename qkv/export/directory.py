"""The directory of an exported model; `qkv.engines.exported` reads it.

model/config.json        every setting of the run
model/tokenizer.model    text <-> ids
model/vectors.npy        the vectors of the vocabulary, which both ends of the model share, and scale.npy
model/encoder.onnx       reads a source
model/step.onnx          writes a token more
model/output.onnx        chooses among the vocabulary
model/shortlist.*.npy    which part of it a sentence can need, where that was learned
model/shortlist.0.onnx   chooses among that part; 1, 2 ... where several languages can be asked for
model/sum.onnx           shows whether a processor cuts off sums of 8-bit products; then shortlist.unsigned.* are used
model/alignment.json     which heads tell where a word came from
model/manifest.json      what all these files must be like
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import qkv
from qkv.checkpoint import SHORTLIST, read_tensors
from qkv.directories import CONFIG, TOKENIZER
from qkv.engines.exported import is_exported
from qkv.engines.heads import learn_looks
from qkv.engines.load import Loaded, read_run
from qkv.engines.looks import Head
from qkv.engines.plain import usual_looks
from qkv.engines.shortlist import Shortlist
from qkv.errors import ConfigError, TextError
from qkv.export.graphs import encoder_graph, output_graph, shortlist_graph, step_graph, sum_graph
from qkv.export.parts import numbers
from qkv.export.products import PRECISIONS, multiply_unsigned_int8
from qkv.export.shortlist import learn_shortlist
from qkv.manifest import write_manifest
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.prepare import Prepared
from qkv.run import RunDirectory
from qkv.settings import to_json
from qkv.storage import replacing_directory
from qkv.text.subwords import Tokenizer, target_tags

_VECTORS = "vectors.npy"
_BESIDE_WEIGHTS = 1 << 22
"""Bytes of an exported model that are no weights, about."""


def export(
    run: Path,
    output: Path,
    *,
    precision: str,
    shortlist: bool = True,
    data: Path | None = None,
    plain_marks: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Writes the model of a run, in numbers of this precision; a shortlist is learned from the data it learned from.

    Of a run that was adapted that is too little: it gets one where it began with one, or where `data` is named.
    With `plain_marks` it translates as if its text had been prepared with `data.typography=plain`.
    """
    if precision not in PRECISIONS:
        raise ConfigError(f"precision is {precision!r}; it must be one of {', '.join(PRECISIONS)}")
    if output.exists() and not is_exported(output) and (not output.is_dir() or any(output.iterdir())):
        # A run may be months of work: nobody is to be told to remove one.
        remedy = "choose another directory" + ("" if (output / CONFIG).is_file() else " or remove it")
        raise ConfigError(f"{output} exists and is no exported model; {remedy}")
    loaded = read_run(run)
    if plain_marks:
        loaded = loaded._replace(config=loaded.config.with_changes(data={"typography": "plain"}))
    known = _kept(run, loaded.tokenizer) if shortlist else None
    if shortlist and known is None and data is None and _was_adapted(run):
        say(
            f"no shortlist: {run} was adapted, and its text has few of the words that it knows; --data DIR names text "
            "to learn one from, such as that of the run before"
        )
        shortlist = False
    prepared = _prepared(run, data, loaded.tokenizer) if shortlist or data is not None else None
    expected = None
    if prepared is not None:
        if loaded.looks is None:
            loaded = loaded._replace(looks=learn_looks(loaded, prepared.corpus("train"), prepared.corpus("valid")))
        if shortlist:
            tokenizer = loaded.tokenizer
            tags = target_tags(loaded.config.text, tokenizer)
            expected = learn_shortlist(prepared.corpus("train"), tokenizer.size, end=tokenizer.end, tags=tags)
            if known is not None:
                expected = expected.with_that_of(known)
    write_exported(output, loaded, precision=precision, shortlist=expected)


def write_exported(output: Path, loaded: Loaded, *, precision: str, shortlist: Shortlist | None) -> None:
    """Writes a model, its settings and its tokenizer."""
    model, tokenizer, config, learned, _ = loaded
    looks = learned or usual_looks(model)
    needed = 4 * sum(weight.numel() for weight in model.parameters()) + _BESIDE_WEIGHTS
    with replacing_directory(output, needed) as place:
        (place / CONFIG).write_text(to_json(config), encoding="utf-8")
        (place / TOKENIZER).write_bytes(tokenizer.model)
        write_graphs(place, model, precision, looks.heads, shortlist)
        looks.save(place)
        write_manifest(place, {"qkv": qkv.__version__, "precision": precision, "tokenizer": tokenizer.fingerprint})


def write_graphs(
    place: Path, model: EncoderDecoder, name: str, heads: Sequence[Head], shortlist: Shortlist | None
) -> None:
    """What an engine needs of a model, in numbers of the precision of this name."""
    precision = PRECISIONS[name]
    vectors = precision.keep(numbers(model.inputs.weight_VD))
    np.save(place / _VECTORS, vectors.numbers, allow_pickle=False)
    np.save(place / "scale.npy", vectors.scale, allow_pickle=False)
    # The numbers are the end of their file.
    offset = (place / _VECTORS).stat().st_size - vectors.numbers.nbytes
    (place / "encoder.onnx").write_bytes(encoder_graph(model, precision))
    (place / "step.onnx").write_bytes(step_graph(model, precision, heads))
    (place / "output.onnx").write_bytes(output_graph(precision, vectors, _VECTORS, offset))
    (place / "sum.onnx").write_bytes(sum_graph())
    if shortlist is None:
        return
    shortlist.save(place)
    dtype = str(vectors.numbers.dtype)
    ways = {"shortlist": (precision.multiply, dtype)}
    if dtype == "int8":
        ways["shortlist.unsigned"] = (multiply_unsigned_int8, "uint8")
    for table in range(len(shortlist.frequent)):
        for way, (given, kind) in ways.items():
            always = shortlist.always(table)
            graph = shortlist_graph(precision, vectors, _VECTORS, offset, always, given=given, dtype=kind)
            (place / f"{way}.{table}.onnx").write_bytes(graph)


def _was_adapted(run: Path) -> bool:
    return RunDirectory.open(run).start.is_dir()


def _kept(run: Path, tokenizer: Tokenizer) -> Shortlist | None:
    """The shortlist of the exported model that a run began with, or one before it: the run's own text has less."""
    start = RunDirectory.open(run).start
    kept = read_tensors(start, SHORTLIST) if start.is_dir() else {}
    return Shortlist.of_arrays({name: one.numpy() for name, one in kept.items()}, tokenizer.size) if kept else None


def _prepared(run: Path, data: Path | None, tokenizer: Tokenizer) -> Prepared:
    directory = data or RunDirectory.open(run).learned_from
    if data is None and not directory.is_dir():
        raise ConfigError(
            f"a shortlist is learned from the data that {run} learned from, which is not at {directory}; name it with "
            "--data, or give --no-shortlist"
        )
    prepared = Prepared.open(directory)
    if prepared.tokenizer().fingerprint != tokenizer.fingerprint:
        raise TextError(f"{directory} was prepared with another vocabulary than that of {run}")
    return prepared
