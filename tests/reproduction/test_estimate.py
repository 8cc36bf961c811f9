"""How long a reproduction still takes: rounds that get slower in a straight line, and an arm to come that need not."""

import pytest

from capture_canary.reproduction.estimate import Estimate

START, FIRST, MORE, ROUNDS = 20.0, 1.0, 0.05, 100


def took(number: int) -> float:
    return FIRST + MORE * (number - 1)


def after(rounds: int, estimate: Estimate, now: float = 1000.0) -> float:
    estimate.arm(now)
    now += START
    for number in range(rounds):
        now += took(number) if number else 0.0
        estimate.round(now)
    return now


@pytest.mark.parametrize("made", [4, 10, 50, 99, 100])
def test_it_knows_that_rounds_get_slower(made: int):
    estimate = Estimate(rounds=ROUNDS, arms=1)
    after(made, estimate)

    assert pytest.approx(sum(took(n) for n in range(made, ROUNDS)), abs=1e-6) == estimate.left(made)


def test_an_arm_to_come_is_as_fast_as_the_first_rounds():
    estimate = Estimate(rounds=ROUNDS, arms=2)
    after(ROUNDS, estimate)

    assert pytest.approx(START + (ROUNDS - 1) * FIRST) == estimate.left(ROUNDS)


def test_it_says_nothing_before_it_can():
    estimate = Estimate(rounds=ROUNDS, arms=2)
    assert estimate.left(0) is None
    after(1, estimate)
    assert estimate.left(1) is None
    after(2, estimate)
    assert estimate.left(2) is not None


def test_noise_that_makes_the_line_fall_does_not_make_the_rest_free():
    estimate = Estimate(rounds=ROUNDS, arms=1)
    now = 0.0
    estimate.arm(now)
    for seconds in (20, 9, 6, 3):
        now += seconds
        estimate.round(now)

    left = estimate.left(4)
    assert left is not None
    assert left >= 96 * 3
