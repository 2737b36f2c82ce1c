"""The graphs of an exported model, as ONNX Runtime runs them on this machine's processor."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnxruntime import InferenceSession, OrtValue, SessionOptions
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

from qkv.errors import CheckpointError, is_out_of_memory

_ONLY_ERRORS = 3
_REFUSALS = (
    runtime.EPFail,
    runtime.Fail,
    runtime.InvalidArgument,
    runtime.InvalidGraph,
    runtime.InvalidProtobuf,
    runtime.NoSuchFile,
    runtime.NotImplemented,
    runtime.RuntimeException,
)
_NOT_QUICKER = ["SkipLayerNormFusion"]
"""What the runtime would put in place of others: its sum and norm in one takes five times as long as both."""
_SUM = "sum.onnx"
_WIDE = 64
"""Numbers that are summed up to try a processor: enough for the way that long rows go."""


class Sessions:
    """Graphs by name, each loaded when it is asked for; one thread, as many as ask at once."""

    def __init__(self, directory: Path, *, careful: bool | None = None) -> None:
        """`careful` ones never cut off a sum of 8-bit products; None: so are those of a processor that needs it."""
        self._directory = directory
        self.careful = self._cuts_off() if careful is None else careful
        self._session = cache(lambda name: _session(directory / name, careful=self.careful))

    def __getitem__(self, name: str) -> InferenceSession:
        return self._session(name)

    def _cuts_off(self) -> bool:
        """Whether this processor adds two products of 8 bits in 16, which the largest numbers are too large for."""
        session = _session(self._directory / _SUM, careful=False)
        row_1D, numbers_DV = np.full((1, _WIDE), 255, np.uint8), np.full((_WIDE, _WIDE), 127, np.int8)
        sum_1V = np.empty((1, _WIDE), np.int32)
        run(session, {"row_1D": row_1D, "numbers_DV": numbers_DV}, {"sum_1V": sum_1V})
        return bool((sum_1V != _WIDE * 255 * 127).any())


def _session(path: Path, *, careful: bool) -> InferenceSession:
    if not path.is_file():
        raise CheckpointError(f"{path.parent} is damaged, or of an older version of qkv: export the run again")
    options = SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = _ONLY_ERRORS
    if careful:
        # Constants become unsigned: the way of multiplying them is exact everywhere, and takes more than twice as long.
        options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return InferenceSession(path, options, providers=["CPUExecutionProvider"], disabled_optimizers=_NOT_QUICKER)
    except _REFUSALS as error:
        raise _explained(error, str(path)) from error


def run(session: InferenceSession, inputs: Mapping[str, NDArray[Any]], outputs: Mapping[str, NDArray[Any]]) -> None:
    """Computes the outputs into the arrays given for them."""
    with working():
        binding = session.io_binding()
        for name, array in inputs.items():
            binding.bind_ortvalue_input(name, value(array))
        for name, array in outputs.items():
            binding.bind_ortvalue_output(name, value(array))
        session.run_with_iobinding(binding)


@contextmanager
def working() -> Iterator[None]:
    """A graph that does not do what it says of itself is told as what it is."""
    try:
        yield
    except (*_REFUSALS, RuntimeError, ValueError) as error:
        raise _explained(error, "the model") from error


def _explained(error: Exception, what: str) -> Exception:
    """What the runtime's complaint means: it has the same kinds for a graph that is wrong and for too little memory."""
    told = str(error).splitlines()[0]
    return MemoryError(told) if is_out_of_memory(error) else CheckpointError(f"{what} is damaged: {told}")


def require_shapes(session: InferenceSession, sizes: Mapping[str, int], *, outputs: Collection[str]) -> None:
    """A graph's arrays are as the ends of their names say, where these letters have sizes and all others are free."""
    given = {one.name: one for one in (*session.get_inputs(), *session.get_outputs())}
    shapes = {name: one.shape for name, one in given.items() if _dimensions(name)}
    sound = given.keys() >= {*outputs} and all(
        len(shape) == len(_dimensions(name))
        and all(_fits(size, letter, sizes) for size, letter in zip(shape, _dimensions(name), strict=True))
        for name, shape in shapes.items()
    )
    if not sound:
        raise CheckpointError("the model is damaged: its graphs and its vectors do not fit together")


def _dimensions(name: str) -> str:
    _, mark, letters = name.partition(".")[0].rpartition("_")
    return letters if mark else ""


def _fits(size: int | str | None, letter: str, sizes: Mapping[str, int]) -> bool:
    if letter == "1":
        return size == 1
    return size == sizes[letter] if letter in sizes else not isinstance(size, int)


def value(array: NDArray[Any]) -> OrtValue:
    """The array's own memory, as the runtime knows it."""
    return OrtValue.ortvalue_from_numpy(array)
