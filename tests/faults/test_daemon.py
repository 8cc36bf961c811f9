"""Faults that the daemon itself meets, as a process: it lives, or ends in good order, and nothing is left."""

import fcntl
import os
import random
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from capture_canary.spawn import reap_adopted
from capture_canary.store import Store
from tests.faults import machine, node
from tests.faults.node import injects, strays
from tests.faults.table import ANY_MOMENT, GROWING, LOOKING, PHASES, SIGNALS
from tests.running import PATIENCE, Running, children, until

nothing_left = partial(node.nothing_left, adopted=True)
CROWD = 1000
ROOM = 12 << 20
"""Bytes: a probe takes some 20 MB."""
RANKS = 3
"""Processes of a probe under way: two ranks and who leads them."""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def begin(*settings: str, folder: Path = tmp_path, **options: Any) -> Running:
        running.append(Running(folder, *settings, emulate=GROWING, **options))
        return running[-1]

    yield begin
    for one in running:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def knows(daemon: Running) -> None:
    """Hold that it comes to its verdict, if it must be asked again."""
    until(lambda: daemon.metric("probe_runs_total") is not None)
    before = daemon.metric("probe_runs_total") or 0
    if not daemon.verdict("degraded"):
        daemon.process.send_signal(signal.SIGUSR1)
        until(lambda: daemon.verdict("degraded"))
        assert (daemon.metric("probe_runs_total") or 0) > before


def stuck(daemon: Running) -> bool:
    """Whether all processes of a probe are there, and none gets on."""
    pids = daemon.ranks()
    try:
        before = machine.ticks(pids)
        time.sleep(0.3)
        return len(pids) == RANKS and machine.ticks(daemon.ranks()) == before
    except OSError:
        return False


@injects(*(f"{signals}, a probe being in {phase}" for phase in PHASES for signals in SIGNALS))
@pytest.mark.parametrize("fault", PHASES.values(), ids=PHASES.keys())
@pytest.mark.parametrize("signals", SIGNALS)
def test_signals_at_every_phase(
    signals: str, fault: str, start: Callable[..., Running], tmp_path: Path
):
    with nothing_left(GROWING):
        stops = "STOP" in signals
        daemon = start(f"probe.deadline={5 if stops else 60}s", "gate.settle=1s", fault=fault)
        until(lambda: stuck(daemon))
        if stops:
            daemon.process.send_signal(signal.SIGSTOP)
            time.sleep(1.0)
            daemon.process.send_signal(signal.SIGCONT)
            until(lambda: daemon.metric(r'probe_failures_total\{reason="timeout"\}') == 1)
            assert daemon.verdict("unknown")
            assert daemon.end() == 0
        elif signals == "SIGTERM":
            assert daemon.end() == 0
            assert daemon.events()[-1]["event"] == "stopped"
        else:
            assert daemon.end(signal.SIGKILL) == -signal.SIGKILL
            until(lambda: not daemon.ranks())
            reap_adopted()  # orphans come here where an earlier test probed in this process
        assert not daemon.ranks()
        again = start()
        knows(again)
        assert again.end() == 0
        store = Store(tmp_path / "state")
        verdicts = [probe.verdict for probe in store.probes()]
        assert verdicts == ["degraded"] + ["unknown"] * stops
        store.close()


def kill(daemon: Running, signals: str) -> bool:
    """Send it signals; whether it goes on."""
    if "STOP" in signals:
        daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(1.0)
        daemon.process.send_signal(signal.SIGCONT)
        return True
    if signals == "SIGTERM":
        assert daemon.end() == 0
    else:
        assert daemon.end(signal.SIGKILL) == -signal.SIGKILL
    return False


def gone() -> bool:
    """Whether no process of a daemon is left; orphans come here where an earlier test probed in this process."""
    reap_adopted()
    return not strays()


def looking(daemon: Running) -> bool:
    """Whether its npu-smi runs."""
    try:
        found = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children(daemon.process.pid)]
    except OSError:  # one ended meanwhile
        return False
    return any(b"npu-smi" in one for one in found)


@injects(*(f"{signals}, the gate looking at the NPUs" for signals in LOOKING))
@pytest.mark.parametrize("signals", LOOKING)
def test_signals_while_the_gate_looks(signals: str, start: Callable[..., Running], tmp_path: Path):
    with nothing_left(GROWING):
        daemon = start()
        knows(daemon)
        with Path(os.environ["CAPTURE_CANARY_EMULATE_NODE"]).open("rb") as locked:
            fcntl.flock(locked, fcntl.LOCK_EX)
            daemon.process.send_signal(signal.SIGUSR1)
            until(lambda: looking(daemon))
            goes_on = kill(daemon, signals)
        until(gone if not goes_on else lambda: daemon.metric("probe_runs_total") == 2)
        if not goes_on:
            daemon = start()
            daemon.probe_again()
        assert daemon.end() == 0
        store = Store(tmp_path / "state")
        assert {probe.verdict for probe in store.probes()} == {"degraded"}
        assert [skip.reason for skip in store.skips()] == ["npus_unknown"] * (signals == "SIGTERM")
        store.close()


@injects(*(f"{signals} at random moments" for signals in ANY_MOMENT))
@pytest.mark.parametrize("moments", [4, pytest.param(50, marks=pytest.mark.long)])
@pytest.mark.parametrize("signals", ANY_MOMENT)
def test_signals_at_random_moments(
    signals: str, moments: int, start: Callable[..., Running], tmp_path: Path
):
    draw = random.Random(signals)  # noqa: S311  # when, no secret
    with nothing_left(GROWING):
        daemon = start("probe.deadline=60s")
        knows(daemon)
        begin = time.monotonic()
        daemon.probe_again()
        took = time.monotonic() - begin
        for _ in range(moments):
            daemon.process.send_signal(signal.SIGUSR1)
            time.sleep(draw.uniform(0, 1.2 * took))
            if not kill(daemon, signals):
                until(gone)
                daemon = start("probe.deadline=60s")
            daemon.probe_again()
        assert daemon.end() == 0
        store = Store(tmp_path / "state")
        assert [probe.reason for probe in store.probes() if probe.verdict != "degraded"] == []
        store.close()


@injects("two daemons with one state folder")
def test_two_daemons(start: Callable[..., Running]):
    with nothing_left(GROWING):
        first = start()
        until(lambda: first.metric("probe_runs_total") is not None)
        second = start()
        assert second.process.wait(PATIENCE) == 1
        assert "another daemon" in second.log.read_text()
        knows(first)
        assert first.end() == 0


@injects("two daemons with one lock")
def test_two_daemons_with_one_lock(start: Callable[..., Running], tmp_path: Path):
    with nothing_left(GROWING):
        first = start("probe.deadline=60s", fault=PHASES["a capture"])
        until(lambda: stuck(first))
        folder = tmp_path / "second"
        folder.mkdir()
        second = start(f"lock_file={tmp_path}/lock", folder=folder)
        until(lambda: second.metric(r'probe_skips_total\{reason="locked"\}') == 1)
        assert second.metric("probe_runs_total") == 0
        assert first.end() == 0
        knows(second)
        assert second.end() == 0


@injects("its port is taken")
def test_port_taken(start: Callable[..., Running]):
    with nothing_left(GROWING), socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        daemon = start(port=other.getsockname()[1])
        assert daemon.process.wait(PATIENCE) == 1
        assert "cannot listen" in daemon.log.read_text()


@injects("the memory limit of the container is reached")
def test_memory_limit(start: Callable[..., Running]):
    with nothing_left(GROWING), machine.memory_group() as group:
        with group.joined():
            daemon = start("probe.interval=1h")
        knows(daemon)
        group.room(ROOM)
        daemon.process.send_signal(signal.SIGUSR1)
        until(lambda: daemon.verdict("unknown"))
        assert daemon.process.poll() is None
        group.room(1 << 30)
        knows(daemon)
        assert daemon.end() == 0


def spare_descriptors(pid: int, spare: int) -> None:
    """Let a process open so many files more, and no further one."""
    used = {int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()}
    for _ in range(
        20
    ):  # what is opened for a moment only, as by a look at other processes, is none of them
        time.sleep(0.05)
        used &= {int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()}
    free = (number for number in count() if number not in used)
    hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (next(islice(free, spare, None)), hard))


def said_of_a_probe(daemon: Running) -> dict[str, object]:
    """Have it probe; return the event that says what came of it."""
    seen = len(daemon.events())
    daemon.process.send_signal(signal.SIGUSR1)
    kinds = {"probe_ended", "probe_skipped", "probe_failed"}
    return until(lambda: [one for one in daemon.events()[seen:] if one["event"] in kinds])[0]


def counted(daemon: Running) -> float:
    """Probes that came to no verdict, and those that were not made."""
    names = [
        *(rf'probe_failures_total\{{reason="{reason}"\}}' for reason in ("start", "other")),
        *(rf'probe_skips_total\{{reason="{reason}"\}}' for reason in ("locked", "npus_unknown")),
    ]
    return sum(daemon.metric(name) or 0 for name in names)


@injects("the daemon has no descriptor left")
def test_no_descriptors(start: Callable[..., Running], tmp_path: Path):
    with nothing_left(GROWING):
        daemon = start()
        knows(daemon)
        before = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
        counts = counted(daemon)
        for spare in range(4):  # the lock, npu-smi, the start of a child: each finds none left
            spare_descriptors(daemon.process.pid, spare)
            said = said_of_a_probe(daemon)
            assert said.get("verdict") in {None, "unknown"}, said
            why = [said.get(name) for name in ("why", "reason", "exception")]
            assert "Too many open files" in str(why), said
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, before)
        until(lambda: counted(daemon) == counts + 4)
        daemon.probe_again()
        assert daemon.verdict("degraded")
        until(lambda: daemon.metric("history_in_memory") == 0)
        assert daemon.end() == 0
        store = Store(tmp_path / "state")
        assert [probe.verdict for probe in store.probes()][:1] == ["degraded"]
        assert {change.verdict for change in store.present()} == {"degraded"}
        store.close()


@injects("the configuration is replaced by garbage")
def test_garbage_for_settings(start: Callable[..., Running], tmp_path: Path):
    config = tmp_path / "config.yaml"
    config.write_text("probe: {interval: 6h}\n")
    with nothing_left(GROWING):
        daemon = start(config=config)
        knows(daemon)
        for junk in (os.urandom(4096), b"probe: {interval: never}\n", b"a: &a [*a]\n"):
            config.write_bytes(junk)
            daemon.process.send_signal(signal.SIGHUP)
            until(lambda: daemon.metric("config_last_reload_successful") == 0)
        config.write_text("probe: {interval: 5h}\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: daemon.metric("config_last_reload_successful") == 1)
        knows(daemon)
        assert daemon.end() == 0


@injects("1,000 idle connections")
def test_idle_connections(start: Callable[..., Running]):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    try:
        with nothing_left(GROWING):
            daemon = start()
            until(lambda: daemon.metric("probe_runs_total") is not None)
            with ExitStack() as crowd:
                for _ in range(CROWD):
                    crowd.enter_context(
                        socket.create_connection(("127.0.0.1", daemon.port), timeout=30)
                    )
                knows(daemon)
            assert daemon.end() == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@injects("Prometheus reads slowly")
def test_slow_scrapers(start: Callable[..., Running]):
    with nothing_left(GROWING):
        daemon = start()
        until(lambda: daemon.metric("probe_runs_total") is not None)
        with ExitStack() as readers:
            for _ in range(20):
                client = readers.enter_context(socket.socket())
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
                client.settimeout(30)
                client.connect(("127.0.0.1", daemon.port))
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 10)
                client.recv(1)
            knows(daemon)
        assert daemon.end() == 0


@injects("the disk is full", "the disk is read-only")
@pytest.mark.parametrize("fault", ["full", "read-only"])
def test_disk(fault: str, start: Callable[..., Running], tmp_path: Path):
    state = tmp_path / "state"
    state.mkdir()
    with nothing_left(GROWING), machine.disk(state):
        daemon = start("paused=true")
        until(lambda: daemon.metric("history_in_memory") == 0)
        assert daemon.end() == 0
        junk = machine.fill(state) if fault == "full" else None
        if junk is None:
            machine.read_only(state, on=True)
        daemon = start()
        knows(daemon)
        until(lambda: daemon.metric("history_in_memory") == 1)
        if junk is None:
            machine.read_only(state, on=False)
        else:
            junk.unlink()
        assert daemon.end() == 0
        store = Store(state)
        assert [probe.verdict for probe in store.probes()][:1] == ["degraded"]
        store.close()


@injects("the disk is slow")
def test_slow_disk(start: Callable[..., Running], tmp_path: Path):
    state = tmp_path / "state"
    environ = machine.slow_disk(state, tmp_path, milliseconds=100)
    with nothing_left(GROWING):
        daemon = start(environ=environ)
        knows(daemon)
        assert daemon.metric("history_in_memory") == 0
        assert daemon.end() == 0
        store = Store(state)
        assert [probe.verdict for probe in store.probes()] == ["degraded"]
        store.close()


@injects("the disk stands still")
def test_disk_that_stands_still(start: Callable[..., Running], tmp_path: Path):
    state = tmp_path / "state"
    environ = machine.slow_disk(state, tmp_path, milliseconds=0)
    with nothing_left(GROWING):
        daemon = start(environ=environ)
        knows(daemon)
        with machine.stalled(state) as waiting:
            daemon.process.send_signal(signal.SIGUSR1)
            until(waiting.exists)
            assert daemon.verdict("degraded")
            assert all(daemon.metric("probe_runs_total") == 1 for _ in range(20))
            assert not daemon.ranks()  # no NPU is held for the disk's sake
        until(lambda: daemon.metric("probe_runs_total") == 2)
        assert daemon.verdict("degraded")
        assert daemon.end() == 0
        store = Store(state)
        assert [probe.verdict for probe in store.probes()] == ["degraded"] * 2
        store.close()
