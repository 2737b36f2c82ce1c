"""A parcel gives back what was packed, or says which parts to send again."""

from __future__ import annotations

import bz2
import json
import random
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from qkv import checkpoint
from qkv.checkpoint import step_of
from qkv.config import Config
from qkv.errors import CheckpointError, ConfigError, FullDiskError
from qkv.parcel.data import pack_data, unpack_data
from qkv.parcel.parts import CODECS, Member, Parcel, kind_of, write_parcel
from qkv.parcel.run import What, pack_run, unpack_run
from qkv.prepare import prepare
from qkv.run import RunDirectory
from qkv.training import train, train_prepared
from tests import toy
from tests.test_prepare_faults import small_disk
from tests.toy import QUICK, Command
from tests.vouching import vouched_for

Index = dict[str, Any]

PART = 1 << 14
LOGS = {"dropped.tsv.gz", "mended.tsv.gz", "prepared.json"}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def one_thread() -> Iterator[None]:
    with toy.one_thread():
        yield


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def without(some: dict[str, bytes], names: set[str]) -> dict[str, bytes]:
    return {name: content for name, content in some.items() if name not in names}


@pytest.mark.parametrize("directions", [None, "en-de,de-en"])
def test_data_comes_back_to_the_last_byte(tmp_path: Path, directions: str | None) -> None:
    corpus = toy.write_tsv(tmp_path / "corpus.en-de.tsv", toy.pairs(3000))
    config = Config().with_changes(text={"vocabulary": 340, "directions": directions})
    before = prepare([corpus], tmp_path / "data", config)
    parts = pack_data(tmp_path / "data", tmp_path / "parcel", part_bytes=PART)
    assert parts > 1
    assert all(path.stat().st_size <= PART for path in (tmp_path / "parcel").glob("part-*"))
    assert kind_of(tmp_path / "parcel") == "data"
    after = unpack_data(tmp_path / "parcel", tmp_path / "again")
    assert without(contents(after.directory), LOGS) == without(contents(before.directory), LOGS)
    assert after.fingerprint == before.fingerprint
    # Pairs travel once, however many directions are learned from them.
    travelled = sum(path.stat().st_size for path in (tmp_path / "parcel").glob("part-*"))
    ids = sum((before.directory / f"train.{side}.ids").stat().st_size for side in ("source", "target"))
    assert travelled < ids / (1 if directions is None else 2)


def test_a_run_goes_on_elsewhere_as_if_it_had_stayed(tmp_path: Path) -> None:
    prepare([toy.write_tsv(tmp_path / "c.tsv", toy.pairs(120))], tmp_path / "data", QUICK)
    train_prepared(tmp_path / "data", tmp_path / "whole", QUICK)
    train_prepared(tmp_path / "data", tmp_path / "first", QUICK.with_changes(training={"steps": 5}))
    pack_run(tmp_path / "first", tmp_path / "parcel", part_bytes=PART, what="newest", precision="float32")
    unpack_run(tmp_path / "parcel", tmp_path / "second")
    assert len(RunDirectory(tmp_path / "second").checkpoints()) == 1
    train_prepared(tmp_path / "data", tmp_path / "second", QUICK)
    assert toy.equal(toy.weights(tmp_path / "second"), toy.weights(tmp_path / "whole"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parcel")
    with toy.one_thread():
        train([toy.write_tsv(folder / "corpus.tsv", toy.pairs(120))], folder / "run", QUICK)
    return folder / "run"


def test_all_of_a_run_is_all_but_its_data(run: Path, tmp_path: Path) -> None:
    pack_run(run, tmp_path / "parcel", part_bytes=PART, what="all", precision="float32")
    unpack_run(tmp_path / "parcel", tmp_path / "again")
    before = {name: content for name, content in contents(run).items() if not name.startswith(("data/", "lock"))}
    assert contents(tmp_path / "again") == before


@pytest.mark.parametrize(("what", "steps"), [("newest", [8]), ("all", [4, 8])])
def test_what_is_damaged_is_not_packed(run: Path, tmp_path: Path, what: What, steps: list[int]) -> None:
    shutil.copytree(run, tmp_path / "run")
    damaged = RunDirectory(tmp_path / "run")
    newest = damaged.checkpoints()[-1]
    for path in (newest / "optimizer.safetensors", damaged.final / "weights.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    pack_run(damaged.path, tmp_path / "parcel", part_bytes=PART, what=what, precision="float32")
    unpack_run(tmp_path / "parcel", tmp_path / "again")
    again = RunDirectory(tmp_path / "again")
    assert ([step_of(one) for one in again.checkpoints()], again.final.exists()) == (steps, False)


def test_weights_are_enough_to_translate(run: Path, tmp_path: Path) -> None:
    for precision in ("float32", "bfloat16"):
        pack_run(run, tmp_path / precision, part_bytes=PART, what="weights", precision=precision)
        unpack_run(tmp_path / precision, tmp_path / f"{precision}-run")
        assert not (tmp_path / f"{precision}-run" / "checkpoints").exists()
    assert toy.equal(toy.weights(tmp_path / "float32-run"), toy.weights(run))
    rounded = {name: weight.bfloat16().float() for name, weight in toy.weights(run).items()}
    assert toy.equal(toy.weights(tmp_path / "bfloat16-run"), rounded)
    sizes = [sum(part.stat().st_size for part in (tmp_path / one).glob("part-*")) for one in ("float32", "bfloat16")]
    assert sizes[1] < 0.6 * sizes[0]


def test_a_rounded_checkpoint_can_be_gone_on_from(run: Path, tmp_path: Path) -> None:
    pack_run(run, tmp_path / "parcel", part_bytes=PART, what="newest", precision="bfloat16")
    unpack_run(tmp_path / "parcel", tmp_path / "again")
    (only,) = RunDirectory(tmp_path / "again").checkpoints()
    tensors = checkpoint.read(only).tensors
    assert all(one.dtype == torch.float32 for one in tensors["weights"].values())
    train_prepared(run / "data", tmp_path / "again", QUICK.with_changes(training={"steps": 14}))


def test_parts_that_are_missing_or_damaged_are_named(run: Path, tmp_path: Path) -> None:
    pack_run(run, tmp_path / "parcel", part_bytes=PART, what="all", precision="float32")
    damaged = tmp_path / "parcel" / "part-001"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    (tmp_path / "parcel" / "part-000").unlink()
    with pytest.raises(CheckpointError, match=r"to be sent again: part-000, part-001$"):
        unpack_run(tmp_path / "parcel", tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_the_thousandth_part_comes_after_the_hundreds(tmp_path: Path) -> None:
    parcel = tmp_path / "parcel"
    # Random bytes, of which two do not fit into a part.
    pieces = [random.Random(number).randbytes(2500) for number in range(3)]
    assert write_parcel(parcel, "some", lambda _: [Member("all", "float32", pieces)], {}, 1 << 12) == 3
    # A thousand files are slow to write; three of them are enough to be read in the wrong order.
    for number, later in ((0, 100), (1, 101), (2, 1000)):
        (parcel / f"part-{number:03}").rename(parcel / f"part-{later:03}")
    vouched_for(parcel)
    (read,) = (b"".join(member.pieces) for member in Parcel(parcel).members())
    assert read == b"".join(pieces)


def change_index(parcel: Path, changed: Callable[[Index], object]) -> None:
    """Makes a parcel say something else of itself, with a manifest that vouches for it."""
    index = json.loads((parcel / "parcel.json").read_text())
    (parcel / "parcel.json").write_text(json.dumps(changed(index)))
    vouched_for(parcel)


def without_key(name: str) -> Callable[[Index], object]:
    return lambda index: {key: value for key, value in index.items() if key != name}


def first_member(**changes: object) -> Callable[[Index], object]:
    return lambda index: {**index, "members": [{**index["members"][0], **changes}, *index["members"][1:]]}


def first_lengths(changed: Callable[[list[int]], object]) -> Callable[[Index], object]:
    return lambda index: first_member(pieces=changed(index["members"][0]["pieces"]))(index)


def as_one_piece(index: Index) -> object:
    every = sum(length for member in index["members"] for length in member["pieces"])
    return {**index, "members": [{**index["members"][0], "pieces": [every]}]}


def last_of_another_codec(index: Index) -> object:
    index["members"][-1]["codec"] = "text" if index["kind"] == "run" else "float32"
    return index


def shifted(index: Index) -> object:
    one, other = (member["pieces"] for member in index["members"][:2])
    one[0], other[0] = one[0] + 1, other[0] - 1
    return index


def about(**changes: object) -> Callable[[Index], object]:
    return lambda index: {**index, "about": {**index["about"], **changes}}


def lines_of(kind: str) -> Callable[[Index], object]:
    return lambda index: about(dtypes={**index["about"]["dtypes"], "lines": kind})(index)


NONSENSE: dict[str, Callable[[Index], object]] = {
    "a list": lambda _: [],
    "nothing": lambda _: None,
    "no format": without_key("format"),
    "no kind": without_key("kind"),
    "about nothing": lambda index: {**index, "about": None},
    "no members": lambda index: {**index, "members": None},
    "a member that is a word": lambda index: {**index, "members": ["config.json"]},
    "a codec that nobody knows": first_member(codec="lzma"),
    "a codec that is a list": first_member(codec=[]),
    "another codec": first_member(codec="float32"),
    "another codec at the end": last_of_another_codec,
    "a number for a name": first_member(name=3),
    "a name that no file can have": first_member(name="\ud800"),
    "no pieces": first_member(pieces=None),
    "pieces of words": first_member(pieces=["a"]),
    "a negative piece": first_lengths(lambda lengths: [-1, *lengths[1:]]),
    "an empty piece": first_lengths(lambda lengths: [*lengths, 0]),
    "a long piece": first_lengths(lambda lengths: [10**12, *lengths[1:]]),
    "a piece too many": first_lengths(lambda lengths: [*lengths, 5]),
    "a piece too few": first_lengths(lambda lengths: lengths[:-1]),
    "half a byte": first_lengths(lambda lengths: [lengths[0] + 0.5, *lengths[1:]]),
    "a piece of several parts": as_one_piece,
    "shifted pieces": shifted,
}

NONSENSE_OF_DATA: dict[str, Callable[[Index], object]] = {
    "nothing about it": lambda index: {**index, "about": {}},
    "objects": lines_of("O"),
    "numbers of another size": lines_of("<u1"),
    "a vocabulary that is a word": about(vocabulary="large"),
    "a manifest that is no text": about(manifest={"inputs": "\ud800"}),
}


@pytest.fixture(scope="module")
def parcels(run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("parcels")
    pack_data(run / "data", folder / "data", part_bytes=PART)
    pack_run(run, folder / "run", part_bytes=PART, what="newest", precision="float32")
    return {kind: folder / kind for kind in ("data", "run")}


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        *(pytest.param(kind, one, id=f"{kind}: {name}") for kind in ("data", "run") for name, one in NONSENSE.items()),
        *(pytest.param("data", one, id=f"data: {name}") for name, one in NONSENSE_OF_DATA.items()),
    ],
)
def test_a_parcel_that_makes_no_sense_is_damaged(
    parcels: dict[str, Path], tmp_path: Path, command: Command, kind: str, changed: Callable[[Index], object]
) -> None:
    shutil.copytree(parcels[kind], tmp_path / "parcel")
    change_index(tmp_path / "parcel", changed)
    refused = command("unpack", tmp_path / "parcel", "--output", tmp_path / "again")
    assert (refused.code, refused.err.splitlines()[0]) == (
        3,
        f"qkv: error: {tmp_path / 'parcel'} is damaged: parcel.json and the parts do not fit together; pack it again",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["parcel"]


@pytest.mark.parametrize(
    "members",
    [
        [],
        [("config.json", b"{}")],
        [("final/state.json", b"{}")],
        [("config.json/file", b"{}"), ("final/state.json", b"{}")],
        # Of what is no checkpoint, nothing vouches for anything.
        [("config.json", b"{}"), ("checkpoints/step-0000001/weights.safetensors", b"")],
    ],
)
def test_what_is_no_run_is_not_called_whole(tmp_path: Path, members: list[tuple[str, bytes]]) -> None:
    packed = [Member(name, "text", [content]) for name, content in members]
    write_parcel(tmp_path / "parcel", "run", lambda _: packed, {}, PART)
    with pytest.raises(CheckpointError, match="is damaged: "):
        unpack_run(tmp_path / "parcel", tmp_path / "again")
    assert [path.name for path in tmp_path.iterdir()] == ["parcel"]


@pytest.mark.parametrize("unpack", [unpack_data, unpack_run])
@pytest.mark.parametrize("name", ["../outside", "checkpoints/../../outside", "/outside", ".", "", "nul\0"])
def test_nothing_is_written_outside(tmp_path: Path, unpack: Callable[[Path, Path], object], name: str) -> None:
    name = str(tmp_path) + name if name.startswith("/") else name
    write_parcel(tmp_path / "parcel", "some", lambda _: [Member(name, "text", [b"here"])], {}, PART)
    with pytest.raises(CheckpointError, match="would be written elsewhere"):
        unpack(tmp_path / "parcel", tmp_path / "again")
    assert [path.name for path in tmp_path.iterdir()] == ["parcel"]


def test_what_packing_needs_on_its_way_lies_where_the_next_one_clears_up(tmp_path: Path) -> None:
    output = tmp_path / "new" / "parcel"

    def members(folder: Path) -> Iterator[Member]:
        (folder / "large").touch()
        yield Member("names", "text", ["\n".join(path.name for path in output.parent.iterdir()).encode()])

    write_parcel(output, "some", members, {}, PART)
    (names,) = (b"".join(member.pieces) for member in Parcel(output).members())
    assert names == b"parcel.tmp"
    assert sorted(path.name for path in output.iterdir()) == ["manifest.json", "parcel.json", "part-000"]


def test_a_disk_that_is_really_full_is_told_without_numbers_that_nobody_knows(run: Path, tmp_path: Path) -> None:
    pack_run(run, tmp_path / "parcel", part_bytes=PART, what="all", precision="float32")
    pack_data(run / "data", tmp_path / "data", part_bytes=PART)
    told = pytest.raises(FullDiskError, match=r"^the disk is full: \S+ cannot be written; make room and give")
    with small_disk(tmp_path / "disk", "size=20k") as disk:
        with told:
            pack_run(run, disk / "again", part_bytes=PART, what="all", precision="float32")
        with told:
            unpack_run(tmp_path / "parcel", disk / "again")
        with told:
            unpack_data(tmp_path / "data", disk / "again")
        assert not any(disk.iterdir())


def test_what_cannot_be_packed_is_told(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="too small"):
        pack_run(run, tmp_path / "parcel", part_bytes=10, what="all", precision="float32")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    for output in (tmp_path / "full", tmp_path / "full" / "file"):
        with pytest.raises(ConfigError, match="is not an empty directory"):
            pack_run(run, output, part_bytes=PART, what="all", precision="float32")
    with pytest.raises(ConfigError, match="is no parcel"):
        kind_of(tmp_path / "full")


def test_commands_pack_and_unpack(run: Path, tmp_path: Path, command: Command) -> None:
    packed = command("pack", run, "--output", tmp_path / "parcel", "--part-size", "0.1", "--what", "weights")
    assert (packed.code, packed.err.split(" in ")[1]) == (0, "1 part\n")
    assert command("unpack", tmp_path / "parcel", "--output", tmp_path / "again").code == 0
    refused = command("unpack", tmp_path / "parcel", "--output", tmp_path / "again")
    assert (refused.code, "is there already" in refused.err) == (2, True)
    assert command("pack", run / "data", "--output", tmp_path / "data", "--what", "all").code == 2


@pytest.mark.parametrize("size", ["nan", "inf", "1e400", "0", "-1", "much"])
def test_a_size_of_parts_that_is_none_is_refused(run: Path, tmp_path: Path, command: Command, size: str) -> None:
    refused = command("pack", run, "--output", tmp_path / "parcel", "--part-size", size)
    assert (refused.code, f"'{size}' is not a number of megabytes such as 15" in refused.err) == (2, True)


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_gives_back_what_it_was_given(codec: str) -> None:
    for content in (b"", b"a", bytes(range(256)) * 3 + b"end"):
        assert CODECS[codec].unpack(CODECS[codec].pack(content)) == content


@pytest.mark.parametrize("codec", CODECS)
def test_a_few_bytes_do_not_fill_memory(codec: str) -> None:
    most = bytes(4 << 20)
    compress = bz2.compress if codec == "text" else zlib.compress
    assert CODECS[codec].unpack(compress(most)) == most
    for more in (compress(most + b"a"), compress(most) + compress(most)):
        with pytest.raises(ValueError, match="not a piece"):
            CODECS[codec].unpack(more)
