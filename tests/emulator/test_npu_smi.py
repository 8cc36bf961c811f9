import json
import re
import subprocess
from pathlib import Path

import pytest

from capture_canary.native import emulated_cann_dir
from tests.emulator.child import emulated, start

CASES = Path(__file__).parents[1] / "data" / "npu-smi"
CHIP = re.compile(
    r"^\| (\d+) +(\d+)? *\| (?:[0-9A-F]{4}:[0-9A-F]{2}:00\.0) +\| \d+ +0 +/ 0 +(\d+) */ (\d+) +\|$",
    re.MULTILINE,
)
PROCESS = re.compile(r"^\| (\d+) +(\d+) +\| (\d+) +\| (\S*) +\| (\d+) +\|$", re.MULTILINE)


def _npu_smi(environ, *arguments: str) -> str:
    tool = emulated_cann_dir() / "bin" / "npu-smi"
    done = subprocess.run(
        [tool, *arguments], env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout


def _holder(environ, device: int, mib: int):
    code = f"""
from tests.emulator.child import Acl
acl = Acl(device={device})
acl.malloc({mib} << 20) if {mib} else None
print("ready", flush=True)
input()
"""
    child = start(code, environ)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


@pytest.mark.parametrize("case", ["a2-idle.txt", "a3-one-npu-busy.txt"])
def test_the_patterns_here_read_what_a_node_prints(case):
    expected = json.loads((CASES / "expected.json").read_text())[case]
    text = (CASES / case).read_text()
    assert len(CHIP.findall(text)) == expected["chips"]
    assert [int(pid) for _, _, pid, _, _ in PROCESS.findall(text)] == [
        process["pid"] for process in expected["processes"]
    ]


@pytest.mark.parametrize(("soc", "npus"), [("a3", 4), ("a2", 3), ("950", 2)])
def test_the_table_shows_chips_and_who_uses_them(tmp_path, soc, npus):
    environ = emulated(tmp_path, f"soc={soc},npus={npus}")
    holders = [_holder(environ, 1, 5000), _holder(environ, 1, 0)]
    text = _npu_smi(environ, "info")
    idle = dict.fromkeys(range(npus), 3145)
    chips = CHIP.findall(text)
    assert [int(used) for _, _, used, _ in chips] == list((idle | {1: 8145}).values())
    assert {int(total) for _, _, _, total in chips} == {65536}
    place = (0, 1) if soc == "a3" else (1, 0)
    found = {
        (int(npu), int(chip), int(pid), int(mb)) for npu, chip, pid, _, mb in PROCESS.findall(text)
    }
    assert found == {(*place, holders[0].pid, 5000), (*place, holders[1].pid, 0)}
    names = {name for _, _, _, name, _ in PROCESS.findall(text)}
    assert names == {Path(f"/proc/{holders[0].pid}/comm").read_text().strip()}
    if soc == "a3":
        assert [int(phy) for _, phy, _, _ in chips] == list(range(npus))
    for holder in holders:
        holder.kill()
        holder.communicate()
    assert PROCESS.findall(_npu_smi(environ, "info")) == []


def test_lines_are_as_wide_as_on_a_node(tmp_path):
    for soc in ("a2", "a3"):
        text = _npu_smi(emulated(tmp_path, f"soc={soc}"), "info")
        assert {len(line) for line in text.splitlines()} == {98}


def test_one_chip_can_be_asked(tmp_path):
    environ = emulated(tmp_path, "hbm=1GiB,npus=4")
    assert "No process in device." in _npu_smi(
        environ, "info", "-t", "proc-mem", "-i", "1", "-c", "1"
    )
    holder = _holder(environ, 3, 512)
    text = _npu_smi(environ, "info", "-t", "proc-mem", "-i", "1", "-c", "1")
    pattern = rf"Process id:{holder.pid} Process name:\S+ +Process memory\(MB\):512"
    assert re.search(pattern, text)
    assert "Chip ID                        : 1" in text
    rates = re.findall(
        r"HBM Usage Rate\(%\) +: (\d+)", _npu_smi(environ, "info", "-t", "usages", "-i", "1")
    )
    assert rates == ["5", "55"]
    holder.kill()
    holder.communicate()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["top"],
        ["info", "-t"],
        ["info", "-t", "x", "-i", "0"],
        ["info", "-t", "usages"],
        ["info", "-t", "usages", "-i", "8"],
        ["info", "-t", "usages", "-i", "0", "-c", "2"],
        ["info", "-t", "usages", "-i", "-1"],
    ],
)
def test_what_it_does_not_know_it_refuses(tmp_path, arguments):
    tool = emulated_cann_dir() / "bin" / "npu-smi"
    done = subprocess.run(
        [tool, *arguments], env=emulated(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr
