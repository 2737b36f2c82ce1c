"""A checkpoint is whole or not there, and what is read is what was written."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from qkv import checkpoint
from qkv.checkpoint import average, read, write
from qkv.errors import CheckpointError, ConfigError, StorageError
from qkv.recipes import recipe
from qkv.run import RunDirectory
from qkv.storage import write_atomically
from tests import toy
from tests.test_prepare_faults import small_disk

TENSORS = {"weights": {"a": torch.arange(6.0).view(2, 3), "b": torch.tensor(7, dtype=torch.int64)}}
STATE = {"step": 3, "tokenizer": "none"}


def rewrite_manifest(directory: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Changes the manifest on purpose: it vouches for itself."""
    manifest = json.loads((directory / "manifest.json").read_text())
    del manifest["manifest"]
    manifest = change(manifest) or manifest
    manifest["manifest"] = hashlib.sha256((json.dumps(manifest, indent=2) + "\n").encode()).hexdigest()
    (directory / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    write(tmp_path / "saved", {**TENSORS, "more": {"c": torch.ones(2, dtype=torch.bfloat16)}}, STATE)
    saved = read(tmp_path / "saved")
    assert saved.state == STATE
    assert saved.tensors.keys() == {"weights", "more"}
    assert toy.equal(saved.tensors["weights"], TENSORS["weights"])
    assert saved.tensors["more"]["c"].dtype == torch.bfloat16
    assert read(tmp_path / "saved", weights_only=True).tensors.keys() == {"weights"}


def test_parts_of_a_larger_tensor_are_written_by_themselves(tmp_path: Path) -> None:
    whole = torch.arange(12.0).view(3, 4)
    write(tmp_path / "saved", {"weights": {"row": whole[1], "turned": whole.T}}, STATE)
    assert toy.equal(read(tmp_path / "saved").tensors["weights"], {"row": whole[1], "turned": whole.T})


def test_the_manifest_has_the_size_and_sha_256_of_every_file(tmp_path: Path) -> None:
    write(tmp_path / "saved", TENSORS, STATE)
    manifest = json.loads((tmp_path / "saved" / "manifest.json").read_text())
    assert manifest["files"] == {
        path.name: {"bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path in (tmp_path / "saved").iterdir()
        if path.name != "manifest.json"
    }


def test_the_manifest_tells_what_wrote_the_checkpoint_and_what_it_belongs_to(tmp_path: Path) -> None:
    write(tmp_path / "saved", TENSORS, {**STATE, "data": "1f", "settings": {"training.seed": 1}})
    write(tmp_path / "other", TENSORS, {**STATE, "data": "1f", "settings": {"training.seed": 2}})
    one, other = (json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("saved", "other"))
    assert one["torch"] == torch.__version__
    assert one["python"] == platform.python_version()
    assert one["fingerprints"]["data"] == "1f"
    assert one["fingerprints"]["settings"] != other["fingerprints"]["settings"]


def test_a_changed_byte_of_the_manifest_is_found_wherever_it_is(tmp_path: Path) -> None:
    write(tmp_path / "saved", TENSORS, STATE)
    path = tmp_path / "saved" / "manifest.json"
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        with pytest.raises(CheckpointError, match="is damaged"):
            read(tmp_path / "saved")


def test_a_manifest_of_before_it_vouched_for_itself_is_read(tmp_path: Path) -> None:
    write(tmp_path / "saved", TENSORS, STATE)
    path = tmp_path / "saved" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({name: manifest[name] for name in ("files", "qkv", "torch")}))
    assert read(tmp_path / "saved").state == STATE


def test_a_link_in_a_checkpoint_is_not_followed(tmp_path: Path) -> None:
    for name in ("manifest.json", "state.json", "weights.safetensors"):
        write(tmp_path / "saved", TENSORS, STATE)
        (tmp_path / "saved" / name).rename(tmp_path / name)
        (tmp_path / "saved" / name).symlink_to(tmp_path / name)
        with pytest.raises(CheckpointError, match="is damaged"):
            read(tmp_path / "saved")


def test_writing_again_replaces_everything(tmp_path: Path) -> None:
    write(tmp_path / "saved", {**TENSORS, "old": TENSORS["weights"]}, STATE)
    write(tmp_path / "saved", TENSORS, {**STATE, "step": 4})
    assert read(tmp_path / "saved").state["step"] == 4
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {
        "manifest.json", "state.json", "weights.safetensors",
    }  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_weights_outlive_their_file(tmp_path: Path) -> None:
    write(tmp_path / "saved", TENSORS, STATE)
    saved = read(tmp_path / "saved")
    (tmp_path / "saved" / "weights.safetensors").write_bytes(b"")
    assert toy.equal(saved.tensors["weights"], TENSORS["weights"])


@pytest.mark.parametrize("every", ["manifest.json", "state.json", "weights.safetensors"])
@pytest.mark.parametrize("how", ["flipped", "truncated", "empty", "missing", "a directory"])
def test_damage_is_found_wherever_it_is(tmp_path: Path, every: str, how: str) -> None:
    write(tmp_path / "saved", TENSORS, STATE)
    path = tmp_path / "saved" / every
    content = bytearray(path.read_bytes())
    # In the manifest, a digit of the checksum of the weights.
    content[content.rindex(b"sha256") + 12 if every == "manifest.json" else len(content) // 2] ^= 1
    path.unlink()
    if how == "a directory":
        path.mkdir()
    elif how != "missing":
        path.write_bytes(content[: {"flipped": len(content), "truncated": len(content) // 2, "empty": 0}[how]])
    with pytest.raises(CheckpointError, match=r"saved.* is damaged"):
        read(tmp_path / "saved")


@pytest.mark.parametrize(
    "manifest",
    [[], "text", 7, None, {}, {"files": []}, {"files": None}, {"files": {"state.json": 3}}, {"files": {"a": ["b"]}}],
)
def test_a_manifest_of_another_kind_is_told(tmp_path: Path, manifest: object) -> None:
    write(tmp_path / "saved", TENSORS, STATE)
    (tmp_path / "saved" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match="is damaged"):
        read(tmp_path / "saved")


@pytest.mark.parametrize(
    "name", ["../outside.safetensors", "{absolute}", "saved/../../outside.safetensors", "..", ".", ""]
)
def test_a_hostile_manifest_reads_nothing_outside(tmp_path: Path, name: str) -> None:
    """Its size and checksum are right: what is wrong is where it lies."""
    write(tmp_path / "saved", TENSORS, STATE)
    outside = tmp_path / "outside.safetensors"
    shutil.copy(tmp_path / "saved" / "weights.safetensors", outside)

    def point_outside(manifest: dict[str, Any]) -> None:
        described = manifest["files"]["weights.safetensors"]
        manifest["files"][name.format(absolute=outside)] = described

    rewrite_manifest(tmp_path / "saved", point_outside)
    with pytest.raises(CheckpointError, match="is damaged"):
        read(tmp_path / "saved")


def test_a_file_that_is_no_safetensors_is_told(tmp_path: Path) -> None:
    """Its checksum is right: it was damaged before it was described, or on purpose."""
    write(tmp_path / "saved", TENSORS, STATE)
    content = b"\xff" * 64
    (tmp_path / "saved" / "weights.safetensors").write_bytes(content)
    described = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    rewrite_manifest(tmp_path / "saved", lambda manifest: manifest["files"].update({"weights.safetensors": described}))
    with pytest.raises(CheckpointError, match=r"weights\.safetensors is damaged"):
        read(tmp_path / "saved")


def test_a_directory_without_weights_is_told(tmp_path: Path) -> None:
    write(tmp_path / "saved", {"other": TENSORS["weights"]}, STATE)
    for weights_only in (True, False):
        with pytest.raises(CheckpointError, match=r"weights\.safetensors is damaged"):
            read(tmp_path / "saved", weights_only=weights_only)


def test_the_mean_of_one_is_itself_and_of_three_loses_nothing_beside_large_numbers(tmp_path: Path) -> None:
    values = [torch.tensor([1.0, 1e8]), torch.tensor([2.0, 1.0]), torch.tensor([6.0, -1e8])]
    for number, value in enumerate(values):
        write(tmp_path / str(number), {"weights": {"a": value}}, STATE)
    assert torch.equal(average([tmp_path / "0"])["a"], values[0])
    # In float32, 1e8 + 1 is 1e8.
    assert torch.equal(average([tmp_path / str(number) for number in range(3)])["a"], torch.tensor([3.0, 1 / 3]))


# A full disk, and one that may not be written


def sized(count: int) -> dict[str, dict[str, torch.Tensor]]:
    return {"weights": {"a": torch.rand(count)}}


def test_a_really_full_disk_is_told_and_the_old_checkpoint_stays(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=256k") as disk:
        run = RunDirectory(disk)
        run.save(4, sized(10_000), STATE)
        with pytest.raises(
            StorageError, match=r"full: .*step-0000008 needs 465,792 bytes, and [\d,]+ are free; make room"
        ):
            run.save(8, sized(100_000), STATE)
        assert [path.name for path in (disk / "checkpoints").iterdir()] == ["step-0000004"]
        assert read(disk / "checkpoints" / "step-0000004").state == STATE
        (disk / "config.json").write_text("before")
        with pytest.raises(StorageError, match=r"the disk is full: .*config\.json needs 300,000 bytes, and "):
            write_atomically(disk / "config.json", b"x" * 300_000)
        assert (disk / "config.json").read_text() == "before"
        # Room again: the same call succeeds.
        run.save(8, sized(10_000), STATE)


@pytest.mark.parametrize("call", ["checkpoint.save_file", "checkpoint.write_manifest", "storage.sync"])
def test_a_disk_that_fills_at_any_moment_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    write(tmp_path / "saved", TENSORS, STATE)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(f"qkv.{call}", full)
        with pytest.raises(StorageError, match=r"full: .*saved needs [\d,]+ bytes, and [\d,]+ are free.*; make room"):
            write(tmp_path / "saved", TENSORS, {"step": 9})
    assert read(tmp_path / "saved").state == STATE
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_a_place_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    # Permission bits do not stop root; a read-only file system does.
    with small_disk(tmp_path / "disk", "ro") as disk:
        with pytest.raises(StorageError, match=r"cannot write .*: Read-only file system"):
            write(disk / "saved", TENSORS, STATE)
        with pytest.raises(StorageError, match="Read-only file system"), RunDirectory(disk / "run").held():
            pass


def test_a_refusal_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StorageError, match=r"cannot write .*saved: Permission denied"):
        write(tmp_path / "saved", TENSORS, STATE)


# A run directory


def test_what_is_not_a_run_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, told in (("nothing", "no such run directory"), ("file", "not a run directory"), ("", "no config.json")):
        with pytest.raises(ConfigError, match=told):
            RunDirectory.open(tmp_path / name)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"architectures": ["Marian"]}', b"\xff\xfe", b'{"model": {"width": 7}}']
)
def test_a_config_that_is_damaged_or_not_ours_is_told_and_kept(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"config\.json is damaged, or not a run's"):
        RunDirectory.open(tmp_path).config()
    with pytest.raises(CheckpointError, match="is damaged"):
        RunDirectory(tmp_path).begin(recipe("tiny"))
    assert (tmp_path / "config.json").read_bytes() == content


def test_checkpoints_are_ordered_by_number_and_strangers_are_left_alone(tmp_path: Path) -> None:
    for name in ("step-10000000", "step-0000009", "step-0000010", "step-0000011.tmp", "step-best", "notes"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    names = [path.name for path in RunDirectory(tmp_path).checkpoints()]
    assert names == ["step-0000009", "step-0000010", "step-10000000"]


def test_averaging_needs_as_many_checkpoints_as_it_is_asked_for(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.save(2, TENSORS, {**STATE, "step": 2})
    with pytest.raises(ConfigError, match="has 1 checkpoints, fewer than 2"):
        run.average_last(2)
    with pytest.raises(ConfigError, match="cannot average 0 checkpoints"):
        run.average_last(0)
    assert run.average_last(1) == [2]
    assert read(run.final).state == {"step": 2, "tokenizer": "none", "weights": "checkpoints", "weights_of_step": 2}


def test_a_run_has_its_final_weights_or_those_of_its_newest_checkpoint(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    with pytest.raises(CheckpointError, match="has no weights yet; train it first"):
        run.weights()
    run.save(2, TENSORS, {**STATE, "step": 2})
    run.save(4, TENSORS, {**STATE, "step": 4})
    assert run.weights().state["step"] == 4
    run.average_last(1)
    assert run.weights().directory == run.final


def test_weights_can_be_read_by_whoever_may_read_the_rest(tmp_path: Path) -> None:
    checkpoint.write(tmp_path / "saved", {"weights": {"a": torch.zeros(2)}}, {"step": 1})
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "saved").iterdir()}
    assert len(modes) == 1


def test_a_finished_run_that_goes_on_translates_with_what_it_learned_since(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    checkpoint.write(run.final, {"weights": {"a": torch.zeros(2)}}, {"step": 3})
    run.save(3, {"weights": {"a": torch.ones(2)}}, {"step": 3})
    assert run.weights().directory == run.final
    run.save(5, {"weights": {"a": torch.ones(2)}}, {"step": 5})
    assert run.weights().directory.name == "step-0000005"


def test_final_weights_that_are_damaged_are_made_anew_by_training(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    checkpoint.write(run.final, TENSORS, {"step": 4})
    (run.final / "weights.safetensors").write_bytes(b"nonsense")
    with pytest.raises(CheckpointError, match=r"weights\.safetensors is damaged: it is not what was saved$"):
        run.weights()
    run.save(4, TENSORS, {"step": 4})
    with pytest.raises(CheckpointError, match=r"is damaged: .*; the command that trained .* makes it anew"):
        run.weights()
    # Those of a run that has gone on since are not needed.
    run.save(8, TENSORS, {"step": 8})
    assert run.weights().state["step"] == 8
