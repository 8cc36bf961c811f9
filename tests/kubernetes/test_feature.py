"""A feature that cannot call: how often it tries, and what is said."""

import pytest

pytest.importorskip("lightkube")

from capture_canary.kubernetes.api import ApiError, DeniedError
from capture_canary.kubernetes.feature import MOST, Caller

DAY = 86_400


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Failing:
    """A call that fails, and counts."""

    def __init__(self, error: Exception | None):
        self.error = error
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1
        if self.error:
            raise self.error


def after_a_day(caller: Caller, clock: Clock, do: Failing) -> None:
    for second in range(DAY):
        clock.now = float(second)
        caller.call(do)


def test_an_api_server_that_is_gone_for_a_day_is_asked_ever_less():
    clock, do = Clock(), Failing(ApiError("gone"))
    caller = Caller("events", clock)
    after_a_day(caller, clock, do)
    assert DAY / MOST / 2 < do.calls < 3 * DAY / MOST
    assert do.calls == caller.failures
    assert caller.off is None


def test_what_is_denied_is_off_and_tried_again_now_and_then():
    clock, do = Clock(), Failing(DeniedError("403"))
    caller = Caller("events", clock)
    after_a_day(caller, clock, do)
    assert do.calls < 50
    assert "403" == caller.off
    do.error = None
    clock.now += DAY
    assert caller.call(do) is None
    assert caller.off is None


def test_after_a_success_the_next_failure_is_tried_again_soon():
    clock, do = Clock(), Failing(ApiError("slow"))
    caller = Caller("jobs", clock)
    after_a_day(caller, clock, do)
    clock.now += DAY
    do.error = None
    assert caller.call(do) is None
    do.error = ApiError("slow")
    assert "slow" == caller.call(do)
    clock.now += 6.0
    before = do.calls
    caller.call(do)
    assert before + 1 == do.calls
