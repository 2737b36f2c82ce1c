"""The weights of a model as arrays, by the names that its parts have: of an exported model, or of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from qkv.config import ModelConfig
from qkv.directories import WEIGHTS
from qkv.engines.arrays import load_array
from qkv.engines.graphs import Read, read_graph
from qkv.errors import CheckpointError
from qkv.manifest import read_manifest, verified
from qkv.search.engine import Floats

EMBEDDING = "inputs.weight_VD"
LEARNED_POSITIONS = "inputs.positions.weight_KD"

T = TypeVar("T")

_NORMS = ("LayerNormalization", "SimplifiedLayerNormalization")
_PRODUCTS = ("MatMul", "MatMulIntegerToFloat")


class Weights(NamedTuple):
    """Arrays by name, such as `encoder.blocks.0.self_attention.query.weight`, a row for each output."""

    arrays: dict[str, Floats]
    precision: str
    """`int8` where products are of 8-bit numbers: then the arrays are those numbers times their scales."""


def read_exported(directory: Path, config: ModelConfig) -> Weights:
    """Those of what `qkv export` wrote."""
    numbers_VD = load_array(directory / "vectors.npy", dimensions=2, kinds="if")
    scale_V = load_array(directory / "scale.npy", dimensions=1, kinds="f")
    if len(scale_V) != len(numbers_VD):
        raise CheckpointError(f"{directory / 'scale.npy'} is damaged: it has not a scale for each of the vectors")
    try:
        arrays = _layers(directory, config)
    except (LookupError, ValueError) as error:
        raise CheckpointError(f"{directory} is damaged: its graphs are not what `qkv export` writes") from error
    precision = "int8" if numbers_VD.dtype == np.int8 else "float32"
    # What is no number here is for the caller to refuse, and not for numpy to tell of.
    with np.errstate(invalid="ignore", over="ignore"):
        return Weights({EMBEDDING: numbers_VD * scale_V[:, None], **arrays}, precision)


def _layers(directory: Path, config: ModelConfig) -> dict[str, Floats]:
    """Those of all that stands between the vectors of what is read and of what is written."""
    arrays: dict[str, Floats] = {}
    reading, writing = (_Order(directory / name, config) for name in ("encoder.onnx", "step.onnx"))
    for layer in range(config.encoder_layers):
        arrays |= reading.block(f"encoder.blocks.{layer}", crosses=False)
    arrays |= reading.last("encoder")
    for layer in range(config.decoder_layers):
        arrays |= writing.block(f"decoder.blocks.{layer}", crosses=True)
        # The keys and values of the source are made where the source is read.
        cross = f"decoder.blocks.{layer}.cross_attention"
        arrays |= reading.products(cross, "key", "value") | reading.head_norms(cross, "key_norm")
    arrays |= writing.last("decoder")
    arrays |= reading.positions()
    reading.require_end()
    writing.require_end()
    return arrays


def read_checkpoint(directory: Path) -> Weights:
    """Those of a run's checkpoint, or of its final weights: `run/final`."""
    # Who has an exported model needs nothing of what reads a run.
    from safetensors.numpy import load_file

    verified(directory, WEIGHTS, read_manifest(directory))
    arrays = {name: np.asarray(array, np.float32) for name, array in load_file(directory / WEIGHTS).items()}
    return Weights(arrays, "float32")


class _Product(NamedTuple):
    """A matrix, a row for each output, and its bias where it has one."""

    weight: Floats
    bias: Floats | None = None


class _Order:
    """The weights of a graph in the order that `qkv.export.parts` lays them out in: they have no names there."""

    def __init__(self, path: Path, config: ModelConfig) -> None:
        graph = read_graph(path)
        self._path = path
        self._config = config
        self._rows = {
            "query": config.heads * config.head_key_width,
            "key": config.heads * config.head_key_width,
            "value": config.heads * config.head_value_width,
            "gate": config.hidden,
            "widen": config.hidden,
        }
        """How high each matrix is that others may stand below."""
        self._products = _products(graph)
        self._norms = iter([node.inputs[1:] for node in graph.nodes if node.kind in _NORMS])
        self._constants = graph.constants
        self._gathered = [node.inputs[0] for node in graph.nodes if node.kind == "Gather"]

    def positions(self) -> dict[str, Floats]:
        """The vectors of positions, where they were learned."""
        found = (self._constants[name] for name in self._gathered if name in self._constants)
        return dict(zip([LEARNED_POSITIONS], found, strict=False))

    def block(self, block: str, *, crosses: bool) -> dict[str, Floats]:
        attention, cross, network = (
            f"{block}.{part}" for part in ("self_attention", "cross_attention", "feed_forward")
        )
        with_norm = self._around
        arrays = with_norm(block, "self_attention", lambda: self._self_attention(attention))
        if crosses:
            arrays |= with_norm(block, "cross_attention", lambda: self._cross_attention(cross))
        return arrays | with_norm(block, "feed_forward", lambda: self._network(network))

    def last(self, stack: str) -> dict[str, Floats]:
        """The norm that pre-norm blocks leave to the end."""
        return self._norm(f"{stack}.last.norm") if self._config.residual == "pre" else {}

    def products(self, part: str, *names: str) -> dict[str, Floats]:
        """The matrices of these names, which stand one below the other in one product."""
        weight, bias = self._next(self._products)
        cuts = np.cumsum([self._rows.get(name, len(weight)) for name in names])[:-1]
        if sum(self._rows.get(name, len(weight)) for name in names) != len(weight):
            raise self._damaged()
        arrays = {f"{part}.{name}.weight": rows for name, rows in zip(names, np.split(weight, cuts), strict=True)}
        if bias is not None:
            arrays |= {f"{part}.{name}.bias": rows for name, rows in zip(names, np.split(bias, cuts), strict=True)}
        return arrays

    def head_norms(self, attention: str, *names: str) -> dict[str, Floats]:
        if self._config.query_key_norm == "none":
            return {}
        return {name: array for one in names for name, array in self._norm(f"{attention}.{one}").items()}

    def require_end(self) -> None:
        if next(self._products, None) is not None or next(self._norms, None) is not None:
            raise self._damaged()

    def _around(self, block: str, part: str, within: Callable[[], dict[str, Floats]]) -> dict[str, Floats]:
        """A sub-layer and its norm, which comes before it or after it."""
        norm = f"{block}.around_{part}.norm"
        if self._config.residual == "pre":
            return self._norm(norm) | within()
        return within() | self._norm(norm)

    def _self_attention(self, name: str) -> dict[str, Floats]:
        arrays = self.products(name, "query", "key", "value") | self.head_norms(name, "query_norm", "key_norm")
        return arrays | self.products(name, "output")

    def _cross_attention(self, name: str) -> dict[str, Floats]:
        return self.products(name, "query") | self.head_norms(name, "query_norm") | self.products(name, "output")

    def _network(self, name: str) -> dict[str, Floats]:
        gate = self.products(name, "gate") if self._config.feed_forward == "gated" else {}
        return gate | self.products(name, "widen") | self.products(name, "narrow")

    def _norm(self, name: str) -> dict[str, Floats]:
        arrays = [self._constants[constant] for constant in self._next(self._norms)]
        return dict(zip((f"{name}.weight", f"{name}.bias"), arrays, strict=False))

    def _next(self, some: Iterator[T]) -> T:
        for one in some:
            return one
        raise self._damaged()

    def _damaged(self) -> CheckpointError:
        return CheckpointError(f"{self._path} has not the weights that its config.json tells of; export the run again")


def _products(graph: Read) -> Iterator[_Product]:
    """The products with a matrix of weights, in order."""
    nodes, constants = graph.nodes, graph.constants
    found: _Product | None = None
    for node in nodes:
        if node.kind in _PRODUCTS and node.inputs[1] in constants:
            if found is not None:
                yield found
            weight = constants[node.inputs[1]].astype(np.float32)
            if weight.ndim != 2:
                raise ValueError("a product is with no matrix")
            if node.kind == "MatMulIntegerToFloat":
                scale = constants[node.inputs[3]]
                # Of other shapes, the product could be larger than all memory.
                if scale.shape != weight.shape[1:]:
                    raise ValueError("a matrix has not a scale for each of its outputs")
                weight = weight * scale
            found = _Product(weight.T)
        elif node.kind == "Add" and node.inputs[1] in constants and found is not None:
            found = found._replace(bias=constants[node.inputs[1]])
    if found is not None:
        yield found
