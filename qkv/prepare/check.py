"""What `prepare` would refuse after hours, refused at once where a look at the files and settings is enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from qkv.config import Config
from qkv.errors import ConfigError, TextError
from qkv.prepare.encode import fitting_tokenizer
from qkv.text.files import pair_files
from qkv.text.subwords import require_learnable


def check_request(config: Config, roles: Mapping[str, Sequence[Path]], tokenizer: Path | None) -> None:
    """Refuses files that are missing, unpaired or empty, cannot be read or begin wrongly, and an unfit vocabulary."""
    if not roles["training"]:
        raise ConfigError("no files to prepare; give a source and a target file, or pairs in a file named *.tsv")
    parts = {role: pair_files(paths) for role, paths in roles.items() if paths}
    for role, some in parts.items():
        first = [next(part.pairs(config.data.max_bytes), None) for part in some]
        if not any(first):
            raise TextError(f"no {role} pairs are left of 0; its files are empty")
    if tokenizer is None:
        require_learnable(config.text)
    else:
        fitting_tokenizer(tokenizer, config.text)
