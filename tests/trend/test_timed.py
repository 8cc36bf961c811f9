"""Time alone, series by series: what grows, what does not, and what cannot be told from times at all."""

import itertools
import math
import random
import re
import statistics
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.making import capture, series

from capture_canary.model import Capture
from capture_canary.trend import timed
from capture_canary.trend.ranks import payoffs
from capture_canary.trend.sequential import MAX_VALUES
from capture_canary.trend.units import Unit, Units
from capture_canary.trend.verdict import judge

SIZES = 3
FLOORS: dict[str, Any] = {"floor_seconds": 1e-4, "floor_ratio": 0.0}


def rounds(
    count: int, time: Any, control: Any = lambda _n: 0.002, *, sizes: int = SIZES, seed: int = 3
) -> list[Capture]:
    """Captures whose order of sizes is shuffled; `time` and `control` are functions of the capture's order."""
    rng = random.Random(seed)  # noqa: S311 - a seeded simulation
    made: list[Capture] = []
    for number in range(count):
        for shape in rng.sample(range(sizes), sizes):
            n = len(made) + 1
            made.append(
                capture(
                    n,
                    round=number,
                    shape=shape,
                    seconds=0.01 + 0.004 * shape + time(n),
                    control_seconds=control(n),
                )
            )
    return made


def examined(captures: list[Capture], **changes: Any):
    options: dict[str, Any] = {"index": 0, "alpha": 1e-6, **FLOORS, **changes}
    return timed.examine(series(captures), **options)


def noise(sigma: float, seed: int = 1):
    rng = random.Random(seed)  # noqa: S311 - a seeded simulation
    return lambda _n: rng.gauss(0, sigma)


def test_growth_is_found_and_measured():
    off = noise(1e-4)
    found = examined(rounds(40, lambda n: 5e-4 * n + off(n)))
    assert (found.decision, found.paired) == ("grows", True)
    assert found.statistic >= found.bound == math.log(1e6)
    assert found.growth is not None
    assert found.growth.lower <= 5e-4 <= found.growth.upper
    assert found.noise == pytest.approx(1e-4, rel=0.7)
    assert abs(found.autocorrelation or 0) < 0.5
    assert (found.n, found.units, found.dropped) == (39 * 3, 39, 0)


def test_none_is_found_flat_and_either_may_be_said_between():
    off = noise(1e-4)
    assert examined(rounds(40, off)).decision == "flat"
    assert examined(rounds(60, lambda n: 2.5e-4 * n)).decision == "grows"
    assert examined(rounds(60, lambda n: 0.9e-4 * n)).decision == "flat"
    assert examined(rounds(12, lambda n: 1e-3 * n)).decision == "open"


@pytest.mark.parametrize(
    ("name", "time", "control"),
    [
        ("warm-up", lambda n: 0.05 if n <= 3 else 0.0, lambda _n: 0.002),
        ("a jump", lambda n: 0.01 * (n > 70), lambda _n: 0.002),
        ("a fall", lambda n: -1e-5 * n, lambda _n: 0.002),
        ("spikes", lambda n: 0.1 if n % 7 == 0 else 0.0, lambda _n: 0.002),
        ("saw teeth", lambda n: 1e-3 * (n % 12), lambda _n: 0.002),
    ],
)
def test_what_is_no_growth_is_none(name, time, control):
    off = noise(1e-5)
    found = examined(rounds(60, lambda n: time(n) + off(n), control), floor_seconds=0.0)
    assert found.decision != "grows", name


def test_drift_that_the_controls_see_is_the_machines():
    def slower(captures, by):
        return [
            type(one)(**{**fields(one), "seconds": one.seconds * by(one.order),
                         "control_seconds": one.control_seconds * by(one.order)})
            for one in captures
        ]  # fmt: skip

    def fields(one):
        return {name: getattr(one, name) for name in one.__struct_fields__}

    off = noise(1e-5)
    drifting = slower(rounds(60, off), lambda n: 1 + 0.01 * n)
    assert examined(drifting, floor_seconds=0.0).decision != "grows"
    growing = slower(rounds(60, lambda n: 2e-4 * n + off(n)), lambda n: 1 + 0.01 * n)
    assert examined(growing).decision == "grows"
    alone = [type(one)(**{**fields(one), "control_seconds": None}) for one in drifting]
    blind = examined(alone, floor_seconds=0.0)
    assert (blind.decision, blind.paired) == ("grows", False)
    judged = judge(
        [series(alone)],
        ranks=1,
        hcomm=None,
        soc=None,
        configured_mode=None,
        control=None,
        arm_failures={},
        copies_expected=False,
        floor_seconds=0.0,
        floor_ratio=0.0,
        repeated_after=1e5,
    )
    assert (judged.verdict, judged.cause) == ("unknown", "suspect")


def test_noise_that_remembers_too_much_is_unfit():
    rng, level = random.Random(6), 0.0  # noqa: S311 - a seeded simulation
    walk: list[float] = []
    for _ in range(600):
        level = 0.995 * level + rng.gauss(0, 1e-3)
        walk.append(level + 5e-4 * len(walk))
    found = examined(rounds(190, lambda n: walk[n - 1]))
    assert found.decision == "unfit"
    assert "remembers" in found.reason


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize(("units", "judged"), [(19, False), (20, True), (40, True)])
def test_how_much_the_noise_may_remember(units, judged, above, monkeypatch):
    bound = 0.4 + 2.33 / math.sqrt(units)
    remembered = math.nextafter(bound, 1) if above else bound
    monkeypatch.setattr(timed, "autocorrelation", lambda _units: remembered)
    grown = examined(rounds(units + 1, lambda n: 5e-4 * n))
    assert (grown.units, grown.decision) == (units, "unfit" if judged and above else "grows")


def test_noise_that_remembers_spoils_no_flat_time(monkeypatch):
    monkeypatch.setattr(timed, "autocorrelation", lambda _units: 0.99)
    assert examined(rounds(60, noise(1e-5))).decision == "flat"


def a_wave(count: int, slope: float) -> list[Capture]:
    return rounds(count, lambda n: slope * n + 1e-3 * math.sin(n * n))


def test_the_evidence_is_that_of_the_docs_tables():
    """Another memory, bound or weight would find it in another number of captures than bench/statistics did."""
    assert examined(a_wave(40, 1.5e-4)).statistic == pytest.approx(11.998842, abs=1e-6)
    whens = [
        next(n for n in range(8, 80) if examined(a_wave(n, slope)).decision == said)
        for slope, said in ((2e-4, "grows"), (0.0, "flat"))
    ]
    assert whens == [27, 14]


def test_a_growth_of_many_floors_is_never_called_flat():
    captures = rounds(80, lambda n: 5e-4 * n)
    assert examined(captures, alpha=1e-300).decision == "open"


@pytest.mark.parametrize(
    ("floor", "shown"), [(1.0049e-3, "1"), (9.9951e-4, "1"), (2.5e-5, "0.025")]
)
def test_reasons_say_the_floor(floor, shown):
    grown = examined(rounds(60, lambda n: 5e-3 * n), floor_seconds=floor)
    assert grown.reason == f"time grows by more than {shown} ms a capture"
    still = examined(rounds(60, lambda _n: 0.0), floor_seconds=floor)
    assert still.reason == f"time does not grow by 2 times {shown} ms a capture or more"


@pytest.mark.parametrize(
    ("count", "reason"),
    [
        (1, "sizes were not captured again and again"),
        (2, "sizes were not captured again and again"),
        (3, "undecided after 2 rounds"),
        (4, "undecided after 3 rounds"),
    ],
)
def test_too_few_rounds_say_so(count, reason):
    assert examined(rounds(count, lambda _n: 0.0)).reason == reason


def test_alpha_is_shared_among_all_that_are_planned_or_came():
    assert timed.alpha_each(0, kinds=0, ranks=0) == timed.ALPHA
    assert timed.alpha_each(1, kinds=1, ranks=1) == timed.ALPHA
    assert timed.alpha_each(2, kinds=4, ranks=2) == timed.ALPHA / 8
    assert timed.alpha_each(9, kinds=4, ranks=2) == timed.ALPHA / 9


def test_the_empirical_bound_is_that_of_the_corpus():
    text = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text()
    series = re.search(r"No alarm in ([\d,]+) series", text)
    assert series
    proven = 1 - 0.05 ** (1 / int(series[1].replace(",", "")))
    assert proven <= timed.EMPIRICAL_BOUND <= 1.05 * proven


def units_of(seconds: list[float]) -> list[Unit]:
    return [Unit(3.0 * n + 2, value) for n, value in enumerate(seconds)]


def test_noise_is_the_deviation_of_one_capture():
    seconds = [0.01 + 1e-4 * math.sin(n * n) + 3e-4 * n for n in range(30)]
    steps = [b - a for a, b in itertools.pairwise(seconds)]
    each = scipy.stats.median_abs_deviation(steps, scale="normal") / math.sqrt(2)
    found = timed.noise(units_of(seconds), 30 * 4)
    assert found == pytest.approx(2 * each, rel=1e-4)
    assert timed.noise(units_of([1.0, 2.0]), 6) is None
    assert timed.noise(units_of([1.0, 2.0, 4.0]), 9) == pytest.approx(
        1.4826 * 0.5 / math.sqrt(2) * math.sqrt(3)
    )


@pytest.mark.parametrize("count", [8, 9, 30, 31])
@pytest.mark.parametrize("relative", [1e-6, 1e-2])
def test_autocorrelation_is_that_of_what_two_lines_leave(count, relative):
    seconds = [0.01 * (1 + relative * math.sin(n * n)) + 3e-4 * n for n in range(count)]
    at = 3.0 * np.arange(count) + 2
    left = np.concatenate(
        [
            half - np.polynomial.Polynomial.fit(x, half, 1)(x)
            for x, half in (
                (at[: count // 2], np.array(seconds[: count // 2])),
                (at[count // 2 :], np.array(seconds[count // 2 :])),
            )
        ]
    )
    expected = float(left[:-1] @ left[1:] / (left @ left))
    assert timed.autocorrelation(units_of(seconds)) == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_seven_units_are_too_few_for_autocorrelation_and_rounding_has_none():
    assert timed.autocorrelation(units_of([1.0, 2.0, 1.0, 3.0, 1.0, 2.0, 5.0])) is None
    rounded = [1 + 1e-11 * math.sin(n * n) for n in range(12)]
    assert timed.autocorrelation(units_of(rounded)) == 0.0


def test_a_test_is_exhausted_once_its_values_are():
    test = timed.SeriesTest(range(SIZES), **FLOORS)
    seen = []
    for one in rounds(MAX_VALUES + 4, lambda _n: 0.0):
        test.add(one)
        seen.append((len(test.units.units), test.exhausted))
    assert {exhausted for units, exhausted in seen if units <= MAX_VALUES} == {False}
    assert seen[-1] == (MAX_VALUES + 1, True)


def test_sizes_that_come_once_say_nothing():
    falling = [capture(n, round=0, shape=100 - n, seconds=0.01 * n) for n in range(1, 60)]
    found = examined(falling)
    assert (found.decision, found.units) == ("open", 0)
    assert "again" in found.reason


@pytest.mark.parametrize("sizes", [1, 2, 3, 5])
def test_any_number_of_sizes(sizes):
    captures = rounds(math.ceil(120 / sizes), lambda n: 5e-4 * n, sizes=sizes)
    assert examined(captures).decision == "grows"


def test_a_longer_plan_has_larger_units():
    planned = (0, 1, 192, 193, 1000)
    assert [timed.rounds_per_unit(n) for n in planned] == [1, 1, 1, 2, 6]
    units = Units(range(3), rounds=6)
    for one in rounds(60, lambda _n: 0.0):
        units.add(one)
    assert (len(units.units), units.used) == (9, 162)


@pytest.mark.parametrize("count", [12, 30, 60])
def test_slopes_are_scipys_pooled_and_shape_by_shape(count):
    off = noise(1e-4, count)
    captures = rounds(count, lambda n: 3e-4 * n + off(n))
    judged = captures[SIZES:]
    found = examined(captures)
    pooled = [judged[at : at + SIZES] for at in range(0, len(judged), SIZES)]
    for ours, groups in [
        (found.growth, pooled),
        *((one, [[c] for c in judged if c.shape == one.shape]) for one in found.shapes),
    ]:
        at, seconds = (
            [statistics.fmean(getattr(c, name) for c in group) for group in groups]
            for name in ("order", "seconds")
        )
        theirs = scipy.stats.theilslopes(seconds, at)
        assert ours is not None
        assert ours.estimate == pytest.approx(theirs.slope)
        # scipy rounds a normal quantile of pairs, ours is counted or rounds to the careful side.
        width = theirs.high_slope - theirs.low_slope
        assert ours.lower == pytest.approx(theirs.low_slope, abs=0.1 * width)
        assert ours.upper == pytest.approx(theirs.high_slope, abs=0.1 * width)
        assert ours.n == len(groups)
    assert [one.shape for one in found.shapes] == list(range(SIZES))


def test_intervals_cover_as_often_as_promised():
    runs, promised = 200, 0.95
    covered = [0] * (1 + SIZES)
    for seed in range(runs):
        off = noise(1e-4, seed)
        found = examined(rounds(20, lambda n, off=off: 3e-4 * n + off(n)))
        for place, one in enumerate([found.growth, *found.shapes]):
            covered[place] += one is not None and one.lower <= 3e-4 <= one.upper
    # Four deviations below are out of reach of chance.
    least = runs * promised - 4 * math.sqrt(runs * promised * (1 - promised))
    assert min(covered) >= least


def test_a_shape_that_grows_alone_is_told_from_those_that_do_not():
    off = noise(1e-5)
    slower = [
        msgspec.structs.replace(
            one, seconds=one.seconds + off(one.order) + (1e-3 * one.order) * (one.shape == 2)
        )
        for one in rounds(30, lambda _n: 0.0, lambda n: 0.002 * (1 + 0.001 * n))
    ]
    by_shape = {one.shape: one for one in examined(slower).shapes}
    assert by_shape[2].lower > 5e-4
    assert by_shape[2].lower > max(by_shape[0].upper, by_shape[1].upper)


def test_shapes_too_seldom_captured_have_no_slope():
    assert examined(rounds(2, lambda _n: 0.0)).shapes == []
    assert examined([]).shapes == []


odd = st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -1.0, 1e300, 5e-324, 1e7])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.builds(
            capture,
            st.integers(-5, 400),
            round=st.integers(-3, 130),
            shape=st.integers(-1, 4),
            begin_ns=st.integers(-(10**20), 10**20),
            seconds=st.floats() | odd,
            control_seconds=st.none() | st.floats() | odd,
            outcome=st.sampled_from(["ok", "failed"]),
            ambiguous=st.booleans(),
        ),
        max_size=60,
    )
)
def test_whatever_comes_has_an_answer(captures):
    found = examined(captures)
    assert found.decision in ("grows", "flat", "open", "unfit")
    assert found.reason
    assert not math.isnan(found.statistic)
    assert found.growth is None or not math.isnan(found.growth.estimate)


@settings(max_examples=50, deadline=None)
@given(st.lists(odd, min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_times_that_cannot_be_are_left_out_and_many_are_unfit(bad, rng):
    captures = rounds(60, lambda n: 5e-4 * n)
    for value in bad:
        where = rng.randrange(3, len(captures))
        captures[where] = capture(
            where + 1,
            round=where // 3,
            shape=captures[where].shape,
            seconds=value,
            control_seconds=0.002,
        )
    found = examined(captures)
    assert found.dropped > 0
    assert found.decision == (
        "unfit" if found.dropped > 0.1 * (found.n + found.dropped) else "grows"
    )


def test_a_clock_that_goes_back_is_unfit():
    captures = rounds(60, lambda n: 5e-4 * n)
    captures[30] = capture(
        31, begin_ns=5, round=10, shape=captures[30].shape, control_seconds=0.002
    )
    found = examined(captures)
    assert (found.decision, found.reason) == ("unfit", "the clock went back at capture 31")


@settings(max_examples=30, deadline=None)
@given(st.integers(10, 100), st.integers(1, 10**6))
def test_a_clock_that_goes_back_anywhere_is_unfit(where, by):
    captures = rounds(40, lambda n: 5e-4 * n)
    before = captures[where - 1].begin_ns
    captures[where] = msgspec.structs.replace(captures[where], begin_ns=before - by)
    found = examined(captures)
    assert (found.decision, found.reason) == (
        "unfit",
        f"the clock went back at capture {where + 1}",
    )


@settings(max_examples=30, deadline=None)
@given(st.sets(st.integers(3, 119), max_size=60))
def test_whatever_captures_are_missing_their_rounds_do_not_count(missing):
    captures = rounds(40, lambda n: 5e-4 * n)
    found = examined([one for n, one in enumerate(captures) if n not in missing])
    whole = 39 - len({n // SIZES for n in missing})
    assert found.n == whole * SIZES
    # The last round may lack some without anything after it to tell.
    lost = found.dropped > 0.1 * (found.n + found.dropped)
    assert (found.decision == "unfit") == lost
    assert found.decision in ("grows", "open", "unfit")


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-9, 1e6), st.integers(0, 40))
def test_constant_times_of_any_size_never_grow(value, count):
    captures = rounds(count, lambda _n: 0.0)
    same = [msgspec.structs.replace(c, seconds=value, control_seconds=value) for c in captures]
    found = examined(same, floor_seconds=0.0)
    assert found.decision == "open"
    assert found.statistic <= 1e-6


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2), st.sampled_from([1e7, 1e300, math.inf, math.nan, -1.0, 0.0]))
def test_times_that_are_no_times_never_convict(least, absurd):
    captures = rounds(40, lambda n: 5e-4 * n)
    spoiled = [
        msgspec.structs.replace(c, seconds=absurd) if c.order % SIZES == least else c
        for c in captures
    ]
    assert examined(spoiled).decision == "unfit"


def followed(test: timed.SeriesTest, one: Capture) -> tuple[str, float]:
    """Give a test its next capture; return what it says then."""
    test.add(one)
    return test.decision, test.statistic


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False))
def test_ranks_that_interleave_in_any_way_are_judged_as_each_alone_bit_for_bit(rng):
    off = noise(1e-4)
    ranks = [
        rounds(30, lambda n: 5e-4 * n + off(n), seed=1),
        rounds(30, off, seed=2),
        rounds(12, lambda n: 1.5e-4 * n + off(n), seed=3),
    ]
    tests = [timed.SeriesTest(range(SIZES), **FLOORS) for _ in ranks]
    alone = [[followed(test, one) for one in own] for test, own in zip(tests, ranks, strict=True)]
    results = [test.result(rank) for rank, test in enumerate(tests)]
    assert [one.decision for one in results] == ["grows", "flat", "open"]

    payoffs.cache_clear()  # the tables that tests share are made anew, as far as each rank comes first
    tests = [timed.SeriesTest(range(SIZES), **FLOORS) for _ in ranks]
    pending = [list(own) for own in ranks]
    together: list[list[tuple[str, float]]] = [[] for _ in ranks]
    while left := [rank for rank, own in enumerate(pending) if own]:
        rank = rng.choice(left)
        together[rank].append(followed(tests[rank], pending[rank].pop(0)))
    assert together == alone
    assert [test.result(rank) for rank, test in enumerate(tests)] == results


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False))
def test_ranks_that_are_taken_for_one_are_unfit_in_any_order(rng):
    captures = rounds(40, lambda n: 5e-4 * n)
    pending = [list(captures), list(captures)]
    test = timed.SeriesTest(range(SIZES), **FLOORS)
    for rank in rng.sample([0, 1] * len(captures), 2 * len(captures)):
        test.add(pending[rank].pop(0))
    assert test.decision == "unfit"
    assert " came after " in test.result(0).reason
    # A whole series holds each order once.
    assert examined(rng.sample(captures * 2, 2 * len(captures))).decision == "grows"


def test_missing_sizes_are_no_rounds():
    captures = [one for one in rounds(60, lambda n: 5e-4 * n) if one.shape or one.round % 4]
    assert examined(captures).decision == "unfit"


@pytest.mark.parametrize("value", [1e-9, 0.01, 1e6])
def test_constant_times_are_flat_or_open(value):
    captures = [
        capture(n + 1, round=n // 3, shape=n % 3, seconds=value, control_seconds=value)
        for n in range(150)
    ]
    found = examined(captures)
    assert found.decision == "flat"
    assert found.autocorrelation == 0.0
    assert examined(captures, floor_seconds=0.0).decision == "open"


def test_two_captures_are_too_few():
    assert examined(rounds(1, lambda _n: 0.0)[:2]).decision == "open"
    assert examined([]).decision == "open"


def test_a_million_captures_are_truncated():
    test = timed.SeriesTest(range(3), **FLOORS)
    rng = random.Random(2)  # noqa: S311 - a seeded simulation
    few = [capture(1, shape=shape, control_seconds=0.002) for shape in range(3)]
    for n in range(100_000):  # the rest would be the same again
        one = few[n % 3]
        test.add(
            capture(
                n + 1,
                round=n // 3,
                shape=one.shape,
                seconds=rng.uniform(1, 2),
                control_seconds=0.002,
            )
        )
    assert test.exhausted
    assert len(test.units.units) <= MAX_VALUES + 2


def test_ranks_that_interleave_are_told_apart_by_their_series():
    captures = rounds(40, lambda n: 5e-4 * n)
    mixed = [one for one in captures for _ in range(2)]
    test = timed.SeriesTest(range(3), **FLOORS)
    for one in mixed:
        test.add(one)
    assert test.decision == "unfit"
    assert examined(mixed).decision == "grows"  # a series holds each order once
