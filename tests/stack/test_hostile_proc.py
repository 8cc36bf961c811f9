"""What other containers' processes show in /proc may be anything: it is bounded, printable, and never hangs a look."""

import os
import threading
import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.stack import nodes

from capture_canary.stack.cgroups import container_of
from capture_canary.stack.environ import ALLOWED, MAX_VALUE, parse
from capture_canary.stack.patience import MAX_STUCK, Patience
from capture_canary.stack.processes import Finder
from capture_canary.stack.serving import arguments, communicators_likely, serves

HEX = "0123456789abcdef"


def printable(value):
    return all(c.isprintable() for c in str(value))


def hostile():
    return st.binary(max_size=400) | st.sampled_from(
        [
            b"\x1b[2J" * 50,
            b"VLLM::" + b"A" * 5000,
            b"\xff\xfe" * 99,
            b"\0" * 5000,
            b"HCCL_OP_EXPANSION_MODE=" * 9,
        ]
    )


@given(data=hostile())
def test_any_environment(data):
    found = parse(data)
    assert set(found.values) <= ALLOWED
    assert all(printable(v) and len(v) <= MAX_VALUE for v in found.values.values())


@given(
    secret=st.text(HEX, min_size=16, max_size=32),
    name=st.text("ABCDEFGHIJ_", min_size=1, max_size=12).filter(lambda n: n not in ALLOWED),
)
def test_no_other_value_is_kept(secret, name):
    found = parse(f"{name}={secret}\0HCCL_OP_EXPANSION_MODE=AIV\0X{name}={secret}\0".encode())
    assert found.values == {"HCCL_OP_EXPANSION_MODE": "AIV"}
    assert secret not in repr(found)


def test_what_was_cut_is_not_unset():
    cut = parse(b"A=1\0HCCL_OP_EXPANSION_MO", whole=False)
    assert (cut.values, cut.complete) == ({}, False)
    assert parse(b"A=1\0HCCL_OP_EXPANSION_MODE=AI", whole=False).values == {}
    assert parse(b"A=1\0").complete
    assert not parse(b"\0" * 100).complete
    assert not parse(b"").complete
    assert parse(b"HCCL_OP_EXPANSION_MODE=AIV\0HCCL_OP_EXPANSION_MODE=HOST\0").values == {
        "HCCL_OP_EXPANSION_MODE": "AIV"
    }


@given(data=hostile())
def test_any_command_line(data):
    argv = arguments(data)
    found = serves(argv)
    assert found is None or (printable(found.role) and len(found.role) <= 120)
    assert communicators_likely(argv) in {True, False}


@given(text=st.text(max_size=300) | st.text(HEX + "/:.-_podcri", max_size=300))
def test_any_cgroup(text):
    found = container_of(text)
    assert found is None or (len(found.id) == 64 and set(found.id) <= set(HEX))


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    files=st.fixed_dictionaries(
        dict.fromkeys(["cmdline", "environ", "cgroup", "stat", "status", "maps"], hostile())
    )
)
def test_any_process(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("node")
    places = nodes.build({"processes": [{"pid": 9, "is": "worker", "npus": [1]}]}, folder)
    for name, data in files.items():
        (places.proc / "9" / name).write_bytes(data)
    found = Finder(places.proc, inspect=True).look(nodes={}, soc="a3")
    for server in found.servers:
        assert printable(server.role)
        assert len(server.role) <= 120
        assert all(printable(doubt) and len(doubt) < 200 for doubt in server.mode.doubts)


def test_a_megabyte_of_everything(tmp_path):
    places = nodes.build({"processes": [{"pid": 9, "is": "worker", "npus": [1]}]}, tmp_path)
    for name in ("environ", "cgroup", "status", "maps"):
        (places.proc / "9" / name).write_bytes(b"x" * (8 << 20))
    found = Finder(places.proc, inspect=True).look(nodes={}, soc="a3")
    assert [one.mode.source for one in found.servers] == ["unknown"]


def test_fifos_for_files_hang_nothing(tmp_path):
    places = nodes.build(
        {"processes": [{"pid": n, "is": "worker"} for n in range(9, 15)]}, tmp_path
    )
    for pid, name in enumerate(["environ", "cgroup", "stat", "status", "maps", "cmdline"], 9):
        (places.proc / str(pid) / name).unlink()
        os.mkfifo(places.proc / str(pid) / name)
    found = Finder(places.proc, inspect=True).look(nodes={}, soc="a3")
    assert {one.pid for one in found.servers} == {9, 12, 13}


def test_processes_that_end_meanwhile(tmp_path):
    places = nodes.build(
        {"processes": [{"pid": n, "is": "worker"} for n in range(9, 13)]}, tmp_path
    )
    for pid, name in enumerate(["environ", "cgroup", "stat", "cmdline"], 9):
        (places.proc / str(pid) / name).unlink()
    found = Finder(places.proc, inspect=True).look(nodes={}, soc="a3")
    assert [one.pid for one in found.servers] == [9]


def test_what_hangs_is_left_behind_and_not_asked_again():
    never, asked = threading.Event(), []

    def work(item):
        asked.append(item)
        if item % 3 == 0:
            never.wait()
        return item * 10

    patience: Patience[int] = Patience(0.02)
    begun = time.monotonic()
    results, lost = patience.each([1, 2, 3, 4, 5, 6, 7], work)
    assert (results, lost) == ({1: 10, 2: 20, 4: 40, 5: 50, 7: 70}, [3, 6])
    asked.clear()
    assert patience.each([1, 3, 4], work) == ({1: 10, 4: 40}, [3])
    assert asked == [1, 4]
    patience.each([9, 12], work)
    assert len(patience.stuck) == MAX_STUCK
    assert patience.each([1], work) == ({}, [1])
    never.set()
    while any(thread.is_alive() for thread in patience.stuck.values()):
        assert time.monotonic() < begun + 30
        for thread in patience.stuck.values():
            thread.join(0.1)
    assert patience.each([3], work) == ({3: 30}, [])
