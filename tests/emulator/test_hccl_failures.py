"""What goes wrong between ranks ends in CANN's codes, in time, with nothing left behind."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.emulator.conftest import Run
from tests.emulator.hccl_client import AICPU_EXCEPTION, E_REMOTE, E_TIMEOUT, E_UNAVAIL, Group
from tests.emulator.hccl_failures import (
    destroyed_replay,
    hbm,
    join_only,
    leave_early,
    mismatch,
    refused,
)

Start = Callable[..., Group]
MB = 1 << 20


def test_a_missing_rank_times_out(start: Start) -> None:
    begin = time.monotonic()
    group = start(join_only, 3, start=2, env={"HCCL_CONNECT_TIMEOUT": "1"})
    for answer in group.answers():
        assert answer["code"] == E_TIMEOUT
        assert "EI0006" in answer["message"]
    assert time.monotonic() - begin >= 1


def test_a_rank_missing_from_a_collective_times_out(run: Run) -> None:
    answers = run(leave_early, 2, options={"how": "idle"}, env={"HCCL_EXEC_TIMEOUT": "1"})
    assert answers[0]["code"] == AICPU_EXCEPTION
    assert answers[0]["async"] == answers[0]["again"] == E_TIMEOUT
    assert answers[0]["seconds"] >= 0.5


def test_a_rank_that_leaves_is_noticed(run: Run) -> None:
    answer = run(leave_early, 2, options={"how": "leave"})[0]
    assert (answer["code"], answer["async"], answer["again"]) == (
        AICPU_EXCEPTION,
        E_REMOTE,
        E_REMOTE,
    )


def test_a_killed_rank_is_noticed(start: Start) -> None:
    group = start(leave_early, 2, options={"how": "kill"})
    survivor, victim = group.processes
    group.processes = [survivor]
    (answer,) = group.answers()
    assert victim.wait(10) == -9
    victim.communicate()
    assert (answer["code"], answer["async"]) == (AICPU_EXCEPTION, E_REMOTE)
    assert answer["seconds"] < 30


def test_different_collectives_do_not_mix_their_data(run: Run) -> None:
    assert run(mismatch, 2) == [AICPU_EXCEPTION] * 2


def test_a_graph_outlives_its_communicator_harmlessly(run: Run) -> None:
    assert run(destroyed_replay, 2) == [AICPU_EXCEPTION] * 2


def test_bad_arguments(run: Run) -> None:
    for answer in run(refused, 2):
        assert answer == {
            "no buffer": 2,
            "no communicator": 2,
            "data type": 5,
            "reduction": 5,
            "reduced type": 5,
            "root": 1,
            "peer": 1,
            "count": 1,
            "rank table": 5,
            "root info": 1,
            "destroyed twice": 2,
        }


@contextmanager
def taken(ports: range) -> Iterator[None]:
    """Somebody else listens on these ports of every address."""
    with ExitStack() as stack:
        for port in ports:
            s = stack.enter_context(socket.socket())
            s.bind(("0.0.0.0", port))  # noqa: S104 every address is the point
            s.listen()
        yield


def is_free(ports: range) -> bool:
    try:
        with taken(ports):
            return True
    except OSError:
        return False


def free_range(count: int) -> range:
    """Ports that nobody uses, away from HCCL's defaults: other tests run at the same time."""
    start = 21_000 + os.getpid() % 100 * 100
    ranges = (range(first, first + count) for first in range(start, 60_000, count))
    return next(ports for ports in ranges if is_free(ports))


def join_with(run: Run, **env: str) -> Any:
    return run(join_only, 1, env=env)[0]


@pytest.mark.parametrize(
    ("variable", "function", "code"),
    [
        ("HCCL_HOST_SOCKET_PORT_RANGE", "HcclGetRootInfo", "EI0019"),
        ("HCCL_NPU_SOCKET_PORT_RANGE", "HcclCommInitRootInfo", "EI0020"),
    ],
)
def test_ports_that_are_taken(run: Run, variable: str, function: str, code: str) -> None:
    ports = free_range(3)
    spec = f"{ports[0]}-{ports[-1]}"
    with taken(ports):
        answer = join_with(run, **{variable: spec})
        assert (answer["function"], answer["code"]) == (function, E_UNAVAIL)
        assert code in answer["message"]
        assert str(ports[0]) in answer["message"]
        assert join_with(run, **{variable: "auto"})["ranks"] == 1
    with taken(ports[:2]):
        assert join_with(run, **{variable: spec})["ranks"] == 1


def test_the_base_port_is_for_device_0(run: Run) -> None:
    (port,) = free_range(1)
    assert f"_{port}_" in join_with(run, HCCL_IF_BASE_PORT=str(port))["name"]
    with taken(range(port, port + 1)):
        assert join_with(run, HCCL_IF_BASE_PORT=str(port))["code"] == E_UNAVAIL


def test_a_second_process_on_a_chip_needs_ports_of_its_own(start: Start, tmp_path: Path) -> None:
    """As on hardware: the first holds the chip's port 16666 for as long as its communicator lives."""
    node = {"CAPTURE_CANARY_EMULATE_NODE": str(tmp_path / "shared-node")}
    first = start(leave_early, 2, options={"how": "idle"}, env=node)
    first_folder = tmp_path / "group-0"
    deadline = time.monotonic() + 30
    while not (first_folder / "idle-1").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    second = start(join_only, 2, env=node).answers()
    assert {answer["code"] for answer in second} == {E_UNAVAIL}
    moved = start(join_only, 2, env={**node, "HCCL_NPU_SOCKET_PORT_RANGE": "auto"}).answers()
    assert [answer["rank"] for answer in moved] == [0, 1]
    first.kill()


@pytest.mark.parametrize(
    ("env", "options", "each"),
    [
        ({}, {}, 200),
        ({"HCCL_BUFFSIZE": "50"}, {}, 50),
        ({"HCCL_BUFFSIZE": "50"}, {"config": {"buffer_size": 3}}, 3),
        ({}, {"config": {}}, 200),
    ],
)
def test_hbm_that_a_communicator_takes(
    run: Run, env: dict[str, str], options: dict[str, Any], each: int
) -> None:
    for answer in run(hbm, 2, env=env, options=options):
        assert answer["joined"] == 0
        assert 2 * each * MB <= answer["used"] < 2 * each * MB + 4 * MB  # and the lists' context
        assert answer["left"] == 0
        assert answer["rss"] < 100 * MB


def test_too_little_hbm(run: Run) -> None:
    env = {"CAPTURE_CANARY_EMULATE": "cann=8.5.0,soc=a3,hbm=1GiB", "HCCL_BUFFSIZE": "600"}
    for answer in run(hbm, 2, env=env):
        assert answer["code"] == 24  # HCCL_E_OOM
        assert "EI0007" in answer["message"]


def test_nothing_is_left_after_a_kill(start: Start, tmp_path: Path) -> None:
    def traces() -> set[str]:
        unix = Path("/proc/net/unix").read_text()
        names = {line.split()[-1] for line in unix.splitlines() if "capture-canary-hccl" in line}
        return names | {
            str(path)
            for path in Path("/dev/shm").iterdir()  # noqa: S108 looked at, not written to
            if "hccl" in path.name
        }

    before = traces()
    group = start(leave_early, 2, options={"how": "idle"})
    deadline = time.monotonic() + 30
    while not (tmp_path / "group-0" / "idle-1").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    group.kill()
    assert traces() <= before
