"""An exported model on a CPU, run by ONNX Runtime: no torch is needed, and none is imported."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qkv.engines.arrays import load_array
from qkv.engines.cache import Cache
from qkv.engines.choosing import Words
from qkv.engines.memory import Pool
from qkv.engines.sessions import Sessions, require_shapes, run
from qkv.engines.shortlist import Shortlist
from qkv.engines.vocabulary import Always, Expected, Whole
from qkv.errors import CheckpointError
from qkv.search.engine import Continuations, Floats, Integers

_MIDDLE = 128
"""What is added to a signed number of 8 bits to make it an unsigned one."""
_MOST = 4096
"""Heads, widths of heads and layers that a model may have: many times what any has."""


@dataclass(frozen=True)
class Memory:
    """What was read: the keys and values of the source for every layer of the decoder."""

    key_LNHKE: Floats
    value_LNHKU: Floats
    mask_N11K: Floats

    def select(self, sentences_N: Integers) -> Memory:
        return Memory(self.key_LNHKE[:, sentences_N], self.value_LNHKU[:, sentences_N], self.mask_N11K[sentences_N])


@dataclass(frozen=True)
class OnnxState:
    """What is known of the sentences. The slots are written to in place: a state is continued once."""

    memory: Memory
    words: Words
    cache: Cache
    looks: bool
    position: int = 0

    def select(self, hypotheses_R: Integers, sentences_N: Integers | None) -> OnnxState:
        selected = replace(self, cache=self.cache.select(hypotheses_R, sentences_N))
        if sentences_N is None:
            return selected
        return replace(selected, memory=self.memory.select(sentences_N), words=self.words.select(sentences_N))


class OnnxEngine:
    """Reads and writes with the graphs of a directory that `qkv export` wrote; one thread, as many as ask at once."""

    def __init__(
        self,
        directory: Path,
        *,
        shortlist: bool = True,
        looks_when_read: bool = False,
        careful: bool | None = None,
    ) -> None:
        """Without `shortlist`, all of the vocabulary is looked at even where the model has learned what to expect.

        `careful` is for processors that cut off sums of 8-bit products (None: if this is one).
        """
        vectors_VD = load_array(directory / "vectors.npy", dimensions=2, kinds="if")
        scale_V = load_array(directory / "scale.npy", dimensions=1, kinds="f")
        if len(vectors_VD) != len(scale_V):
            raise CheckpointError(f"{directory} is damaged: there are not as many scales as vectors")
        self._vectors = _Vectors(vectors_VD, scale_V)
        self._sessions = Sessions(directory, careful=careful)
        self._pool = Pool()
        self.vocabulary = len(scale_V)
        self.looks_when_read = looks_when_read
        kept = shortlist and Shortlist.is_in(directory)
        self._shortlist = Shortlist.load(directory, self.vocabulary) if kept else None
        shapes = {one.name: one.shape for one in self._sessions["step.onnx"].get_inputs()}
        self._always = cache(self._always_of)
        self._layers = sum(name.startswith("key_NHSE.") for name in shapes)
        self._heads, self._key_width = _sizes(shapes.get("key_NHSE.0"))
        _, self._value_width = _sizes(shapes.get("value_NHSU.0"))
        self._require_shapes()

    def _require_shapes(self) -> None:
        """All graphs fit together, and none asks for more memory than its vectors are reason for."""
        sizes = {"D": self._vectors.width, "H": self._heads, "E": self._key_width, "U": self._value_width}
        if max(self._heads, self._key_width, self._value_width, self._layers) > _MOST:
            raise CheckpointError("the model is damaged: its graphs and its vectors do not fit together")
        memory = [f"memory_{name}.{layer}" for layer in range(self._layers) for name in ("key_NHKE", "value_NHKU")]
        require_shapes(self._sessions["step.onnx"], sizes, outputs=["x_NBD", "y_NBD", "looked_NBK", *memory])
        require_shapes(self._sessions["encoder.onnx"], sizes, outputs=["x_NKD", *memory])
        if self._shortlist is None:
            vocabulary = {**sizes, "V": self.vocabulary}
            outputs = ["y_NBD", "log_probability_NBV", "best_NBC", "place_NBC"]
            require_shapes(self._sessions["output.onnx"], vocabulary, outputs=outputs)
        else:
            # Those of other languages are loaded when somebody asks for them.
            self._always(0)

    def start(
        self, sources: Sequence[Sequence[int]], *, wanted: Sequence[Collection[int]] = (), looks: bool = False
    ) -> OnnxState:
        memory = self._read(sources)
        empty = Cache.empty(self._pool, self._layers, len(sources), self._heads, self._key_width, self._value_width)
        return OnnxState(memory, self._words(sources, wanted), empty, looks)

    def step(self, token_R: Integers, state: OnnxState) -> tuple[Continuations, OnnxState]:
        cache, slot_NB = state.cache.taking()
        N, B, S = cache.mask_NBS.shape
        y_NBD = np.empty((N, B, self._vectors.width), np.float32)
        looked_NBK = np.empty((N, B, state.memory.mask_N11K.shape[3]), np.float32)
        inputs: dict[str, NDArray[Any]] = {
            "x_NBD": self._vectors.of(token_R.reshape(N, B)),
            "position_1": np.array([state.position]),
            "place": self._place(slot_NB),
            "mask_N1BS": cache.mask_NBS.reshape(N, 1, B, S),
            "memory_mask_N11K": state.memory.mask_N11K,
        }
        outputs = {"y_NBD": y_NBD, "looked_NBK": looked_NBK}
        for layer in range(self._layers):
            inputs[f"memory_key_NHKE.{layer}"] = state.memory.key_LNHKE[layer]
            inputs[f"memory_value_NHKU.{layer}"] = state.memory.value_LNHKU[layer]
            for name, part in (("key_NHSE", cache.key_NHSE[layer]), ("value_NHSU", cache.value_NHSU[layer])):
                inputs[f"{name}.{layer}"] = outputs[f"{name}.{layer}.after"] = part
        run(self._sessions["step.onnx"], inputs, outputs)
        looked_RK = looked_NBK.reshape(N * B, -1) if state.looks else None
        return state.words.chosen(y_NBD, looked_RK), replace(state, cache=cache, position=state.position + 1)

    def _place(self, slot_NB: Integers) -> Integers:
        """For each head of each hypothesis: the sentence, the head and the slot that it writes to."""
        head, sentence, slot_N1B = np.arange(self._heads)[:, None], np.arange(len(slot_NB)), slot_NB[:, None]
        return np.stack(np.broadcast_arrays(sentence[:, None, None], head, slot_N1B), axis=-1)

    def _read(self, sources: Sequence[Sequence[int]]) -> Memory:
        N, K = len(sources), max(map(len, sources))
        ids_NK = np.zeros((N, K), np.int64)
        mask_N11K = np.full((N, 1, 1, K), -np.inf, np.float32)
        for n, source in enumerate(sources):
            ids_NK[n, : len(source)] = source
            mask_N11K[n, ..., : len(source)] = 0
        memory = Memory(
            self._pool.array((self._layers, N, self._heads, K, self._key_width)),
            self._pool.array((self._layers, N, self._heads, K, self._value_width)),
            mask_N11K,
        )
        outputs = {}
        for layer in range(self._layers):
            outputs[f"memory_key_NHKE.{layer}"] = memory.key_LNHKE[layer]
            outputs[f"memory_value_NHKU.{layer}"] = memory.value_LNHKU[layer]
        inputs: dict[str, NDArray[Any]] = {
            "x_NKD": self._vectors.of(ids_NK),
            "position_K": np.arange(K),
            "mask_N11K": mask_N11K,
        }
        run(self._sessions["encoder.onnx"], inputs, outputs)
        return memory

    def _words(self, sources: Sequence[Sequence[int]], wanted: Sequence[Collection[int]]) -> Words:
        if self._shortlist is None:
            return Words([Whole(self._sessions["output.onnx"], self.vocabulary)], [len(sources)])
        tables = [(table, [*some]) for table, some in groupby(map(self._shortlist.table, sources))]
        vocabularies, sizes, first = [], [], 0
        for table, some in tables:
            last = first + len(some)
            vocabularies.append(self._expected(table, sources[first:last], wanted[first:last]))
            sizes.append(len(some))
            first = last
        return Words(vocabularies, sizes)

    def _expected(self, table: int, sources: Sequence[Sequence[int]], wanted: Sequence[Collection[int]]) -> Expected:
        assert self._shortlist is not None
        own_NO = self._shortlist.own(table, sources, wanted)
        numbers_NDO, scale_N1O = self._vectors.columns(own_NO.clip(max=self.vocabulary - 1))
        if self._unsigned:
            numbers_NDO = numbers_NDO.view(np.uint8) ^ np.uint8(_MIDDLE)
        return Expected(self._always(table), own_NO, numbers_NDO, scale_N1O)

    def _always_of(self, table: int) -> Always:
        assert self._shortlist is not None
        tokens_J = self._shortlist.always(table)
        session = self._sessions[f"shortlist{'.unsigned' * self._unsigned}.{table}.onnx"]
        outputs = ["always_NBJ", "share_NB1", "own_NBO", "best_NBC", "place_NBC", "numbers_NDO", "mask_N1O"]
        require_shapes(session, {"D": self._vectors.width, "J": len(tokens_J)}, outputs=outputs)
        return Always(session, tokens_J, self.vocabulary)

    @property
    def _unsigned(self) -> bool:
        """Whether what is no constant has to be unsigned beforehand."""
        return self._sessions.careful and self._vectors.are_signed


def _sizes(shape: Sequence[int | str | None] | None) -> tuple[int, int]:
    """The heads and the width of a head, as a graph has them."""
    if shape is not None and len(shape) == 4:
        _, heads, _, width = shape
        if isinstance(heads, int) and isinstance(width, int):
            return heads, width
    raise CheckpointError("the model is damaged: its graphs and its vectors do not fit together")


class _Vectors:
    """The vectors of the vocabulary, which both ends of the model share: rows of numbers, a scale for each."""

    def __init__(self, numbers_VD: NDArray[Any], scale_V: Floats) -> None:
        self._numbers_VD = numbers_VD
        self._scale_V = scale_V
        self._scaled_V = scale_V * np.float32(math.sqrt(numbers_VD.shape[1]))

    @property
    def width(self) -> int:
        return int(self._numbers_VD.shape[1])

    @property
    def are_signed(self) -> bool:
        """Whether they are numbers of 8 bits."""
        return self._numbers_VD.dtype == np.int8

    def of(self, ids: Integers) -> Floats:
        """What a stack begins with: the ids' vectors, times the root of the width."""
        vectors: Floats = self._numbers_VD[ids] * self._scaled_V[ids][..., None]
        return vectors

    def columns(self, ids_NO: Integers) -> tuple[NDArray[Any], Floats]:
        """The vectors of each sentence's ids as columns, and their scales."""
        return np.ascontiguousarray(self._numbers_VD[ids_NO].swapaxes(1, 2)), self._scale_V[ids_NO][:, None]
