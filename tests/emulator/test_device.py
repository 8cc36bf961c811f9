import ctypes
import os
import threading
from pathlib import Path

from tests.emulator.child import D2D, Acl, MiB, isolated


@isolated("npus=3,soc=a2")
def test_devices_are_counted_and_a_thread_has_to_choose_one() -> None:
    acl = Acl(device=None)
    count, device = ctypes.c_uint32(), ctypes.c_int32()
    acl.ok("aclInit", None)
    acl.ok("aclrtGetDeviceCount", ctypes.byref(count))
    assert count.value == 3
    acl.fails(107002, "aclrtGetDevice", ctypes.byref(device))
    acl.fails(107002, "aclrtMalloc", ctypes.byref(ctypes.c_void_p()), 512, 0)
    acl.fails(107001, "aclrtSetDevice", 3)
    assert "device 3 of 3" in acl.message()
    assert acl.message() == ""
    acl.ok("aclrtSetDevice", 2)
    acl.ok("aclrtGetDevice", ctypes.byref(device))
    assert device.value == 2
    acl.ok("aclrtResetDevice", 2)
    acl.fails(107002, "aclrtGetDevice", ctypes.byref(device))
    acl.ok("aclFinalize")
    acl.fails(100037, "aclFinalize")


@isolated("npus=8,soc=a2", ASCEND_RT_VISIBLE_DEVICES="1,4,x,5")
def test_visible_devices_are_read_up_to_the_first_bad_character_and_counted_anew() -> None:
    acl = Acl(device=1)
    count, chip = ctypes.c_uint32(), ctypes.c_int32()
    acl.ok("aclrtGetDeviceCount", ctypes.byref(count))
    acl.ok("aclrtGetLogicDevIdByUserDevId", 1, ctypes.byref(chip))
    assert (count.value, chip.value) == (2, 4)
    acl.fails(107001, "aclrtSetDevice", 2)


@isolated("soc=950,cann=9.1.0-beta.1,hcomm=9.0.0")
def test_names_and_versions_are_those_of_the_settings() -> None:
    acl = Acl()
    acl.library.aclrtGetSocName.restype = ctypes.c_char_p
    assert acl.library.aclrtGetSocName().startswith(b"Ascend950")
    for package, version, number in (
        (b"runtime", b"9.1.0-beta.1", 90099801),
        (b"hcomm", b"9.0.0", 90000000),
    ):
        text, value = ctypes.create_string_buffer(128), ctypes.c_int32()
        acl.ok("aclsysGetVersionStr", package, text)
        acl.ok("aclsysGetVersionNum", package, ctypes.byref(value))
        assert (text.value, value.value) == (version, number)


@isolated("hbm=64MiB")
def test_hbm_is_counted_and_runs_out() -> None:
    acl = Acl()
    assert acl.free_hbm() == 64 * MiB
    first = acl.malloc(40 * MiB)
    assert acl.free_hbm() == 24 * MiB
    acl.fails(207001, "aclrtMalloc", ctypes.byref(ctypes.c_void_p()), 25 * MiB, 0)
    small = [acl.malloc(size) for size in (1, 512, 513)]
    assert acl.free_hbm() == 24 * MiB - 4 * 512
    for pointer in [*small, first]:
        acl.ok("aclrtFree", pointer)
        acl.fails(107000, "aclrtFree", pointer)
    assert acl.free_hbm() == 64 * MiB
    acl.fails(100000, "aclrtMalloc", ctypes.byref(ctypes.c_void_p()), 0, 0)
    acl.fails(100000, "aclrtFree", None)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@isolated("hbm=1TiB")
def test_memory_that_nobody_touches_costs_nothing() -> None:
    acl = Acl()
    before = _resident()
    pointer = acl.malloc(512 << 30)
    assert acl.write(pointer, b"x" * 64) == 0
    assert _resident() - before < 4 * MiB


@isolated()
def test_copies_move_data_and_check_their_bounds() -> None:
    acl = Acl()
    one, other = acl.malloc(4096), acl.malloc(4096)
    data = os.urandom(4096)
    assert acl.write(one, data) == 0
    acl.ok("aclrtMemcpy", other, 4096, one, 4096, D2D)
    assert acl.read(other, 4096) == data
    acl.fails(107000, "aclrtMemcpy", other, 4095, one, 4096, D2D)
    acl.fails(107000, "aclrtMemcpy", other, 8192, one, 4097, D2D)
    acl.fails(100000, "aclrtMemcpy", other, 64, one, 64, 8)
    acl.fails(100000, "aclrtMemcpy", None, 64, one, 64, D2D)
    acl.ok("aclrtMemcpy", other, 0, one, 0, D2D)
    acl.ok("aclrtMemset", one, 4096, 0xAB, 16)
    assert acl.read(one, 32) == b"\xab" * 16 + data[16:32]
    acl.fails(107000, "aclrtMemset", one, 15, 0, 16)
    acl.ok("aclrtMemcpy2d", other, 64, one, 16, 16, 2, D2D)
    assert acl.read(other, 80)[64:] == data[16:32]


@isolated()
def test_a_stream_runs_its_work_in_order() -> None:
    acl = Acl()
    stream, memory = acl.stream(), acl.malloc(4096)
    for value in range(1, 200):
        acl.ok("aclrtMemsetAsync", memory, 4096, value, 4096, stream)
    acl.ok("aclrtSynchronizeStream", stream)
    assert acl.read(memory, 4096) == bytes([199]) * 4096
    acl.ok("aclrtDestroyStream", stream)


@isolated()
def test_a_stream_tells_what_it_is_and_callbacks_run_on_it() -> None:
    acl = Acl()
    stream = acl.made("aclrtCreateStreamWithConfig", 3, 2)
    priority, flags, status = ctypes.c_uint32(), ctypes.c_uint32(), ctypes.c_int32()
    acl.ok("aclrtStreamGetPriority", stream, ctypes.byref(priority))
    acl.ok("aclrtStreamGetFlags", stream, ctypes.byref(flags))
    assert (priority.value, flags.value) == (3, 2)
    go, called = threading.Event(), threading.Event()

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def callback(_: int) -> None:
        called.set()
        go.wait()

    acl.ok("aclrtLaunchHostFunc", stream, callback, None)
    called.wait()
    acl.ok("aclrtStreamQuery", stream, ctypes.byref(status))
    assert status.value == 1
    acl.fails(507046, "aclrtSynchronizeStreamWithTimeout", stream, 20)
    acl.fails(107000, "aclrtSynchronizeStreamWithTimeout", stream, 0)
    go.set()
    acl.ok("aclrtSynchronizeDevice")
    acl.ok("aclrtStreamQuery", stream, ctypes.byref(status))
    assert status.value == 0


@isolated()
def test_events_order_streams_and_tell_the_time_between() -> None:
    acl = Acl()
    first, second = acl.stream(), acl.stream()
    before, after = acl.event(), acl.event()
    status, elapsed = ctypes.c_int32(), ctypes.c_float()
    go = threading.Event()

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def block(_: int) -> None:
        go.wait()

    acl.fails(107006, "aclrtEventElapsedTime", ctypes.byref(elapsed), before, after)
    memory = acl.malloc(64)
    acl.ok("aclrtRecordEvent", before, first)
    acl.ok("aclrtLaunchHostFunc", first, block, None)
    acl.ok("aclrtMemsetAsync", memory, 64, 7, 64, first)
    acl.ok("aclrtRecordEvent", after, first)
    acl.ok("aclrtStreamWaitEvent", second, after)
    acl.ok("aclrtMemsetAsync", memory, 64, 9, 64, second)
    acl.ok("aclrtQueryEventStatus", after, ctypes.byref(status))
    assert status.value == 0
    acl.fails(507047, "aclrtSynchronizeEventWithTimeout", after, 20)
    go.set()
    acl.ok("aclrtSynchronizeStream", second)
    assert acl.read(memory, 1) == b"\x09"
    acl.ok("aclrtSynchronizeEvent", after)
    acl.ok("aclrtQueryEventStatus", after, ctypes.byref(status))
    assert status.value == 1
    acl.ok("aclrtQueryEventWaitStatus", after, ctypes.byref(status))
    assert status.value == 0
    acl.ok("aclrtEventElapsedTime", ctypes.byref(elapsed), before, after)
    assert elapsed.value > 0
    for event in (before, after):
        acl.ok("aclrtDestroyEvent", event)


@isolated()
def test_a_stream_that_waits_for_ever_is_destroyed_by_force() -> None:
    acl = Acl()
    blocked, waiting, event = acl.stream(), acl.stream(), acl.event()
    go = threading.Event()

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def block(_: int) -> None:
        go.wait()

    acl.ok("aclrtLaunchHostFunc", blocked, block, None)
    acl.ok("aclrtRecordEvent", event, blocked)
    acl.ok("aclrtStreamWaitEvent", waiting, event)
    acl.ok("aclrtDestroyStreamForce", waiting)
    acl.ok("aclrtDestroyStreamForce", blocked)
    go.set()


@isolated()
def test_a_stream_belongs_to_its_context() -> None:
    acl = Acl()
    stream, event, memory = acl.stream(), acl.event(), acl.malloc(64)
    acl.ok("aclrtSetDevice", 1)
    acl.fails(107003, "aclrtRecordEvent", event, stream)
    acl.fails(107003, "aclmdlRICaptureBegin", stream, 0)
    acl.fails(107003, "aclrtMemsetAsync", memory, 64, 0, 64, stream)
    context = acl.made("aclrtCreateContext", 1)
    acl.ok("aclrtDestroyContext", context)
    acl.fails(107002, "aclrtSetCurrentContext", context)
    acl.ok("aclrtSetDevice", 0)
    acl.ok("aclrtRecordEvent", event, stream)


@isolated("hbm=64MiB")
def test_a_reset_gives_memory_streams_and_graphs_back() -> None:
    acl = Acl()
    for _ in range(3):
        acl.malloc(40 * MiB)
        stream = acl.stream()
        acl.begin(stream)
        acl.end(stream)
        acl.begin(acl.stream())
        acl.ok("aclrtResetDevice", 0)
        acl.fails(107002, "aclrtMalloc", ctypes.byref(ctypes.c_void_p()), 512, 0)
        acl.ok("aclrtSetDevice", 0)
        assert acl.free_hbm() == 64 * MiB


@isolated("hbm=64MiB")
def test_a_forked_child_starts_with_nothing_and_sets_its_own_device() -> None:
    acl = Acl()
    memory = acl.malloc(16 * MiB)
    acl.ok("aclrtMemsetAsync", memory, 64, 7, 64, None)
    acl.ok("aclrtSynchronizeStream", None)
    child = os.fork()
    if child == 0:
        acl.fails(107002, "aclrtMalloc", ctypes.byref(ctypes.c_void_p()), 512, 0)
        acl.fails(107000, "aclrtFree", memory)
        acl.ok("aclrtSetDevice", 0)
        assert acl.free_hbm() == 48 * MiB
        mine, stream = acl.malloc(8 * MiB), acl.stream()
        acl.ok("aclrtMemsetAsync", mine, 64, 9, 64, stream)
        acl.ok("aclrtSynchronizeStream", stream)
        assert acl.read(mine, 1) == b"\x09"
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert acl.free_hbm() == 48 * MiB
    assert acl.read(memory, 1) == b"\x07"


@isolated("hbm=64MiB")
def test_addresses_and_physical_memory_are_had_apart() -> None:
    acl = Acl()

    class Location(ctypes.Structure):
        _fields_ = (("id", ctypes.c_uint32), ("type", ctypes.c_uint32))

    class Properties(ctypes.Structure):
        _fields_ = (
            ("handle_type", ctypes.c_int32),
            ("allocation_type", ctypes.c_int32),
            ("attribute", ctypes.c_int32),
            ("location", Location),
            ("reserve", ctypes.c_uint64),
        )

    properties = Properties(0, 0, 2, Location(0, 1), 0)
    address = acl.made("aclrtReserveMemAddress", 8 * MiB, 0, None, 0)
    handle = acl.made("aclrtMallocPhysical", 4 * MiB, ctypes.byref(properties), 0)
    assert acl.free_hbm() == 60 * MiB
    acl.ok("aclrtMapMem", address, 4 * MiB, 0, handle, 0)
    assert acl.write(address, b"here") == 0
    assert acl.read(address, 4) == b"here"
    acl.ok("aclrtUnmapMem", address)
    acl.ok("aclrtFreePhysical", handle)
    acl.ok("aclrtReleaseMemAddress", address)
    acl.fails(107000, "aclrtReleaseMemAddress", address)
    assert acl.free_hbm() == 64 * MiB


@isolated()
def test_pointers_tell_where_they_lie() -> None:
    acl = Acl(device=1)
    attributes = (ctypes.c_uint32 * 7)()
    device, host = acl.malloc(4096), acl.made("aclrtMallocHost", 4096)
    assert device.value is not None
    for pointer, expected in ((device.value + 100, (1, 1)), (host, (0, 0)), (id(acl), (0, 2))):
        acl.ok("aclrtPointerGetAttributes", pointer, attributes)
        assert (attributes[0], attributes[1]) == expected
    acl.fails(107000, "aclrtFreeHost", device)
    acl.ok("aclrtFreeHost", host)
    assert attributes[2] == os.sysconf("SC_PAGESIZE")


@isolated("npus=0")
def test_a_machine_without_npus_has_no_device() -> None:
    acl = Acl(device=None)
    count = ctypes.c_uint32(7)
    acl.call("aclrtGetDeviceCount", ctypes.byref(count))
    assert count.value == 0
    acl.fails(107001, "aclrtSetDevice", 0)


@isolated()
def test_a_reset_ends_a_wait_for_a_stream() -> None:
    acl = Acl()
    stream, go, called, codes = acl.stream(), threading.Event(), threading.Event(), []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def block(_: int) -> None:
        called.set()
        go.wait()

    def wait() -> None:
        acl.ok("aclrtSetDevice", 0)
        codes.append(acl.call("aclrtSynchronizeDevice"))

    acl.ok("aclrtLaunchHostFunc", stream, block, None)
    called.wait()
    waiting = threading.Thread(target=wait)
    waiting.start()
    while not codes and waiting.is_alive():
        acl.call("aclrtResetDeviceForce", 0)
        waiting.join(0.05)
    assert codes in ([107023], [0], [107002])  # aborted, or it came after the reset
    go.set()
