"""What becomes a unit, what is dropped, and what spoils the whole: bound by bound."""

import msgspec
import pytest
from tests.making import capture

from capture_canary.model import Capture
from capture_canary.trend.units import Units

SIZES = 3


def round_of(number: int, sizes: int = SIZES) -> list[Capture]:
    first = number * sizes + 1
    return [capture(first + n, round=number, shape=n, control_seconds=0.002) for n in range(sizes)]


def put(captures: list[Capture], *, sizes: int = SIZES) -> Units:
    units = Units(range(sizes))
    for one in captures:
        units.add(one)
    return units


def rounds(count: int, sizes: int = SIZES) -> list[Capture]:
    return [one for number in range(count) for one in round_of(number, sizes)]


@pytest.mark.parametrize(("sizes", "each"), [(1, 3), (2, 2), (3, 1), (4, 1)])
def test_a_unit_has_three_captures_at_least(sizes: int, each: int):
    units = put(rounds(6 * each, sizes), sizes=sizes)
    assert len(units.units) == 5  # the first is left out as warm-up
    assert units.used == 5 * each * sizes


@pytest.mark.parametrize(("seconds", "dropped"), [(1e6, 0), (1e6 + 0.5, 1), (1e-9, 0), (9e-10, 1)])
def test_times_that_no_clock_shows_are_dropped(seconds: float, dropped: int):
    captures = rounds(12)
    captures[4] = msgspec.structs.replace(captures[4], seconds=seconds)
    units = put(captures)
    assert units.dropped == 3 * dropped  # with those of its round
    assert len(units.units) == 11 - dropped


@pytest.mark.parametrize("changes", [{"shape": 7}, {"shape": 0}], ids=["not planned", "twice"])
def test_a_size_that_is_not_the_rounds_is_dropped_alone(changes: dict[str, int]):
    captures = [msgspec.structs.replace(one, order=2 * one.order) for one in rounds(12)]
    extra = msgspec.structs.replace(captures[4], order=captures[4].order + 1, **changes)
    units = put([*captures[:5], extra, *captures[5:]])
    assert (units.dropped, len(units.units), units.flaw) == (1, 11, None)


@pytest.mark.parametrize("control", [None, 0.0, -1.0, float("nan"), 2e6])
def test_a_round_without_a_good_control_of_each_is_dropped(control: float | None):
    captures = rounds(12)
    captures[19] = msgspec.structs.replace(captures[19], control_seconds=control)
    units = put(captures)
    assert (units.paired, units.dropped, len(units.units)) == (True, 3, 10)


def test_more_than_a_tenth_dropped_is_a_flaw_that_says_how_many():
    captures = rounds(11)
    for n in (4, 8):  # two rounds of ten
        captures[n] = msgspec.structs.replace(captures[n], outcome="failed")
    assert put(captures).flaw == "6 of 30 captures could not be used"
    assert put(rounds(11)).flaw is None
    captures[8] = msgspec.structs.replace(captures[8], outcome="ok")
    assert put(captures).flaw is None  # a tenth is not more


def test_a_coarse_clock_may_show_the_same_twice_and_not_an_earlier_time():
    captures = [msgspec.structs.replace(one, begin_ns=one.round) for one in rounds(5)]
    assert put(captures).flaw is None
    captures[9] = msgspec.structs.replace(captures[9], begin_ns=1)
    assert put(captures).flaw == "the clock went back at capture 10"


@pytest.mark.parametrize("order", [0, 5])
def test_orders_that_do_not_rise_are_a_flaw(order: int):
    captures = rounds(5)
    place = 0 if order == 0 else 6
    captures[place] = msgspec.structs.replace(captures[place], order=order)
    assert "came after capture" in (put(captures).flaw or "")


def test_a_round_of_before_is_a_flaw():
    captures = rounds(5)
    captures[9] = msgspec.structs.replace(captures[9], round=1)
    assert put(captures).flaw == "round 1 came after round 2"
