"""An exported model on a CPU, run by ONNX Runtime: no torch is needed, and none is imported."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qkv.engines.arrays import load_array
from qkv.engines.cache import Cache
from qkv.engines.choosing import Chosen, Vocabulary
from qkv.engines.memory import Pool
from qkv.engines.sessions import Sessions, run, value
from qkv.engines.shortlist import Shortlist
from qkv.errors import CheckpointError
from qkv.search.engine import Floats, Integers

_MIDDLE = 128
"""What is added to a signed number of 8 bits to make it an unsigned one."""


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
    vocabulary: Vocabulary
    cache: Cache
    looks: bool
    position: int = 0

    def select(self, hypotheses_R: Integers, sentences_N: Integers | None) -> OnnxState:
        selected = replace(self, cache=self.cache.select(hypotheses_R, sentences_N))
        if sentences_N is None:
            return selected
        return replace(selected, memory=self.memory.select(sentences_N), vocabulary=self.vocabulary.select(sentences_N))


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
        if "key_NHSE.0" not in shapes or shapes["x_NBD"][2] != self._vectors.width:
            raise CheckpointError(f"{directory} is damaged: its graphs and its vectors do not fit together")
        self._layers = sum(name.startswith("key_NHSE.") for name in shapes)
        _, self._heads, _, self._key_width = shapes["key_NHSE.0"]
        self._value_width = shapes["value_NHSU.0"][3]

    def start(
        self, sources: Sequence[Sequence[int]], *, wanted: Sequence[Collection[int]] = (), looks: bool = False
    ) -> OnnxState:
        memory = self._read(sources)
        empty = Cache.empty(self._pool, self._layers, len(sources), self._heads, self._key_width, self._value_width)
        return OnnxState(memory, self._words(sources, wanted), empty, looks)

    def step(self, token_R: Integers, state: OnnxState) -> tuple[Chosen, OnnxState]:
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
        return Chosen(state.vocabulary, y_NBD, looked_RK), replace(state, cache=cache, position=state.position + 1)

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

    def _words(self, sources: Sequence[Sequence[int]], wanted: Sequence[Collection[int]]) -> Vocabulary:
        if self._shortlist is None:
            return Vocabulary(self._sessions["output.onnx"], {}, self.vocabulary)
        tokens_V, mask_NV = self._shortlist.of(sources, wanted)
        numbers_DV, scale_V = self._vectors.columns(tokens_V)
        name = "shortlist.onnx"
        if self._sessions.careful and numbers_DV.dtype == np.int8:
            # What is no constant has to be unsigned beforehand.
            name, numbers_DV = "shortlist.unsigned.onnx", numbers_DV.view(np.uint8) ^ np.uint8(_MIDDLE)
        constants = {"numbers_DV": value(numbers_DV), "scale_V": value(scale_V)}
        return Vocabulary(self._sessions[name], constants, self.vocabulary, tokens_V, mask_NV)


class _Vectors:
    """The vectors of the vocabulary, which both ends of the model share: rows of numbers, a scale for each."""

    def __init__(self, numbers_VD: NDArray[Any], scale_V: Floats) -> None:
        self._numbers_VD = numbers_VD
        self._scale_V = scale_V
        self._scaled_V = scale_V * np.float32(math.sqrt(numbers_VD.shape[1]))

    @property
    def width(self) -> int:
        return int(self._numbers_VD.shape[1])

    def of(self, ids: Integers) -> Floats:
        """What a stack begins with: the ids' vectors, times the root of the width."""
        vectors: Floats = self._numbers_VD[ids] * self._scaled_V[ids][..., None]
        return vectors

    def columns(self, ids_V: Integers) -> tuple[NDArray[Any], Floats]:
        return np.ascontiguousarray(self._numbers_VD[ids_V].T), self._scale_V[ids_V]
