"""Training in two stretches on another machine ends as it would have ended in one."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from qkv.prepare import prepare
from qkv.training import train_prepared
from tests import toy
from tests.toy import QUICK

ROOT = Path(__file__).parent.parent

SETTINGS = {
    "model.width": 16, "model.heads": 2, "model.hidden": 24, "model.encoder_layers": 1, "model.decoder_layers": 2,
    "model.residual": "pre", "training.tokens_per_batch": 160, "training.schedule": "constant",
    "training.learning_rate": 1e-2, "training.warmup_steps": 3, "training.final": "last", "training.save_every": 4,
    "training.validate_every": 6, "training.validation_sentences": 2, "training.report_every": 3,
    "training.device": "cpu",
}  # fmt: skip
"""QUICK's, as the command line takes them."""


def stretch(folder: Path, steps: int) -> subprocess.CompletedProcess[str]:
    """One stretch on a machine that is another directory of this one."""
    settings = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
    command = [
        str(ROOT / "tools" / "stretch"),
        "nowhere",
        "data",
        "run",
        "10m",
        *settings,
        "--set",
        f"training.steps={steps}",
    ]
    qkv = f"{shlex.quote(sys.executable)} -m qkv"
    way = {
        "STRETCH_SHELL": "bash -c", "STRETCH_COPY": "cp -r", "STRETCH_PLACE": "", "STRETCH_QKV": qkv,
        "STRETCH_QKV_HERE": qkv, "STRETCH_DIRECTORY": str(folder / "there"), "STRETCH_PART": "0.02",
        "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    return subprocess.run(command, cwd=folder, env={**os.environ, **way}, capture_output=True, text=True)


def test_two_stretches_elsewhere_are_one_run(tmp_path: Path) -> None:
    corpus = toy.write_tsv(tmp_path / "corpus.en-de.tsv", toy.pairs(150))
    config = QUICK.with_changes(text={"directions": "en-de,de-en", "vocabulary": 340})
    prepare([corpus], tmp_path / "data", config)
    for steps in (5, 12):
        ran = stretch(tmp_path, steps)
        assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "run.before").is_dir()
    with toy.one_thread():
        train_prepared(tmp_path / "data", tmp_path / "whole", config)
    assert toy.equal(toy.weights(tmp_path / "run"), toy.weights(tmp_path / "whole"))
