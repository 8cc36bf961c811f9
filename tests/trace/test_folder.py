"""Which processes of a folder count: those that live, and of the ended ones none that another came after."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from tests.trace.writing import header, place, record, write

from capture_canary.trace.folder import TraceFolder
from capture_canary.trace.identity import ProcessIdentity, own_identity

OTHER_BOOT = "0" * 8 + "-0000-0000-0000-" + "0" * 12
Add = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[TraceFolder]:
    made = TraceFolder(tmp_path)
    yield made
    made.close()


@pytest.fixture
def add(tmp_path: Path) -> Add:
    """Write a trace of a process that began and captured at the given moments; it lives, or it has ended."""
    number = iter(range(1, 1000))

    def write_one(begun: int, *captures: int, lives: bool = False, boot: str | None = None) -> str:
        own = own_identity()
        process = own if lives else msgspec.structs.replace(own, start_time=next(number))
        if boot:
            process = ProcessIdentity(boot, process.pid_namespace, process.pid, process.start_time)
        data = bytearray(header(process, hccl_started_ns=begun))
        for sequence, begin in enumerate(captures, 1):
            place(data, sequence, record(sequence, begin_ns=begin, end_ns=begin + 100))
        return write(tmp_path, data, process).name

    return write_one


def current(folder: TraceFolder) -> list[str]:
    folder.poll()
    return sorted(one.file.path.name for one in folder.current())


def test_server_that_was_stopped_and_mended(folder: TraceFolder, add: Add):
    add(100, 1_000, 2_000)
    again = add(5_000, 6_000)

    assert [again] == current(folder)


def test_ranks_of_one_load_belong_together(folder: TraceFolder, add: Add):
    ranks = [add(100, 1_000), add(200, 3_000), add(150, 2_000)]

    assert sorted(ranks) == current(folder)


def test_living_server_counts_however_old(folder: TraceFolder, add: Add):
    old = add(100, 1_000, lives=True)
    other = add(5_000, 6_000)

    assert sorted([old, other]) == current(folder)


def test_ended_server_counts_until_another_captures(folder: TraceFolder, add: Add):
    only = add(100, 1_000)
    add(5_000, lives=True)  # started, and has captured nothing yet

    assert [only] == current(folder)


def test_other_boots_count_only_alone(folder: TraceFolder, add: Add):
    before = add(9_000, 10_000, boot=OTHER_BOOT)
    assert [before] == current(folder)

    now = add(100, 1_000)
    assert [now] == current(folder)


def test_no_file_that_is_none_is_read(folder: TraceFolder, add: Add, tmp_path: Path):
    good = add(100, 1_000, lives=True)
    name = own_identity()
    fifo = msgspec.structs.replace(name, pid=1).file_name
    os.mkfifo(tmp_path / fifo)
    (tmp_path / msgspec.structs.replace(name, pid=2).file_name).symlink_to(tmp_path / good)
    (tmp_path / msgspec.structs.replace(name, pid=3).file_name).mkdir()
    huge = tmp_path / msgspec.structs.replace(name, pid=4).file_name
    huge.touch()
    os.truncate(huge, 1 << 40)
    for number in range(1_000):
        (tmp_path / f"{number}.trace").touch()

    assert [good] == current(folder)


def test_flood_of_names_pushes_nobody_out(folder: TraceFolder, add: Add, tmp_path: Path):
    good = add(100, 1_000, lives=True)
    assert [good] == current(folder)

    for number in range(300):
        flood = ProcessIdentity(OTHER_BOOT, 1, number, 1)
        (tmp_path / flood.file_name).touch()

    assert [good] == current(folder)
    assert 45 == folder.left_out
    assert 256 == len(folder.processes)
