"""The emulated npu-smi, and the gate on an emulated node: what is held is seen, what is let go is free."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from capture_canary import emulate
from capture_canary.gate.decide import decide
from capture_canary.gate.model import Rules, Snapshot
from capture_canary.gate.release import released
from capture_canary.stack.npu_smi import NpuSmi

HOLD = """
import ctypes, sys
acl = ctypes.CDLL("libascendcl.so")
memory = ctypes.c_void_p()
for code in (
    acl.aclInit(None),
    acl.aclrtSetDevice(2),
    acl.aclrtMalloc(ctypes.byref(memory), ctypes.c_size_t(900 << 20), 0),
):
    assert code == 0, code
print("held", flush=True)
sys.stdin.read()
"""


def environment(folder: Path, settings: str) -> dict[str, str]:
    base = {
        "PATH": os.environ["PATH"],
        "HOME": os.fspath(folder),
        "CAPTURE_CANARY_EMULATE_NODE": os.fspath(folder / "node"),
    }
    return base | emulate.environment(emulate.parse(settings), base)


def npu_smi(environ: Mapping[str, str]) -> NpuSmi:
    return NpuSmi(os.fspath(Path(environ["ASCEND_HOME_PATH"], "bin", "npu-smi")), env=environ)


@contextmanager
def server(environ: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", HOLD],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    ("settings", "chips", "hbm"),
    [
        ("soc=a2", 8, 65536),
        ("soc=a3", 16, 65536),
        ("soc=a3,npus=5,hbm=32GiB", 5, 32768),
        ("soc=950,npus=2,hbm=128GiB", 2, 131072),
    ],
)
def test_reads_an_idle_emulated_node(tmp_path: Path, settings: str, chips: int, hbm: int) -> None:
    npus = npu_smi(environment(tmp_path, settings)).read()
    assert [c.phy_id for c in npus.chips] == list(range(chips))
    assert {c.hbm_total_mb for c in npus.chips} == {hbm}
    assert {c.processes for c in npus.chips} == {0}
    assert npus.unknown_lines == 0
    decision = decide(Rules(), Snapshot(emulated=True, npus=npus, soc="a3", load=0.0))
    assert decision.devices == (0, 1)


def test_a_server_is_seen_left_alone_and_let_go(tmp_path: Path) -> None:
    environ = environment(tmp_path, "soc=a3,npus=4")
    smi = npu_smi(environ)
    before = smi.read()
    facts = Snapshot(emulated=True, npus=before, soc="a3", load=0.0)
    with server(environ) as process:
        held = smi.read()
        (shown,) = held.processes
        assert (shown.phy_id, shown.pid) == (2, process.pid)
        assert shown.memory_mb is not None
        assert shown.memory_mb >= 900
        assert decide(Rules(), replace(facts, npus=held)).devices == (0, 1)
        refusal = decide(Rules(devices=4), replace(facts, npus=held))
        assert refusal.reason == "busy"
        assert str(process.pid) in refusal.sentence
        ours = released(before, held, {2, 3}, {process.pid}, same_pids=True)
        assert not ours.ok
    assert released(before, smi.read(), {2, 3}, {process.pid}, same_pids=True).ok
