import threading
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from capture_canary.gate.release import SETTLE, Released, released, wait_released
from capture_canary.stack.npus import Chip, Npus, NpusUnknownError, Process


def chip(phy_id: int, used: int | None = 3143, processes: int | None = 0) -> Chip:
    return Chip(
        npu=phy_id // 2,
        chip=phy_id % 2,
        phy_id=phy_id,
        name="Ascend910",
        health="OK",
        bus_id=None,
        hbm_used_mb=used,
        hbm_total_mb=65536,
        aicore=0,
        processes=processes,
    )


def holder(phy_id: int, pid: int, inner: int | None = None) -> Process:
    return Process(
        npu=phy_id // 2,
        chip=phy_id % 2,
        phy_id=phy_id,
        pid=pid,
        pid_in_container=inner,
        name="python3",
        memory_mb=900,
    )


def node(*chips: Chip, processes: tuple[Process, ...] = ()) -> Npus:
    return Npus(source="npu-smi info", version=None, chips=chips, processes=processes)


BEFORE = node(chip(0), chip(1), chip(2))


@pytest.mark.parametrize(
    ("after", "same_pids", "ok"),
    [
        (BEFORE, True, True),
        (node(chip(0, 3300), chip(1, 3100), chip(2)), True, True),
        (node(chip(0, 4300), chip(1), chip(2)), True, False),
        (node(chip(0), chip(1), chip(2, 58211)), True, True),  # not one of the probe's
        (node(chip(0), chip(1, None)), True, False),
        (node(chip(0)), True, False),
        (node(chip(0), chip(1, processes=1)), True, False),
        (replace(BEFORE, processes=(holder(0, 77),)), True, False),  # ours
        (replace(BEFORE, processes=(holder(0, 9, 77),)), False, False),  # ours, by the inner pid
        (replace(BEFORE, processes=(holder(0, 9),)), False, False),  # whose, nobody knows
        (replace(BEFORE, processes=(holder(0, 9, 5),)), False, True),  # a server that started
        (replace(BEFORE, processes=(holder(0, 9),)), True, True),
        (replace(BEFORE, processes=(holder(2, 77),)), True, True),
    ],
)
def test_are_the_chips_back(after: Npus, *, same_pids: bool, ok: bool) -> None:
    answer = released(BEFORE, after, {0, 1}, {77}, same_pids=same_pids)
    assert answer.ok is ok
    assert answer.sentence


def compare(after: Npus) -> Released:
    return released(BEFORE, after, {0, 1}, {77}, same_pids=True)


class Stop(threading.Event):
    """A stop that lets no real time pass and counts the waits."""

    def __init__(self, at: int | None = None) -> None:
        super().__init__()
        self.waits = 0
        self.at = at
        self.now = 0.0

    def wait(self, timeout: float | None = None) -> bool:
        self.waits += 1
        self.now += timeout or 0.0
        return self.waits == self.at

    def clock(self) -> float:
        return self.now


def looks(*answers: Npus | None) -> Callable[[], Npus]:
    rest = list(answers)

    def look() -> Npus:
        answer = rest.pop(0) if len(rest) > 1 else rest[0]
        if answer is None:
            raise NpusUnknownError("npu-smi info: not done in 10 s")
        return answer

    return look


HELD = node(chip(0, 4300), chip(1), chip(2))


def test_waits_until_the_memory_is_back() -> None:
    stop = Stop()
    assert wait_released(compare, looks(HELD, None, HELD, BEFORE), stop, clock=stop.clock).ok
    assert stop.waits == 3


@pytest.mark.parametrize("last", [HELD, None])
def test_gives_up_after_thirty_seconds(last: Npus | None) -> None:
    stop = Stop()
    answer = wait_released(compare, looks(last), stop, clock=stop.clock)
    assert not answer.ok
    assert answer.sentence
    assert stop.now == SETTLE


def test_a_daemon_that_ends_does_not_wait() -> None:
    stop = Stop(at=1)
    assert not wait_released(compare, looks(HELD), stop, clock=stop.clock).ok
    assert stop.waits == 1
