"""Collectives move the right data: eager and replayed, between threads and between processes."""

import pytest

from tests.emulator.conftest import Run
from tests.emulator.hccl_data import collectives, init_all, rounding, sub_communicators
from tests.emulator.hccl_failures import join_only

EVERY_DTYPE = 7
REPLAYED = (
    10 + 4 * 5 - 1 - 4
)  # 10 that move, 5 that reduce by 4 operations; Broadcast and in place are not replayed


@pytest.mark.parametrize(
    ("ranks", "threads"), [(2, False), (2, True), (4, False), (4, True), (3, True)]
)
def test_every_collective_and_dtype(run: Run, ranks: int, *, threads: bool) -> None:
    answers = run(collectives, ranks, threads=threads, options={"count": 7})
    assert answers == [[EVERY_DTYPE * REPLAYED, []]] * ranks


def test_payloads_beyond_chunks_and_mailboxes(run: Run) -> None:
    answers = run(collectives, 2, threads=True, options={"count": 150_001})
    assert answers == [[EVERY_DTYPE * REPLAYED, []]] * 2


def test_no_elements_at_all(run: Run) -> None:
    assert (
        run(collectives, 2, threads=True, options={"count": 0})
        == [[EVERY_DTYPE * REPLAYED, []]] * 2
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_half_precision_rounds_like_numpy(run: Run, seed: int) -> None:
    assert run(rounding, 2, threads=True, options={"seed": seed}) == [[], []]


def test_one_rank_alone(run: Run) -> None:
    assert run(join_only, 1)[0]["ranks"] == 1


def test_sub_communicators(run: Run) -> None:
    assert run(sub_communicators, 4) == [[2.0] * 3, [4.0] * 3, [2.0] * 3, [4.0] * 3]


def test_all_devices_of_one_process(run: Run) -> None:
    assert run(init_all, 1) == [[[3.0, 3.0], [3.0, 3.0]]]
