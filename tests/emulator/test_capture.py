import ctypes
import json
import os
import threading
from pathlib import Path

from tests.emulator.child import GLOBAL, RELAXED, THREAD_LOCAL, Acl, isolated


def _sync_copy(acl: Acl, memory: ctypes.c_void_p) -> int:
    code = acl.write(memory, b"x" * 64)
    assert acl.call("aclrtMemset", memory, 64, 0, 64) == code
    return code


def _on_another_thread(acl: Acl, work):
    found = []

    def run() -> None:
        acl.ok("aclrtSetDevice", 0)
        found.append(work())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


@isolated()
def test_what_is_captured_runs_at_each_replay_and_not_before() -> None:
    acl = Acl()
    stream, memory, other = acl.stream(), acl.malloc(64), acl.malloc(64)
    acl.write(memory, b"a" * 64)
    acl.write(other, b"." * 64)
    assert acl.status(stream) == (0, None)
    acl.begin(stream)
    assert acl.copy(other, memory, 64, stream) == 0
    acl.ok("aclrtMemsetAsync", memory, 64, ord("b"), 32, stream)
    status, under_capture = acl.status(stream)
    graph = acl.end(stream)
    assert (status, under_capture) == (1, graph.value)
    assert acl.status(stream) == (0, None)
    assert acl.read(other, 64) == b"." * 64
    for expected in (b"a" * 64, b"b" * 32 + b"a" * 32):
        acl.ok("aclmdlRIExecuteAsync", graph, stream)
        acl.ok("aclrtSynchronizeStream", stream)
        assert acl.read(other, 64) == expected
    acl.write(memory, b"c" * 64)
    acl.ok("aclmdlRIExecute", graph, -1)
    assert acl.read(other, 64) == b"c" * 64
    acl.ok("aclmdlRIDestroy", graph)


@isolated()
def test_a_synchronous_copy_is_refused_by_the_modes_of_the_context_and_of_the_thread() -> None:
    """The table of runtime's Context::IsCaptureModeSupport, for the capturing thread and for another."""
    acl = Acl()
    memory, stream = acl.malloc(64), acl.stream()
    refused = {
        (GLOBAL, GLOBAL, "own"),
        (GLOBAL, THREAD_LOCAL, "own"),
        (GLOBAL, GLOBAL, "other"),
        (THREAD_LOCAL, GLOBAL, "own"),
        (THREAD_LOCAL, THREAD_LOCAL, "own"),
    }

    def attempt(exchanged: int) -> int:
        before = acl.exchange(exchanged)
        code = _sync_copy(acl, memory)
        assert acl.exchange(before) == exchanged
        return code

    for mode in (GLOBAL, THREAD_LOCAL, RELAXED):
        acl.begin(stream, mode)
        for exchanged in (GLOBAL, THREAD_LOCAL, RELAXED):
            own = attempt(exchanged)
            other = _on_another_thread(acl, lambda exchanged=exchanged: attempt(exchanged))
            assert own == (107030 if (mode, exchanged, "own") in refused else 0)
            assert other == (107030 if (mode, exchanged, "other") in refused else 0)
        acl.ok("aclmdlRIDestroy", acl.end(stream))
        assert attempt(GLOBAL) == 0


@isolated()
def test_a_refused_copy_says_why_and_spoils_nothing() -> None:
    acl = Acl()
    memory, stream = acl.malloc(64), acl.stream()
    acl.begin(stream)
    assert acl.write(memory, b"x") == 107030
    assert "107030" in acl.message()
    assert acl.status(stream)[0] == 1
    acl.ok("aclrtSetDevice", 1)  # another device's context captures nothing
    there = acl.malloc(64)
    assert acl.write(there, b"x") == 0
    acl.ok("aclrtSetDevice", 0)
    acl.ok("aclmdlRIDestroy", acl.end(stream))
    wrong = ctypes.c_int32(3)
    acl.fails(107000, "aclmdlRICaptureThreadExchangeMode", ctypes.byref(wrong))


@isolated()
def test_a_stream_under_capture_refuses_what_would_wait_for_it() -> None:
    acl = Acl()
    stream, event, graph = acl.stream(), acl.event(), ctypes.c_void_p()
    status, elapsed = ctypes.c_int32(), ctypes.c_float()
    acl.fails(107029, "aclmdlRICaptureEnd", stream, ctypes.byref(graph))
    acl.fails(107029, "aclmdlRICaptureTaskGrpBegin", stream)
    acl.begin(stream)
    acl.fails(107027, "aclmdlRICaptureBegin", stream, GLOBAL)
    acl.fails(107027, "aclrtSynchronizeStream", stream)
    acl.fails(107027, "aclrtStreamQuery", stream, ctypes.byref(status))
    acl.fails(107027, "aclrtDestroyStream", stream)
    acl.fails(107027, "aclrtSynchronizeDevice")
    acl.ok("aclrtRecordEvent", event, stream)
    acl.fails(107028, "aclrtSynchronizeEvent", event)
    acl.fails(107028, "aclrtQueryEventStatus", event, ctypes.byref(status))
    acl.fails(107028, "aclrtQueryEventWaitStatus", event, ctypes.byref(status))
    acl.fails(107028, "aclrtEventElapsedTime", ctypes.byref(elapsed), event, event)
    under_capture = ctypes.c_void_p(acl.status(stream)[1])
    acl.fails(107026, "aclmdlRIExecuteAsync", under_capture, acl.stream())
    acl.fails(107026, "aclmdlRIDestroy", under_capture)
    graph = acl.end(stream)
    acl.ok("aclrtSynchronizeEvent", event)
    again = acl.stream()
    acl.begin(again)
    acl.fails(107027, "aclmdlRIExecuteAsync", graph, again)
    acl.ok("aclmdlRIDestroy", acl.end(again))
    acl.ok("aclmdlRIDestroy", graph)


@isolated()
def test_bad_captures_are_refused() -> None:
    acl = Acl()
    stream, default = acl.stream(), acl.made("aclrtCtxGetCurrentDefaultStream")
    acl.fails(207000, "aclmdlRICaptureBegin", default, GLOBAL)
    acl.fails(107000, "aclmdlRICaptureBegin", stream, 3)
    acl.fails(100000, "aclmdlRICaptureBegin", None, GLOBAL)
    acl.fails(100000, "aclmdlRICaptureEnd", stream, None)
    acl.fails(100000, "aclmdlRICaptureGetInfo", stream, None, None)
    acl.fails(100000, "aclmdlRIDestroy", None)


def _fork(acl: Acl):
    """A capture on one stream, and a second stream that a captured event brings in."""
    first, second, event = acl.stream(), acl.stream(), acl.event()
    acl.begin(first)
    acl.ok("aclrtRecordEvent", event, first)
    acl.ok("aclrtStreamWaitEvent", second, event)
    return first, second


@isolated()
def test_an_event_brings_a_stream_into_the_capture_and_back() -> None:
    acl = Acl()
    memory, joining = acl.malloc(64), acl.event()
    first, second = _fork(acl)
    assert acl.status(second) == (1, acl.status(first)[1])
    acl.ok("aclrtMemsetAsync", memory, 64, 5, 64, second)
    acl.ok("aclrtRecordEvent", joining, second)
    acl.ok("aclrtStreamWaitEvent", first, joining)
    acl.ok("aclrtMemsetAsync", memory, 64, 6, 32, first)
    graph = acl.end(first)
    assert acl.status(second) == (0, None)
    acl.ok("aclmdlRIExecuteAsync", graph, first)
    acl.ok("aclrtSynchronizeStream", first)
    assert acl.read(memory, 64) == b"\x06" * 32 + b"\x05" * 32


@isolated()
def test_a_stream_that_was_not_joined_fails_the_capture() -> None:
    acl = Acl()
    memory, joining, graph = acl.malloc(64), acl.event(), ctypes.c_void_p()
    first, second = _fork(acl)
    acl.fails(107025, "aclmdlRICaptureEnd", first, ctypes.byref(graph))
    assert graph.value is None
    assert (acl.status(first), acl.status(second)) == ((0, None), (0, None))
    first, second = _fork(acl)
    acl.ok("aclrtRecordEvent", joining, second)
    acl.ok("aclrtStreamWaitEvent", first, joining)
    acl.ok("aclrtMemsetAsync", memory, 64, 5, 64, second)  # after the event: not joined again
    acl.fails(107025, "aclmdlRICaptureEnd", first, ctypes.byref(graph))
    first, second = _fork(acl)
    acl.ok("aclrtRecordEvent", joining, second)  # nobody waits for it
    acl.fails(107025, "aclmdlRICaptureEnd", first, ctypes.byref(graph))
    acl.begin(first)
    acl.ok("aclmdlRIDestroy", acl.end(first))


@isolated()
def test_a_capture_ends_where_it_began() -> None:
    acl = Acl()
    graph = ctypes.c_void_p()
    first, second = _fork(acl)
    acl.fails(107036, "aclmdlRICaptureEnd", second, ctypes.byref(graph))

    def end(stream: ctypes.c_void_p) -> int:
        return acl.call("aclmdlRICaptureEnd", stream, ctypes.byref(graph))

    assert _on_another_thread(acl, lambda: end(first)) == 107038
    assert acl.status(first) == (0, None)
    third = acl.stream()
    acl.begin(third, RELAXED)
    assert _on_another_thread(acl, lambda: end(third)) == 0


@isolated()
def test_captures_may_not_depend_on_each_other_or_on_what_is_outside() -> None:
    acl = Acl()
    first, second, outside = acl.stream(), acl.stream(), acl.stream()
    captured, before, old = acl.event(), acl.event(), acl.made("aclrtCreateEvent")
    default, graph = acl.made("aclrtCtxGetCurrentDefaultStream"), ctypes.c_void_p()
    acl.ok("aclrtRecordEvent", before, outside)
    acl.begin(first)
    acl.begin(second)
    acl.fails(107024, "aclrtStreamWaitEvent", first, before)
    acl.fails(207000, "aclrtRecordEvent", old, first)
    acl.fails(207000, "aclrtStreamWaitEvent", first, old)
    acl.ok("aclrtRecordEvent", captured, first)
    acl.fails(107031, "aclrtStreamWaitEvent", default, captured)
    acl.fails(107032, "aclrtStreamWaitEvent", second, captured)
    memory = acl.malloc(64)
    assert acl.status(first)[0] == acl.status(second)[0] == 2
    acl.fails(507903, "aclrtMemsetAsync", memory, 64, 5, 64, first)
    acl.fails(507903, "aclmdlRICaptureEnd", first, ctypes.byref(graph))
    acl.fails(507903, "aclmdlRICaptureEnd", second, ctypes.byref(graph))


@isolated()
def test_an_external_event_is_recorded_at_each_replay() -> None:
    acl = Acl()
    stream, other, memory = acl.stream(), acl.stream(), acl.malloc(64)
    external = acl.made("aclrtCreateEventExWithFlag", 0x20)
    status = ctypes.c_int32()
    acl.begin(stream)
    acl.ok("aclrtMemsetAsync", memory, 64, 5, 64, stream)
    acl.ok("aclrtRecordEvent", external, stream)
    graph = acl.end(stream)
    acl.ok("aclmdlRIExecuteAsync", graph, stream)
    acl.ok("aclrtSynchronizeStream", stream)
    acl.ok("aclrtStreamWaitEvent", other, external)
    acl.ok("aclrtSynchronizeStream", other)
    acl.fails(207000, "aclrtQueryEventStatus", external, ctypes.byref(status))


@isolated("soc=a3,npus=2")
def test_graphs_use_up_the_streams_of_a_device_and_give_them_back() -> None:
    acl = Acl()
    stream, graphs, refused = acl.stream(), [], 0
    while not refused:
        refused = acl.call("aclmdlRICaptureBegin", stream, GLOBAL)
        if not refused:
            graphs.append(acl.end(stream))
    assert (refused, len(graphs)) == (207008, 1983)
    assert "1984" in acl.message()
    assert acl.status(stream) == (0, None)
    acl.fails(207008, "aclrtCreateStream", ctypes.byref(ctypes.c_void_p()))
    acl.ok("aclrtSetDevice", 1)
    acl.stream()
    acl.ok("aclrtSetDevice", 0)
    acl.ok("aclmdlRIDestroy", graphs.pop())
    acl.ok("aclrtDestroyStream", acl.stream())
    first, event = acl.stream(), acl.event()
    acl.ok("aclmdlRIDestroy", graphs.pop())
    acl.begin(stream)
    acl.ok("aclrtRecordEvent", event, stream)
    acl.fails(207008, "aclrtStreamWaitEvent", first, event)
    assert acl.status(stream)[0] == 2


@isolated("cann=9.0.0")
def test_destroy_callbacks_run_once_in_order() -> None:
    acl = Acl()
    called: list[int] = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def first(argument: int | None) -> None:
        called.append(argument or 0)

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def second(argument: int | None) -> None:
        called.append(-(argument or 0))

    stream = acl.stream()
    acl.begin(stream)
    under_capture = ctypes.c_void_p(acl.status(stream)[1])
    acl.ok("aclmdlRIDestroyRegisterCallback", under_capture, first, 1)
    graph = acl.end(stream)
    acl.ok("aclmdlRIDestroyRegisterCallback", graph, second, 2)
    acl.ok("aclmdlRIDestroyRegisterCallback", graph, first, 3)
    acl.ok("aclmdlRIDestroyUnregisterCallback", graph, second)
    acl.fails(107000, "aclmdlRIDestroyUnregisterCallback", graph, second)
    acl.ok("aclmdlRIDestroy", graph)
    assert called == [1, 3]


@isolated("cann=8.5.0")
def test_before_9_0_nobody_finds_the_destroy_callback() -> None:
    acl = Acl()
    assert not hasattr(acl.library, "aclmdlRIDestroyRegisterCallback")
    assert hasattr(acl.library, "aclmdlRIDestroy")


@isolated()
def test_a_task_group_is_replaced_task_by_task() -> None:
    acl = Acl()
    stream, updater, memory = acl.stream(), acl.stream(), acl.malloc(64)
    group, graph = ctypes.c_void_p(), ctypes.c_void_p()
    acl.begin(stream)
    acl.ok("aclrtMemsetAsync", memory, 64, 1, 64, stream)
    acl.ok("aclmdlRICaptureTaskGrpBegin", stream)
    acl.fails(107033, "aclmdlRICaptureTaskGrpBegin", stream)
    acl.ok("aclrtMemsetAsync", memory, 64, 2, 32, stream)
    acl.ok("aclrtMemsetAsync", memory, 64, 3, 16, stream)
    acl.ok("aclmdlRICaptureTaskGrpEnd", stream, ctypes.byref(group))
    acl.fails(107033, "aclmdlRICaptureTaskGrpEnd", stream, ctypes.byref(graph))
    graph = acl.end(stream)
    acl.fails(107033, "aclmdlRICaptureTaskUpdateEnd", updater)
    acl.ok("aclmdlRICaptureTaskUpdateBegin", updater, group)
    acl.ok("aclrtMemsetAsync", memory, 64, 7, 32, updater)
    acl.fails(507000, "aclmdlRICaptureTaskUpdateEnd", updater)
    acl.ok("aclmdlRICaptureTaskUpdateBegin", updater, group)
    acl.ok("aclrtMemsetAsync", memory, 64, 8, 32, updater)
    acl.ok("aclrtMemsetAsync", memory, 64, 9, 8, updater)
    acl.fails(507000, "aclrtMemsetAsync", memory, 64, 10, 8, updater)
    acl.ok("aclmdlRICaptureTaskUpdateEnd", updater)
    acl.ok("aclmdlRIExecuteAsync", graph, stream)
    acl.ok("aclrtSynchronizeStream", stream)
    assert acl.read(memory, 64) == b"\x09" * 8 + b"\x08" * 24 + b"\x01" * 32
    acl.begin(stream)
    acl.ok("aclmdlRICaptureTaskGrpBegin", stream)
    acl.fails(107033, "aclmdlRICaptureEnd", stream, ctypes.byref(graph))


@isolated()
def test_a_graph_shows_itself_as_json() -> None:
    acl = Acl()
    stream, memory = acl.stream(), acl.malloc(64)
    path = Path(os.environ["XDG_CACHE_HOME"], "graph.json")
    acl.begin(stream)
    for _ in range(3):
        acl.ok("aclrtMemsetAsync", memory, 64, 1, 64, stream)
    graph = acl.end(stream)
    acl.ok("aclmdlRIDebugJsonPrint", graph, str(path).encode(), 0)
    assert len(json.loads(path.read_text())) == 3
    acl.fails(107009, "aclmdlRIDebugJsonPrint", graph, b"/nowhere/graph.json", 0)


@isolated()
def test_many_threads_capture_and_replay_at_once() -> None:
    acl = Acl()
    failures: list[Exception] = []

    def run(value: int) -> None:
        try:
            acl.ok("aclrtSetDevice", value % 2)
            stream, memory = acl.stream(), acl.malloc(4096)
            for turn in range(30):
                acl.begin(stream, RELAXED)
                acl.ok("aclrtMemsetAsync", memory, 4096, value + turn, 4096, stream)
                graph = acl.end(stream)
                acl.ok("aclmdlRIExecuteAsync", graph, stream)
                acl.ok("aclrtSynchronizeStream", stream)
                assert acl.read(memory, 1) == bytes([value + turn])
                acl.ok("aclmdlRIDestroy", graph)
            acl.ok("aclrtDestroyStream", stream)
        except Exception as error:  # noqa: BLE001  # a thread's failure is the test's
            failures.append(error)

    threads = [threading.Thread(target=run, args=(value,)) for value in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
