import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from capture_canary.logs import follow
from capture_canary.logs.follow import Follower


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Follower]:
    follower = Follower([os.fspath(tmp_path / "*.log")])
    yield follower
    follower.close()


def texts(follower: Follower) -> list[str]:
    return [segment.text for segment in follower.poll()]


def append(path: Path, text: str | bytes) -> None:
    with path.open("ab") as file:
        file.write(text.encode() if isinstance(text, str) else text)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_gives_whole_lines_as_they_come(log: Path, follower: Follower) -> None:
    assert texts(follower) == []
    append(log, "one\ntw")
    assert texts(follower) == ["one"]
    assert texts(follower) == []
    append(log, "o\r")
    assert texts(follower) == ["two"]


def test_every_state_of_a_bar_is_a_piece(log: Path, follower: Follower) -> None:
    append(log, "\rbar 1\rbar 2\rbar 3\nnext")
    assert texts(follower) == ["bar 1", "bar 2", "bar 3"]


def test_blocks_without_a_hint_are_dropped_and_no_line_of_interest_is(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    follower = Follower([os.fspath(log)], hints=["apturing"])
    append(log, "a request\nanother\nCaptu")
    assert texts(follower) == []
    append(log, "ring graphs\n")
    assert texts(follower) == ["Capturing graphs"]
    append(log, b"x" * 200_000)
    append(log, "\nCapturing more\n")
    assert texts(follower)[-1] == "Capturing more"
    follower.close()


def test_rotation_by_rename_loses_nothing(log: Path, follower: Follower) -> None:
    append(log, "one\n")
    assert texts(follower) == ["one"]
    append(log, "two\nhalf")
    log.rename(log.with_suffix(".1"))
    append(log, "three\n")
    assert texts(follower) == ["two", "half", "three"]


def test_rotation_by_copy_and_truncation(log: Path, follower: Follower) -> None:
    append(log, "one\ntwo\n")
    assert texts(follower) == ["one", "two"]
    os.truncate(log, 0)
    append(log, "three\n")
    assert texts(follower) == ["three"]


def test_truncated_and_grown_beyond_where_we_were(log: Path, follower: Follower) -> None:
    append(log, "one\ntwo\n")
    assert texts(follower) == ["one", "two"]
    os.truncate(log, 0)
    append(log, "three\nfour\nfive\n")
    assert texts(follower) == ["three", "four", "five"]


def test_replaced_by_another_file(log: Path, follower: Follower) -> None:
    append(log, "one\n")
    texts(follower)
    fresh = log.with_suffix(".new")
    append(fresh, "two\n")
    fresh.replace(log)
    assert texts(follower) == ["two"]


def test_a_file_that_is_gone_gives_its_rest_and_its_descriptor(
    log: Path, follower: Follower
) -> None:
    append(log, "one\n")
    texts(follower)
    before = descriptors()
    append(log, "two\nthree")
    log.unlink()
    assert texts(follower) == ["two", "three"]
    assert descriptors() == before - 1


def test_links_are_followed_as_in_kubelet_s_folders(
    tmp_path: Path, log: Path, follower: Follower
) -> None:
    target = tmp_path / "0.txt"
    append(target, "one\n")
    log.symlink_to(target)
    assert texts(follower) == ["one"]
    target.rename(tmp_path / "0.txt.1")
    append(target, "two\n")
    assert texts(follower) == ["two"]


def test_what_is_no_regular_file_is_never_opened(tmp_path: Path, follower: Follower) -> None:
    os.mkfifo(tmp_path / "fifo.log")
    (tmp_path / "folder.log").mkdir()
    (tmp_path / "device.log").symlink_to("/dev/zero")
    (tmp_path / "linked.log").symlink_to(tmp_path / "fifo.log")
    (tmp_path / "nowhere.log").symlink_to(tmp_path / "nothing")
    (tmp_path / "loop.log").symlink_to(tmp_path / "loop.log")
    before = descriptors()
    assert texts(follower) == []
    assert descriptors() == before


def test_a_file_that_becomes_a_fifo_is_let_go(log: Path, follower: Follower) -> None:
    append(log, "one\n")
    texts(follower)
    log.unlink()
    os.mkfifo(log)
    assert texts(follower) == []
    assert texts(follower) == []


def test_a_huge_line_comes_in_pieces(log: Path, follower: Follower) -> None:
    append(log, b"x" * 1_000_000 + b"\nend\n")
    found = texts(follower)
    assert max(map(len, found)) <= follow._LINE  # noqa: SLF001 - the bound itself
    assert sum(map(len, found)) == 1_000_003
    assert found[-1] == "end"


def test_binary_garbage_is_text_of_a_kind(log: Path, follower: Follower) -> None:
    append(log, bytes(range(256)) * 10 + b"\nend\n")
    assert texts(follower)[-1] == "end"


def test_of_a_large_old_file_the_begin_and_the_end_are_read(
    log: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "_BACKLOG", 1000)
    monkeypatch.setattr(follow, "_READ", 500)
    append(log, "begin\n" + "middle\n" * 2000 + "end\n")
    found = texts(follower)
    for _ in range(5):
        found += texts(follower)
    assert found[0] == "begin"
    assert found[-1] == "end"
    assert len(found) < 400
    append(log, "more\n")
    assert texts(follower) == ["more"]


def test_a_poll_is_bounded_and_the_rest_comes_later(log: Path, follower: Follower) -> None:
    append(log, b"line\n" * 500_000)
    first = len(texts(follower))
    assert first < 500_000
    assert first + sum(len(texts(follower)) for _ in range(3)) == 500_000


def test_memory_is_bounded(log: Path, follower: Follower) -> None:
    append(log, b"\n" * 400_000 + b"ab\n" * 100_000)
    tracemalloc.start()
    try:
        for _ in range(6):
            for _segment in follower.poll():
                pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20


def test_the_number_of_files_is_bounded_and_open_ones_stay(tmp_path: Path) -> None:
    follower = Follower([os.fspath(tmp_path / "*.log")], max_files=2)
    append(tmp_path / "y.log", "y\n")
    append(tmp_path / "z.log", "z\n")
    assert sorted(texts(follower)) == ["y", "z"]
    append(tmp_path / "a.log", "a\n")
    append(tmp_path / "z.log", "again\n")
    assert texts(follower) == ["again"]
    assert follower.left_out == 1
    (tmp_path / "y.log").unlink()
    assert texts(follower) == ["a"]
    follower.close()


def test_unreadable_patterns_match_nothing() -> None:
    follower = Follower(["/\0/*.log", "", "/proc/self/nothing/**"])
    assert list(follower.poll()) == []


def test_closing_leaves_no_descriptor(log: Path, follower: Follower) -> None:
    before = descriptors()
    append(log, "one\n")
    texts(follower)
    assert descriptors() == before + 1
    follower.close()
    assert descriptors() == before


WRITES = st.lists(st.binary(max_size=40), max_size=20)


@settings(max_examples=200)
@given(st.lists(st.text(alphabet="ab\r\n", max_size=6).map(str.encode), max_size=12))
@example([b"a", b"b", b"\n"])
def test_hints_drop_nothing_that_holds_one(
    tmp_path_factory: pytest.TempPathFactory, writes: list[bytes]
) -> None:
    log = tmp_path_factory.mktemp("logs") / "server.log"
    plain = Follower([os.fspath(log)])
    hinted = Follower([os.fspath(log)], hints=["ab"])
    found: tuple[list[str], list[str]] = ([], [])
    for data in writes:
        append(log, data)
        for follower, pieces in zip((plain, hinted), found, strict=True):
            pieces += [segment.text for segment in follower.poll() if "ab" in segment.text]
    plain.close()
    hinted.close()
    assert found[0] == found[1]


@settings(max_examples=50)
@given(WRITES)
def test_pieces_do_not_depend_on_how_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, writes: list[bytes]
) -> None:
    log = tmp_path_factory.mktemp("logs") / "server.log"
    follower = Follower([os.fspath(log)])
    found = []
    for data in writes:
        append(log, data)
        found += [segment.text for segment in follower.poll()]
    follower.close()
    whole = b"".join(writes).replace(b"\r", b"\n").split(b"\n")
    assert found == [piece.decode("utf-8", "replace") for piece in whole[:-1] if piece]
