"""The soak in small, and that it sees what it looks for; docs/reliability.md has the figures of the whole."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.soak.faults import STACKS, Fault
from bench.soak.hand import Order
from bench.soak.node import Node
from bench.soak.soak import Soak

REPOSITORY = Path(__file__).parents[2]
KEPT = ("descriptors", "threads", "children", "strays", "files")


def test_soak_in_small(tmp_path: Path):
    out = tmp_path / "out.json"
    sizes = ("--probes", "24", "--decisions", "3000", "--faulty", "0.5", "--every", "3")
    command = [sys.executable, "-m", "bench.soak", *sizes, "--out", str(out)]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads(out.read_text())
    assert (found["wrong"], found["broken"]) == ([], [])
    assert found["probes"] == sum(found["found"].values()) == 24
    assert found["decisions"] >= 3000
    assert 24 * 0.25 * 0.5 <= found["emulated_days"] <= 24 * 0.25 * 2
    assert {name: found["growth"][name] for name in KEPT} == dict.fromkeys(KEPT, 0)


def test_an_interrupted_soak_keeps_its_figures(tmp_path: Path):
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "bench.soak", "--every", "2", "--out", str(out)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL) as soak:
        end = time.monotonic() + 120
        while not out.exists() and time.monotonic() < end:
            time.sleep(0.1)
        soak.send_signal(signal.SIGTERM)
        assert soak.wait(120) == 0
    found = json.loads(out.read_text())
    assert 2 <= found["probes"] < 10_000
    assert found["probes_wanted"] == 10_000


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path, emulate=STACKS[0].emulate)
    yield made
    assert made.stop() == 0


def test_it_sees_what_is_not_as_it_should_be(node: Node):
    soak = Soak(node, seed=1, faulty=0.0)
    soak.turn()
    assert (soak.wrong, soak.broken) == ([], [])

    lie = STACKS[0]._replace(verdict="healthy")
    soak.stack = lie
    event = {"event": "probe_ended", "verdict": "degraded", "reason": "it grows", "stack": "x"}
    soak._judge(event, Fault("none"), 1.0, asked=False)  # noqa: SLF001
    soak._judge(  # noqa: SLF001
        event | {"verdict": "unknown", "reason": "rank 1 failed"},
        Fault("hangs", "in time"),
        2.0,
        asked=False,
    )
    assert len(soak.wrong) == 2
    assert any("not exported" in one for one in soak.broken)
    assert any("remembered" in one for one in soak.broken)

    soak.broken.clear()
    node.order(Order(passing=node.told.wait + 1))  # a probe that nobody expected
    node.answer()
    node.order(Order(passing=10 * 86_400.0))
    node.answer()
    node.events()
    soak._check_time(node.told.monotonic, asked=False)  # noqa: SLF001
    assert any("no probe for" in one for one in soak.broken)


def test_it_sees_what_is_left(node: Node):
    before = node.usage()
    (node.temporary / "left").touch()
    stray = subprocess.Popen(["/bin/sleep", "60"], env={**os.environ, **node.mark})
    try:
        after = node.usage()
    finally:
        stray.kill()
        stray.wait()
    assert (after.files, after.strays) == (before.files + 1, before.strays + 1)
