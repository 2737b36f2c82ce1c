"""A run directory as a model that can be translated with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch

from qkv.config import Config
from qkv.devices import choose_device
from qkv.engines.looks import Looks
from qkv.errors import CheckpointError
from qkv.models.build import assemble, order_weights
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.run import RunDirectory
from qkv.text.subwords import Tokenizer

if TYPE_CHECKING:
    from qkv.engines.gpu.search import GpuSearch


class Loaded(NamedTuple):
    model: EncoderDecoder
    tokenizer: Tokenizer
    config: Config
    looks: Looks | None = None
    """Which heads tell where its words came from, if that was learned."""
    directory: Path | None = None
    """That of the checkpoint, or of the final weights, that the model was read from."""


def load_run(path: Path, device: str) -> Loaded:
    """Its final weights, or the newest checkpoint's while it is training, made ready for this device."""
    where = choose_device(device)
    loaded = read_run(path)
    loaded.model.to(where)
    order_weights(loaded.model)
    return loaded


def whole_search(model: EncoderDecoder, precision: str) -> GpuSearch | None:
    """The search that the model's device does by itself, in numbers of this kind; None where it does none."""
    device = model.inputs.weight_VD.device
    if device.type != "cuda":
        return None
    # Its kernels are compiled for a GPU; who has none needs none of this.
    from qkv.engines.gpu.search import GpuSearch

    return GpuSearch(model, precision=getattr(torch, precision))


def read_run(path: Path) -> Loaded:
    """The same as it was trained, on the CPU."""
    run = RunDirectory.open(path)
    config = run.config()
    saved = run.weights()
    if not run.tokenizer_file.is_file():
        raise CheckpointError(
            f"{run.tokenizer_file} is missing; give the command that trained the run again, or copy the file from "
            "the data it was trained on"
        )
    tokenizer = Tokenizer.load(run.tokenizer_file)
    run.require_model(config.model, saved.directory, saved.state)
    if saved.state.get("tokenizer") != tokenizer.fingerprint:
        raise CheckpointError(
            f"{run.tokenizer_file} is not the tokenizer that {saved.directory} was trained with; put that one back"
        )
    with torch.device("meta"):
        model = assemble(config.model, tokenizer.size)
    try:
        model.load_state_dict(saved.tensors["weights"], assign=True)
    except RuntimeError as error:
        raise CheckpointError(f"the weights in {saved.directory} do not fit {run.config_file}") from error
    looks = Looks.load(path, layers=config.model.decoder_layers, heads=config.model.heads)
    return Loaded(model.eval(), tokenizer, config, looks, saved.directory)
