"""A trace file may be written by anybody: nothing in it raises, costs much, or is believed against itself."""

import os
import zlib
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capture_canary.trace import TraceFile
from capture_canary.trace.identity import own_identity, parse_name
from capture_canary.trace.layout import FILE_BYTES, RecordKind

from .writing import LAYOUT, header, place, record, whole, write

OWN = own_identity()
UNHURRIED = settings(deadline=None)
STATES = {"live", "finished", "torn", "forged"}
SHORT = bytes(whole(range(1, 6)))


def look(data: bytes | bytearray) -> tuple[TraceFile, str, list[int]]:
    with TemporaryDirectory() as folder, closing(TraceFile(write(Path(folder), data))) as trace:
        seen = trace.poll() + trace.poll()
        state = trace.state
        assert state in STATES
        assert all(c.capture.seconds >= 0 and (c.capture.h2d_copies or 0) >= 0 for c in seen)
        assert len(msgspec.json.encode([trace.facts, seen])) < 1 << 22
        return trace, state, [c.capture.order for c in seen]


@UNHURRIED
@given(st.binary(max_size=6000))
def test_any_bytes(data):
    trace, state, seen = look(data)
    assert (state, seen) == ("torn", [])
    assert trace.problem


@UNHURRIED
@given(st.data())
def test_valid_file_with_bytes_changed(data):
    changed = bytearray(SHORT)
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(changed) - 1))
        changed[at] = data.draw(st.integers(0, 255))
    *_, seen = look(changed)
    assert set(seen) <= set(range(1, 6))  # a record that was touched is not believed


@UNHURRIED
@given(st.data())
def test_valid_checksums_over_any_content(data):
    """Whoever forges a file can compute checksums too."""
    content = bytearray(SHORT)
    start = data.draw(
        st.sampled_from([0, *(LAYOUT.header_bytes + i * LAYOUT.record.size for i in range(5))])
    )
    size = LAYOUT.header_bytes if start == 0 else LAYOUT.record.size
    for _ in range(data.draw(st.integers(1, 6))):
        at = start + data.draw(st.integers(0, min(size, 400) - 1))
        piece = data.draw(st.binary(min_size=1, max_size=8))[: start + size - at]
        content[at : at + len(piece)] = piece
    checksum_at = start + (LAYOUT.checksum_at if start == 0 else 0)
    content[checksum_at : checksum_at + 4] = bytes(4)
    body = content[start : start + size] if start == 0 else content[start + 4 : start + size]
    content[checksum_at : checksum_at + 4] = zlib.crc32(body).to_bytes(4, "little")
    look(content)


@UNHURRIED
@given(st.integers(0, len(SHORT)))
def test_file_that_was_cut(length):
    _, state, seen = look(SHORT[:length])
    records = max(0, length - LAYOUT.header_bytes) // LAYOUT.record.size
    assert seen == list(range(1, records + 1))
    assert (state == "torn") == (length < LAYOUT.header_bytes)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"magic": b"ELF\x7f...."}, "torn"),
        ({"byte_order": 7}, "torn"),
        ({"version": 2}, "torn"),
        ({"header_bytes": 0}, "forged"),
        ({"record_bytes": 1}, "forged"),
        ({"capacity": 1 << 31}, "forged"),
        ({"pid": OWN.pid + 1}, "forged"),
        ({"pid": 0}, "forged"),
        ({"pid_namespace": 5}, "forged"),
        ({"start_time": OWN.start_time + 1}, "forged"),
        ({"boot_id": b"../../../etc/passwd"}, "forged"),
        ({"boot_id": b"00000000-0000-0000-0000-000000000000"}, "forged"),
        ({"mode_state": 4}, "forged"),
        ({"mode": b'\x1b[2J"><script>\xff'}, "live"),
    ],
)
def test_header_that_lies(changes, state):
    data = bytearray(SHORT)
    data[: LAYOUT.header_bytes] = header(OWN, **changes)
    trace, found, seen = look(data)
    assert found == state
    assert bool(trace.problem) == (state != "live")
    assert seen == ([1, 2, 3, 4, 5] if state == "live" else [])
    if trace.facts is not None and trace.facts.mode is not None:
        assert trace.facts.mode.isprintable()


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": 0},
        {"kind": 9},
        {"flags": 1 << 15},
        {"sequence": 3},
        {"sequence": 0},
        {"order": 0},
        {"begin_ns": 4000},
        {"copies": 0},
        {"copy_bytes": 0},
        {"copies": 1 << 60},
        {"device": -5},
        {"device": 1 << 20},
        {"collectives": (0,) * 15 + (1,)},
        {"lost": 1 << 63},
    ],
)
def test_record_that_lies(changes):
    data = bytearray(SHORT)
    place(data, 2, record(2, **changes))
    trace, state, _ = look(data)
    assert state == "forged"
    assert trace.problem


def test_sequence_numbers_near_the_end_of_numbers():
    data = whole(range(0))
    last = (1 << 64) - 1
    place(data, last, record(last))
    trace, _, seen = look(data)
    assert seen == [last]
    assert trace.lost == last - 1


def test_file_above_the_cap():
    assert look(whole(range(1, 3)).ljust(FILE_BYTES + 1, b"\0"))[1] == "forged"


def test_name_that_is_no_traces(tmp_path):
    for name in (
        "x.trace",
        OWN.file_name + "x",
        f"../{OWN.file_name}",
        OWN.file_name.replace("-", "_"),
    ):
        assert parse_name(name) is None
    path = tmp_path / "x.trace"
    path.write_bytes(SHORT)
    with closing(TraceFile(path)) as trace:
        assert trace.poll() == []
        assert trace.state == "forged"


@pytest.mark.parametrize("kind", ["link", "folder", "missing"])
def test_what_is_no_file(tmp_path, kind):
    path = tmp_path / OWN.file_name
    if kind == "link":
        path.symlink_to("/etc/hostname")
    elif kind == "folder":
        path.mkdir()
    if kind == "folder":
        with closing(TraceFile(path)) as trace:
            assert trace.poll() == []
            assert trace.state == "forged"
    else:
        with pytest.raises(OSError, match=r"symbolic links|No such file"):
            TraceFile(path)


def test_fifo_does_not_block(tmp_path):
    path = tmp_path / OWN.file_name
    os.mkfifo(path)
    with closing(TraceFile(path)) as trace:
        assert trace.poll() == []
        assert trace.state == "forged"


def test_file_that_changes_into_another(tmp_path):
    path = write(tmp_path, SHORT)
    with closing(TraceFile(path)) as trace:
        assert len(trace.poll()) == 5
        for content in (b"", b"x" * 5000, bytes(FILE_BYTES * 2), SHORT[:100]):
            path.write_bytes(content)
            assert trace.poll() == []
            assert trace.problem


def test_captures_that_never_end_stay_bounded():
    data = whole(range(0))
    for sequence in range(1, LAYOUT.record_capacity + 1):
        place(
            data,
            sequence,
            record(sequence, kind=RecordKind.BEGIN, end_ns=0, copies=0, copy_bytes=0),
        )
    trace, _, seen = look(data)
    assert seen == []
    assert 0 < len(trace.open_captures) <= 16
