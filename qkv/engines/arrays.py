"""Arrays of an exported model, read so that no file can do harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qkv.errors import CheckpointError


def load_array(path: Path, *, dimensions: int, kinds: str, below: int | None = None) -> NDArray[Any]:
    """The array in a file; its kind of number is one of numpy's letters, and where they are ids they are below this."""
    try:
        # Mapped first: a file that promises more than it has is found out before room is made for that.
        array = np.array(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    sound = array.ndim == dimensions and array.dtype.kind in kinds and array.size > 0
    if not sound or (below is not None and (array.min() < 0 or array.max() >= below)):
        raise CheckpointError(f"{path} is damaged: its numbers are not what they should be")
    return array
