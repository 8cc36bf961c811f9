"""The gate's promises while others come and go: real processes on an emulated node, at moments that a seed draws."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from capture_canary.gate.watch import descends
from capture_canary.probe.base import base_environment
from tests.faults.holder import Held, Holder
from tests.faults.node import injects, nothing_left, strays
from tests.faults.prober import MARK
from tests.faults.table import GROWING
from tests.running import Running, until

ROOT = Path(__file__).parents[2]
TWO = "cann=8.5.0,soc=a3,npus=2"
TINY = ("probe.collectives=2", "probe.rounds=1", "probe.graphs=destroyed", "gate.budget=7d")


@contextmanager
def prober(folder: Path, *given: str) -> Iterator["subprocess.Popen[str]"]:
    """A prober (tests/faults/prober.py) that is ready; its log is not shown."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.prober", str(folder), TWO, *given],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert said(process) == "ready"
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]") -> str:
    """Its next line that is not of the log."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(MARK):
            return line.removeprefix(MARK).strip()
    raise AssertionError("the prober ended")


def come_and_go(holder: Holder, draw: random.Random, over: threading.Event) -> None:
    """Take and give back NPUs at random moments."""
    while not over.wait(draw.uniform(0, 0.5)):
        held = holder.holds()
        if held:
            holder.give(draw.choice(held))
        else:
            holder.take(draw.choice([0, 1]))
    holder.give_all()


def held_throughout(held: list[Held], look: list[float]) -> list[Held]:
    return [one for one in held if one.taken <= look[0] and one.giving >= look[1]]


@injects("others come and go around the gate")
@pytest.mark.parametrize(
    ("seed", "rounds"), [(1, 40), (2, 40), pytest.param(3, 1000, marks=pytest.mark.long)]
)
def test_no_arm_begins_on_an_npu_that_was_held_when_it_was_last_looked_at(
    seed: int, rounds: int, tmp_path: Path
):
    over = threading.Event()
    tiny = [one.replace(".", "__") for one in TINY]
    with nothing_left(TWO), Holder(base_environment(os.environ, TWO)) as holder:
        draw = random.Random(seed)  # noqa: S311  # when, no secret
        others = threading.Thread(target=come_and_go, args=(holder, draw, over))
        with prober(tmp_path, str(rounds), str(seed), *tiny) as process:
            others.start()
            try:
                found: dict[str, Any] = json.loads(said(process))
            finally:
                over.set()
                others.join()
    for begun, look in found["arms"]:
        assert held_throughout(holder.past, look) == [], f"the arm of {begun}"
    assert found["runs"] + found["skips"]["busy"] == rounds
    assert found["skips"].keys() == {"busy"}
    assert found["failures"].keys() <= {"yielded"}
    assert min(found["runs"], found["skips"]["busy"]) > rounds / 20
    assert found["latched"] is None


@injects("a process comes onto an NPU of a running probe")
def test_a_probe_gives_way_to_who_comes_onto_its_npus(tmp_path: Path):
    with nothing_left(TWO):
        daemon = Running(
            tmp_path, "probe.deadline=300s", emulate=TWO, fault="hang:aclmdlRICaptureEnd:2@1"
        )
        with Holder(base_environment(os.environ, TWO)) as holder:
            until(lambda: len(daemon.ranks()) == 3)  # the leader and two ranks
            holder.take(1)
            until(lambda: daemon.metric(r'probe_failures_total\{reason="yielded"\}') == 1)
            assert not daemon.ranks()
            (ended,) = [one for one in daemon.events() if one["event"] == "probe_ended"]
            assert f"it gave way: pid {holder.pid} " in str(ended["reason"])
            assert (daemon.metric("probe_device_seconds_total") or 0) > 0
            daemon.process.send_signal(signal.SIGUSR1)
            until(lambda: daemon.metric(r'probe_skips_total\{reason="busy"\}') == 1)
        assert daemon.end() == 0
        assert not [one for one in daemon.events() if one["event"] == "probing_latched_off"]


@injects("a process comes between two arms of a probe")
def test_who_comes_between_two_arms_is_seen_before_the_second(tmp_path: Path):
    with nothing_left(TWO), Holder(base_environment(os.environ, TWO)) as holder:
        with prober(tmp_path, "1", "1", "ask") as process:
            assert said(process) == "aiv"
            holder.take(0)
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
            found = json.loads(said(process))
        assert len(found["arms"]) == 1
        # What the first arm measured stands: the counts meet the law.
        assert found["report"] == ["degraded", "aicpu_resource_list"]
        assert found["failures"] == {}


def test_who_descends_from_whom():
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        assert descends(os.getpid())
        assert descends(child.pid)
        child.communicate()
        assert descends(child.pid) is None
    assert descends(1) is False
    assert descends(os.getppid()) is False


SERVER = """
import os, sys, pathlib, time
from capture_canary.probe.cann import Cann
rank, place = int(sys.argv[1]), pathlib.Path(sys.argv[2])
cann = Cann(pathlib.Path(os.environ["ASCEND_HOME_PATH"]))
cann.open(int(sys.argv[3]) + rank)
if rank == 0:
    place.with_suffix(".new").write_bytes(cann.root_info())
    place.with_suffix(".new").rename(place)
while not place.exists():
    time.sleep(0.001)
comm = cann.create_communicator(root=place.read_bytes(), rank=rank, ranks=2, buffer_mb=1)
stream, send, receive = cann.create_stream(), cann.malloc(1024), cann.malloc(1024)
cann.capture_begin(stream)
cann.all_reduce(send, receive, 256, comm, stream)
cann.destroy_graph(cann.capture_end(stream))
"""
"""A rank of a server with HCCL's own ports, which its node has but once."""


def serve(environ: dict[str, str], place: Path, first: int) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", SERVER, str(rank), str(place), str(first)],
            env=environ,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    errors = [rank.communicate(timeout=120)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], errors


@injects("servers start while one probe follows the other")
@pytest.mark.parametrize(
    ("seed", "servers"), [(1, 8), pytest.param(2, 200, marks=pytest.mark.long)]
)
def test_servers_that_start_while_probes_run_get_their_ports_and_npus(
    seed: int, servers: int, tmp_path: Path
):
    """On the probe's own NPUs, and beside them."""
    draw, over = random.Random(seed), threading.Event()  # noqa: S311  # when, no secret
    environ = base_environment(os.environ, GROWING)
    with nothing_left(GROWING):
        daemon = Running(tmp_path, "probe.interval=30d", *TINY, emulate=GROWING)

        def ask() -> None:
            while not over.wait(0.05):
                daemon.process.send_signal(signal.SIGUSR1)

        until(lambda: daemon.metric("probe_runs_total") == 1)
        asker = threading.Thread(target=ask)
        asker.start()
        try:
            for number in range(servers):
                time.sleep(draw.uniform(0, 0.3))
                serve(environ, tmp_path / f"root-{number}", draw.choice([0, 2]))
        finally:
            over.set()
            asker.join()
        assert (daemon.metric("probe_runs_total") or 0) > 1
        assert daemon.end() == 0
        assert not [one for one in daemon.events() if one["event"] == "probing_latched_off"]


def probing(daemons: set[int]) -> set[int]:
    """Return those of the daemons that have a child now which leads a probe."""
    found = set()
    for pid in strays():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if b"capture_canary.probe.worker" in words:
            found.add(parent)
    return found & daemons


@injects("two daemons on one node are asked to probe at random moments")
def test_two_daemons_never_probe_at_once(tmp_path: Path):
    draw, seen = random.Random(5), 0  # noqa: S311  # when, no secret
    daemons = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        own = ("probe.interval=30d", f"lock_file={tmp_path}/lock", *TINY)
        daemons.append(Running(tmp_path / name, *own, emulate=GROWING))
    pids = {daemon.process.pid for daemon in daemons}

    def ready() -> bool:
        for daemon in daemons:
            if daemon.metric("probe_runs_total") is None:
                return False
            daemon.process.send_signal(signal.SIGUSR1)
        return all((daemon.metric("probe_runs_total") or 0) > 0 for daemon in daemons)

    def locked() -> float:
        found = [one.metric(r'probe_skips_total\{reason="locked"\}') for one in daemons]
        return sum(count or 0 for count in found)

    try:
        until(ready)
        end = time.monotonic() + 8
        while time.monotonic() < end:
            time.sleep(draw.uniform(0, 0.02))
            for daemon in draw.sample(daemons, draw.choice([1, 2])):
                daemon.process.send_signal(signal.SIGUSR1)
            at_once = probing(pids)
            assert len(at_once) < 2
            seen += len(at_once)
        assert seen > 0
        assert locked() > 0
    finally:
        assert [daemon.end() for daemon in daemons] == [0, 0]
