"""A small model of a family, exported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qkv.engines.looks import Head
from qkv.engines.onnx import OnnxEngine
from qkv.engines.shortlist import Shortlist
from qkv.export.directory import write_graphs
from qkv.models.encoder_decoder import EncoderDecoder


def exported(
    folder: Path,
    model: EncoderDecoder,
    precision: str,
    *,
    heads: Sequence[Head] = ((0, 0),),
    shortlist: Shortlist | None = None,
) -> OnnxEngine:
    folder.mkdir(parents=True, exist_ok=True)
    write_graphs(folder, model, precision, heads, shortlist)
    return OnnxEngine(folder)
