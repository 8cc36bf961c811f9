"""Following a trace: what is new, once each, in order, whatever was overwritten or is missing."""

from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from capture_canary.trace import TraceFile, own_trace, tracer_loaded
from capture_canary.trace.identity import own_identity
from capture_canary.trace.layout import RecordKind

from .writing import LAYOUT, place, record, slot_at, whole, write

DEAD = msgspec.structs.replace(own_identity(), start_time=1)


def orders(trace):
    return [seen.capture.order for seen in trace.poll()]


@pytest.fixture
def follow(tmp_path):
    opened = []

    def opening(data, process=None):
        trace = TraceFile(write(tmp_path, data, process))
        opened.append(trace)
        return trace

    yield opening
    for trace in opened:
        trace.close()


def test_each_capture_once(follow):
    data = whole(range(1, 4))
    trace = follow(data)
    assert orders(trace) == [1, 2, 3]
    assert orders(trace) == []
    place(data, 4, record(4))
    trace.path.write_bytes(data)
    assert orders(trace) == [4]
    assert (trace.state, trace.problem, trace.lost) == ("live", None, 0)
    assert trace.eager.h2d_copies == 7


def test_values_of_a_capture(follow):
    (seen,) = follow(whole(range(1, 2))).poll()
    assert (seen.capture.h2d_copies, seen.capture.h2d_bytes) == (3, 300)
    assert (seen.capture.seconds, seen.capture.copy_seconds) == (2e-6, 5e-7)
    assert seen.capture.collectives == {"AllReduce": 1}
    assert seen.communicators == {1: 1}


@pytest.mark.parametrize("step", [50, 64, 65, 1000, LAYOUT.record_capacity])
def test_following_round_the_ring(follow, step):
    trace, seen = follow(whole(range(0))), []
    with trace.path.open("r+b", buffering=0) as file:
        for first in range(1, 2 * LAYOUT.record_capacity, step):
            for sequence in range(first, first + step):
                file.seek(slot_at(sequence))
                file.write(record(sequence))
            seen += orders(trace)
    assert seen == list(range(1, seen[-1] + 1))
    assert (trace.lost, trace.problem) == (0, None)


@pytest.mark.parametrize("ahead", [1, 2, 100, LAYOUT.record_capacity, 10**9])
def test_what_was_overwritten_is_counted_as_lost(follow, ahead):
    trace = follow(whole(range(1, 11)))
    assert len(orders(trace)) == 10
    last = 10 + LAYOUT.record_capacity + ahead
    trace.path.write_bytes(whole(range(last - LAYOUT.record_capacity + 1, last + 1)))
    assert orders(trace) == list(range(last - LAYOUT.record_capacity + 1, last + 1))
    assert trace.lost == ahead


def test_record_that_arrives_late_is_waited_for(follow):
    data = whole(range(1, 3))
    place(data, 4, record(4))
    trace = follow(data)
    assert orders(trace) == [1, 2, 4]
    place(data, 3, record(3))
    trace.path.write_bytes(data)
    assert orders(trace) == [3]
    assert trace.lost == 0


def test_record_that_never_arrives_is_given_up(follow):
    data = whole(range(1, 3))
    for sequence in range(4, 200):
        place(data, sequence, record(sequence))
    trace = follow(data)
    assert orders(trace) == [1, 2, *range(4, 200)]
    assert trace.lost == 1


def test_record_written_half_is_read_later(follow):
    data = whole(range(1, 3))
    half = record(3)[: LAYOUT.record.size // 2]
    place(data, 3, half.ljust(LAYOUT.record.size, b"\0"))
    trace = follow(data)
    assert orders(trace) == [1, 2]
    assert "checksum" in trace.problem
    place(data, 3, record(3))
    trace.path.write_bytes(data)
    assert orders(trace) == [3]
    assert (trace.state, trace.problem) == ("live", None)


def test_capture_in_progress(follow):
    data = whole(range(0))
    place(data, 1, record(1, kind=RecordKind.BEGIN, order=1, end_ns=0, copies=0, copy_bytes=0))
    trace = follow(data)
    assert trace.poll() == []
    assert list(trace.open_captures) == [1]
    place(data, 2, record(2, order=1))
    trace.path.write_bytes(data)
    assert orders(trace) == [1]
    assert trace.open_captures == {}


def test_process_that_ended(follow):
    trace = follow(whole(range(1, 3), DEAD), DEAD)
    assert orders(trace) == [1, 2]
    assert trace.state == "finished"


def test_process_that_said_it_ends(follow):
    data = whole(range(1, 2))
    place(data, 2, record(2, kind=RecordKind.EXIT))
    trace = follow(data)
    trace.poll()
    assert trace.state == "finished"


def test_process_of_another_boot_or_namespace(follow):
    reboot = msgspec.structs.replace(own_identity(), boot_id="00000000-1111-2222-3333-444444444444")
    elsewhere = msgspec.structs.replace(own_identity(), pid_namespace=7)
    for process, state in ((reboot, "finished"), (elsewhere, "live")):
        trace = follow(whole(range(1, 2), process), process)
        trace.poll()
        assert trace.state == state


def test_file_that_made_way_is_finished(follow):
    trace = follow(whole(range(1, 3)))
    trace.path.unlink()
    assert orders(trace) == [1, 2]
    assert trace.state == "finished"


def test_untraced_process_knows_it(tmp_path):
    assert not tracer_loaded()
    assert own_trace(tmp_path) is None
    write(tmp_path, whole(range(1, 2)))
    trace = own_trace(tmp_path)
    assert trace is not None
    with closing(trace):
        assert orders(trace) == [1]


def test_open_files_are_closed(tmp_path):
    path = write(tmp_path, whole(range(1, 2)))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(10):
        with closing(TraceFile(path)) as trace:
            trace.poll()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
