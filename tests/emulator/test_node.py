import ctypes
import fcntl
import os
import select
import signal
import subprocess
from pathlib import Path

import pytest

from capture_canary.native import emulated_cann_dir
from tests.emulator.child import Acl, MiB, compile_c, emulated, isolated, start

HOLD = """
from tests.emulator.child import Acl
acl = Acl()
{work}
print("ready", flush=True)
input()
"""


def _hold(environ, work: str):
    """Start a process that does some work on device 0 and keeps what it has until it is told to end."""
    child = start(HOLD.format(work=work), environ)
    assert child.stdout is not None
    line = child.stdout.readline()
    assert line == "ready\n", child.communicate()
    return child


def _ask(environ, question: str) -> int:
    child = start(f"from tests.emulator.child import Acl; acl = Acl(); print({question})", environ)
    output, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors
    return int(output)


def _kill(child) -> None:
    child.send_signal(signal.SIGKILL)
    child.communicate()


def test_processes_share_the_hbm_of_a_chip_and_a_killed_one_gives_it_back(tmp_path):
    environ = emulated(tmp_path, "hbm=64MiB,npus=2")
    holder = _hold(environ, "acl.malloc(40 << 20)")
    assert _ask(environ, "acl.free_hbm()") == 24 * MiB
    too_much = "acl.call('aclrtMalloc', __import__('ctypes').byref(__import__('ctypes').c_void_p()), 25 << 20, 0)"
    assert _ask(environ, too_much) == 207001
    assert _ask(environ, "acl.ok('aclrtSetDevice', 1) or acl.free_hbm()") == 64 * MiB
    _kill(holder)
    assert _ask(environ, too_much) == 0
    assert _ask(environ, "acl.free_hbm()") == 64 * MiB


def test_a_dead_process_that_nobody_has_reaped_holds_nothing(tmp_path):
    environ = emulated(tmp_path, "hbm=64MiB")
    holder = _hold(environ, "acl.malloc(40 << 20)")
    os.kill(holder.pid, signal.SIGKILL)
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)  # a zombie from here on
    assert _ask(environ, "acl.free_hbm()") == 64 * MiB
    holder.communicate()


def test_processes_share_the_streams_of_a_chip(tmp_path):
    environ = emulated(tmp_path)
    holder = _hold(environ, "held = [acl.stream() for _ in range(1900)]")
    streams = """next(n for n in range(2000)
        if acl.call("aclrtCreateStream", __import__("ctypes").byref(__import__("ctypes").c_void_p())))"""
    assert _ask(environ, streams) == 84
    _kill(holder)
    assert _ask(environ, streams) == 1984


def test_processes_that_race_never_get_more_than_there_is(tmp_path):
    environ = emulated(tmp_path, "hbm=1MiB")
    libraries = Path(environ["ASCEND_HOME_PATH"], "lib64")
    options = (f"-L{libraries}", "-lacl_rt", f"-Wl,-rpath-link,{libraries}")
    client = compile_c("race.c", tmp_path / "race", *options)
    holders = tmp_path / "holders"
    holders.write_bytes(bytes(4))
    arguments = [client, holders, "5000"]
    children = [
        subprocess.Popen(arguments, env=environ, text=True, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    outputs = [child.communicate(timeout=60)[0] for child in children]
    assert [child.returncode for child in children] == [0, 0, 0]
    assert sum(int(output.split()[0]) for output in outputs) > 0
    assert [int(output.split()[1]) for output in outputs] == [0, 0, 0]


def test_nobody_takes_anything_while_another_process_has_the_node(tmp_path):
    environ = emulated(tmp_path, "hbm=64MiB")
    holder = _hold(environ, "")
    with Path(environ["CAPTURE_CANARY_EMULATE_NODE"]).open("rb") as node:
        fcntl.flock(node, fcntl.LOCK_EX)
        late = start(HOLD.format(work="acl.malloc(64)"), environ)
        assert late.stdout is not None
        assert select.select([late.stdout], [], [], 0.5)[0] == []
        fcntl.flock(node, fcntl.LOCK_UN)
        assert late.stdout.readline() == "ready\n"
    _kill(holder)
    _kill(late)


def test_processes_that_are_killed_at_any_moment_leave_the_node_whole(tmp_path):
    environ = emulated(tmp_path, "hbm=64MiB")
    work = """
import ctypes
while True:
    memory, stream = acl.malloc(1 << 20), acl.stream()
    acl.ok("aclrtFree", memory)
    acl.ok("aclrtDestroyStream", stream)
"""
    for _ in range(4):
        children = [
            start(
                f"from tests.emulator.child import Acl\nacl = Acl()\nprint(1, flush=True)\n{work}",
                environ,
            )
            for _ in range(2)
        ]
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        assert 62 * MiB <= _ask(environ, "acl.free_hbm()") <= 64 * MiB
        for child in children:
            _kill(child)
    assert _ask(environ, "acl.free_hbm()") == 64 * MiB


def test_a_pid_that_was_given_again_is_another_process(tmp_path):
    environ = emulated(tmp_path, "hbm=64MiB")
    holder = _hold(environ, "acl.malloc(40 << 20)")
    node = Path(environ["CAPTURE_CANARY_EMULATE_NODE"])
    content = bytearray(node.read_bytes())
    slot = content.index(holder.pid.to_bytes(4, "little"))
    content[slot + 8] ^= 1  # the start time that the slot remembers
    node.write_bytes(content)
    assert _ask(environ, "acl.free_hbm()") == 64 * MiB
    _kill(holder)


@pytest.mark.parametrize("content", [b"x", b"x" * 1000, b"ccnode\n\0" + b"\xff" * 100])
def test_a_file_that_is_no_node_ends_the_process_with_its_name(tmp_path, content):
    environ = emulated(tmp_path)
    node = Path(environ["CAPTURE_CANARY_EMULATE_NODE"])
    node.write_bytes(content)
    child = start("from tests.emulator.child import Acl; Acl()", environ)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 2
    assert f"{node} is not an emulated node of this version: remove it" in errors
    assert node.read_bytes() == content


@pytest.mark.parametrize("make", [Path.mkdir, lambda node: node.symlink_to("/etc/passwd")])
def test_a_node_that_is_no_file_ends_the_process(tmp_path, make):
    environ = emulated(tmp_path)
    make(Path(environ["CAPTURE_CANARY_EMULATE_NODE"]))
    child = start("from tests.emulator.child import Acl; Acl()", environ)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 2
    assert environ["CAPTURE_CANARY_EMULATE_NODE"] in errors


@isolated("hbm=64MiB")
def test_a_forked_child_that_dies_gives_back_only_its_own() -> None:
    acl = Acl()
    acl.malloc(8 * MiB)
    child = os.fork()
    if child == 0:
        acl.ok("aclrtSetDevice", 0)
        acl.malloc(8 * MiB)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert acl.free_hbm() == 56 * MiB
    text = ctypes.create_string_buffer(128)
    acl.ok("aclsysGetVersionStr", b"runtime", text)
    assert text.value == b"8.5.0"


def test_npu_smi_without_a_process_needs_no_node_before(tmp_path):
    environ = emulated(tmp_path)
    tool = emulated_cann_dir() / "bin" / "npu-smi"
    done = subprocess.run([tool, "info"], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.count("No running processes found") == 8
