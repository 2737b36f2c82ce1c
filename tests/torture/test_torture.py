"""Quick versions of the fault tests; `make torture` runs them in full."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import toy
from tests.torture import damage, dirty, disk, hostile, kills, several
from tests.torture.trials import Tally


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with toy.one_thread():
        yield


def require_sound(tally: Tally, tried: int) -> None:
    assert (tally.failures, tally.held) == ([], tally.tried)
    assert tally.tried >= tried


def test_killed_at_any_instant_a_run_ends_as_if_it_had_not_been(tmp_path: Path, toy_data: Path) -> None:
    require_sound(kills.kills_while_training(tmp_path, toy_data, 3), 3)


def test_killed_anywhere_inside_a_save_there_is_a_sound_checkpoint(tmp_path: Path) -> None:
    tally = kills.kills_inside_a_save(tmp_path, every=3)
    require_sound(tally, 10)
    assert tally.notes["before the rename"] and tally.notes["after"]


def test_a_changed_byte_is_found_and_named(tmp_path: Path, toy_data: Path) -> None:
    require_sound(damage.flipped_bytes(tmp_path, toy_data, 40), 40)


def test_damaged_files_are_found_and_named(tmp_path: Path, toy_data: Path) -> None:
    require_sound(damage.damaged_files(tmp_path, toy_data), 40)


def test_a_full_disk_ends_no_training_that_can_go_on(tmp_path: Path, toy_data: Path) -> None:
    if not disk.may_mount(tmp_path / "mount"):
        pytest.skip("only root may mount a small disk")
    require_sound(disk.full_disk(tmp_path, toy_data, 1), 4)


def test_told_to_stop_several_processes_save_the_same_step(tmp_path: Path, toy_data: Path) -> None:
    require_sound(several.signals(tmp_path, toy_data, 1), 1)


def test_a_lost_process_is_started_again_and_the_run_ends_the_same(tmp_path: Path, toy_data: Path) -> None:
    require_sound(several.lost(tmp_path, toy_data, 1), 1)


def test_the_number_of_processes_may_change_on_the_way(tmp_path: Path, toy_data: Path) -> None:
    require_sound(several.world_sizes(tmp_path, toy_data, 1), 1)


def test_what_is_no_number_in_one_process_is_seen_by_all(tmp_path: Path, toy_data: Path) -> None:
    require_sound(several.not_finite(tmp_path, toy_data, 1, ways=("fsdp",)), 3)


def test_hostile_files_execute_nothing_and_take_no_memory(tmp_path: Path, toy_data: Path) -> None:
    tally = hostile.hostile_files(tmp_path, toy_data, every=7)
    require_sound(tally, 12)
    assert tally.notes["executed"] == 0


def test_a_pickle_would_have_been_noticed(tmp_path: Path) -> None:
    """The mark that tells of an executed file is one that pickle leaves."""
    import pickle

    pickle.loads(hostile._pickled(tmp_path / "mark"))
    assert (tmp_path / "mark").exists()


def test_dirty_corpora_are_told_line_by_line(tmp_path: Path) -> None:
    require_sound(dirty.dirty_corpora(tmp_path, 2), 2)


def test_dirty_lines_come_out_one_for_one(tmp_path: Path, toy_run: Path) -> None:
    require_sound(dirty.one_line_for_one(tmp_path, toy_run, 1), 1)
