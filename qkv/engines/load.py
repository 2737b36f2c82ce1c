"""A run directory as a model that can be translated with."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch

from qkv.checkpoint import RunDirectory
from qkv.config import Config
from qkv.devices import choose_device
from qkv.errors import CheckpointError
from qkv.models.build import assemble, quicken
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.text.subwords import Tokenizer


class Loaded(NamedTuple):
    model: EncoderDecoder
    tokenizer: Tokenizer
    config: Config


def load_run(path: Path, device: str) -> Loaded:
    """Its final weights, or the newest checkpoint's while it is training, made ready for this device."""
    run = RunDirectory.open(path)
    config = run.config()
    where = choose_device(device)
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
    model.eval().to(where)
    quicken(model)
    return Loaded(model, tokenizer, config)
