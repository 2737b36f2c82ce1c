"""`distill`: the steps from a teacher and its sources to a student, in order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from qkv.config import Config
from qkv.distill.data import summary, write_data
from qkv.distill.parts import Parts
from qkv.distill.request import Distilling, Lesson, Teacher
from qkv.distill.teaching import load_teacher, translate_sources
from qkv.errors import ConfigError
from qkv.prepare import Prepared
from qkv.prepare.directory import existing, held
from qkv.run import RunDirectory
from qkv.storage import explained, require_utf8
from qkv.training import train_prepared
from qkv.training.plan import require_ready

TRANSLATIONS = "translations"


def distill(
    teacher: Path,
    data: Path,
    output: Path,
    config: Config,
    *,
    distilling: Distilling | None = None,
    sentences_a_part: int = 10_000,
    deadline: float | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> bool:
    """Has a finished run translate the training sources of `data`, and trains a run at `output` on what it says.

    It ends before `time.monotonic()` is at the deadline: False where it did. What was stopped goes on when the same is
    asked for again.
    """
    require_utf8([teacher, data, output])
    if sentences_a_part < 1:
        raise ConfigError(f"parts of {sentences_a_part} sentences cannot be; give 1 or more")
    if output.resolve() == teacher.resolve():
        raise ConfigError(f"--output is the teacher itself, {teacher}; give the student a directory of its own")
    lesson = Lesson(Teacher.open(teacher), Prepared.open(data), distilling or Distilling())
    run, config = RunDirectory(output), lesson.prepared.applied_to(config)
    # Translating may take long: what is wrong with the rest is said before it.
    require_ready(config, run)
    with explained(run.path):
        got_on = existing(run.data, lesson.data) is None
        if got_on:
            with held(run.data):
                if not _make_data(lesson, run, config.training.device, sentences_a_part, deadline, say):
                    say("stopped between two parts because time is nearly up; the same command goes on")
                    return False
    return train_prepared(run.data, output, config, deadline=deadline, got_on=got_on)


def data_of(teacher: Path, data: Path | None) -> Path:
    """The data that is meant: by default, what the run was trained on."""
    found = data or RunDirectory.open(teacher).learned_from
    if data is None and not found.is_dir():
        raise ConfigError(f"the data that {teacher} learned from is not at {found}; name its directory with --data")
    return found


def _make_data(
    lesson: Lesson,
    run: RunDirectory,
    device: str,
    sentences_a_part: int,
    deadline: float | None,
    say: Callable[[str], None],
) -> bool:
    """Makes the student's data; False where time was up before."""
    if existing(run.data, lesson.data) is not None:
        # Another process finished it between the look and the lock.
        return True
    _, state = run.newest_state()
    if state.get("data", lesson.data.fingerprint) != lesson.data.fingerprint:
        raise ConfigError(f"{run.path} was trained on something else; choose another --output")
    lesson.prepared.verify()
    parts = Parts(run.path / TRANSLATIONS, lesson.translations.fingerprint, lesson.sources)
    if not translate_sources(lesson, load_teacher(lesson, device), parts, sentences_a_part, deadline):
        return False
    say(summary(lesson, write_data(lesson, parts, run.data)))
    return True
