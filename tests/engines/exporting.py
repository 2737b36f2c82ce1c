"""A small model of a family, exported."""

from __future__ import annotations

from pathlib import Path

from qkv.engines.onnx import OnnxEngine
from qkv.engines.plain import Heads
from qkv.engines.shortlist import Shortlist
from qkv.export.directory import Looks, write_graphs
from qkv.models.encoder_decoder import EncoderDecoder


def exported(
    folder: Path, model: EncoderDecoder, precision: str, *, heads: Heads = ((0, 0),), shortlist: Shortlist | None = None
) -> OnnxEngine:
    folder.mkdir(parents=True, exist_ok=True)
    write_graphs(folder, model, precision, Looks(heads))
    if shortlist is not None:
        shortlist.save(folder)
    return OnnxEngine(folder)
