"""The evidence itself: fair for every order of values, deaf to a jump, and never helped by a smaller slope."""

import itertools
import math
import random
import statistics

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from capture_canary.trend.ranks import SLOPES, Payoffs, payoffs
from capture_canary.trend.sequential import MAX_VALUES, Evidence

# Whole numbers: what is done to them below changes no order by rounding.
values = st.lists(st.integers(-1000, 1000).map(float), max_size=30)


FAR = 600.0
"""A bound that no series here reaches."""


def path(seen, bound=FAR, **options):
    """The statistic after each value."""
    evidence = Evidence(bound, **options)
    found = []
    for value in seen:
        evidence.add(value)
        found.append(evidence.statistic)
    return found


@pytest.mark.parametrize("slope", [*SLOPES, 0.01, 5.0])
@pytest.mark.parametrize("k", [1, 2, 3, 10, 100])
def test_a_bet_pays_one_on_average_and_more_at_higher_places(slope, k):
    table = payoffs(slope)
    table.reach(k)
    row = table[min(k, table.longest) - 1]
    assert statistics.fmean(row) == pytest.approx(1)
    assert row == sorted(row)
    assert len(row) == min(k, table.longest)


@pytest.mark.parametrize("slope", SLOPES)
@pytest.mark.parametrize(("k", "off"), [(2, 1e-4), (3, 2e-4), (10, 0.01), (100, 0.05)])
def test_a_place_pays_its_chance_under_normal_noise(slope, k, off):
    table = payoffs(slope)
    k = min(k, table.longest)
    table.reach(k)
    noise = np.linspace(-9, 9, 3601)
    places = np.array([scipy.stats.norm.pdf(noise)])
    for lag in slope * np.arange(1, k):
        above = scipy.stats.norm.cdf(noise + lag)
        places = (
            np.pad(places, ((0, 1), (0, 0))) * (1 - above)
            + np.pad(places, ((1, 0), (0, 0))) * above
        )
    chances = np.trapezoid(places, noise, axis=1)
    likely = chances > 1e-3  # elsewhere the stake is lost, whatever is left of it
    assert np.array(table[k - 1])[likely] == pytest.approx((k * chances)[likely], rel=off)


def test_bets_are_those_that_the_tables_of_the_docs_were_made_with():
    """Others are as fair, and would be found in another number of captures than bench/statistics found."""
    assert [payoffs(slope).longest for slope in SLOPES] == [105, 52, 31, 19]
    rising = [(slope, [2 * slope * n + 2 * math.sin(n * n) for n in range(60)]) for slope in SLOPES]
    guarded = [path(seen, slopes=(slope,))[-1] for slope, seen in rising]
    assert guarded == pytest.approx([11.176947, 43.341866, 46.647686, 31.015436], abs=1e-6)
    plain = [path(seen, slopes=(slope,), steps=False)[-1] for slope, seen in rising]
    assert plain == pytest.approx([30.878077, 58.278329, 47.263594, 31.015436], abs=1e-6)
    long = [0.1 * n + 3 * math.sin(n * n) for n in range(MAX_VALUES + 9)]
    both = [path(long, steps=steps)[-1] for steps in (True, False)]
    assert both == pytest.approx([52.598291, 62.920720], abs=1e-6)

    draw, staked = random.Random(1), 0.0  # noqa: S311 - a seeded simulation
    for _ in range(30):
        wavy = [0.025 * n + draw.random() + draw.random() + draw.random() for n in range(60)]
        staked += sum(path(wavy, 2, steps=False))
    assert staked == pytest.approx(872.843595, abs=1e-5)


def test_no_table_is_longer_than_what_is_betted_on():
    for slope in SLOPES:
        table = Payoffs(slope)
        table.reach(1000)
        assert len(table) == table.longest


@pytest.mark.parametrize("slope", [*SLOPES, 0.01, 5.0])
@pytest.mark.parametrize("k", [1, 2, 9, 200])
def test_the_lowest_places_pay_what_they_pay(slope, k):
    table = payoffs(slope)
    table.reach(k)
    row = table[k - 1] if k <= table.longest else [1.0] * k
    for count in range(1, k + 1):
        assert table.lowest(k, count) == pytest.approx(math.fsum(row[:count]))


@pytest.mark.parametrize("slopes", [(0.5,), (0.06, 0.8), SLOPES])
@pytest.mark.parametrize("bound", [0.1, 1.0, 2.0, 3.0, FAR])
def test_over_all_orders_the_payoff_is_one_and_none_of_it_beyond_the_bound(slopes, bound):
    orders = list(itertools.permutations([float(n) for n in range(6)]))
    ends = [math.exp(path(order, bound, slopes=slopes, steps=False)[-1]) for order in orders]
    assert max(ends) <= math.exp(bound) * (1 + 1e-9)
    mean = statistics.fmean(ends)
    assert mean <= 1 + 1e-9
    # What a bet would pay beyond the bound is staked but for what three or five of six places would pay.
    assert mean >= 0.98


@pytest.mark.parametrize("jump", range(6))
@pytest.mark.parametrize("alpha", [0.3, 0.1, 0.02])
def test_over_all_orders_few_ever_pass_the_bound_wherever_they_jump(jump, alpha):
    orders = list(itertools.permutations([float(n) for n in range(6)]))
    jumped = [[v + 100.0 * (i >= jump) for i, v in enumerate(order)] for order in orders]
    bound = math.log(1 / alpha)
    passed = sum(path(one, bound)[-1] == bound for one in jumped)
    assert passed <= alpha * len(orders)


def test_without_the_guard_a_jump_would_pass():
    jumped = [float(n * 7 % 10) + 100 * (n >= 10) for n in range(20)]
    assert max(path(jumped, steps=False)) > math.log(1000)
    assert max(path(jumped)) < math.log(10)


@given(values, st.integers(-1000, 1000), st.sampled_from([0.5, 2.0, 1024.0]))
def test_level_and_scale_mean_nothing(seen, level, scale):
    assert path(seen) == path([value * scale + level for value in seen])


@given(
    values,
    st.lists(st.integers(0, 100), min_size=30, max_size=30),
    st.sampled_from([0.5, 2.0, 5.0, FAR]),
)
def test_a_smaller_slope_never_helps(seen, steps, bound):
    lowered = [v - fall for v, fall in zip(seen, itertools.accumulate(steps), strict=False)]
    for steps_guarded in (True, False):
        before, after = (path(one, bound, steps=steps_guarded) for one in (seen, lowered))
        assert all(low <= high + 1e-9 for low, high in zip(after, before, strict=True))


@given(values, st.integers(0, 30), st.integers(0, 10**6))
def test_a_jump_counts_no_more_than_both_its_sides(seen, where, height):
    """Whatever it is, the payoff is at most that of the bets before and after the jump."""
    jumped = [value + height * (index >= where) for index, value in enumerate(seen)]
    plain = Evidence(FAR, steps=False, slopes=SLOPES[:1])
    plain.extend(seen[:where])
    again = Evidence(FAR, steps=False, slopes=SLOPES[:1])
    again.extend(seen[where:])
    one_slope = path(jumped, slopes=SLOPES[:1])
    if jumped:
        assert one_slope[-1] <= plain.statistic + again.statistic + 1e-9


@given(values)
def test_equal_values_are_no_rise(seen):
    doubled = [value for value in seen for _ in range(2)]
    assert path([0.0] * len(seen)) == path([-float(n) for n in range(len(seen))])
    assert len(path(doubled)) == len(doubled)


@settings(deadline=None)
@given(st.integers(0, 400))
def test_it_is_truncated(more):
    evidence = Evidence(FAR)
    evidence.extend(float(n) for n in range(MAX_VALUES))
    before = evidence.statistic
    evidence.extend(float(-n) for n in range(more))
    assert evidence.statistic == before
    assert before > math.log(1e30)


@pytest.mark.parametrize("steps", [True, False])
def test_what_reached_its_bound_stands_still(steps):
    rising = [float(n) for n in range(60)]
    bound = math.log(1e6)
    found = path([*rising, *(-n for n in rising)], bound, steps=steps)
    when = found.index(bound)
    assert found[when:] == [bound] * len(found[when:])
    assert max(found[:when]) < bound
    # Staking what it need not win can only bring the end forward.
    unbound = path(rising, steps=steps)
    assert when <= next(n for n, statistic in enumerate(unbound) if statistic >= bound)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("jump", [0.0, 10.0])
@pytest.mark.parametrize("steps", [True, False])
def test_it_is_sufficient_no_sooner_and_no_later_than_at_its_bound(seed, jump, steps):
    rng = random.Random(seed)  # noqa: S311 - a seeded simulation
    where, slope = rng.randrange(40), rng.choice([0.05, 0.3, 1.0])
    rising = [slope * n + rng.gauss(0, 1) + jump * (n >= where) for n in range(40)]
    unbound = path(rising, steps=steps)
    for count in range(1, len(rising)):
        high = max(unbound[:count])
        below, above = (Evidence(high + off, steps=steps) for off in (-1e-6, 1e-6))
        below.extend(rising[:count])
        above.extend(rising[:count])
        # What is staked, where no jump is guarded against, only brings the end forward.
        assert below.sufficient
        assert below.statistic == high - 1e-6
        if steps:
            assert not above.sufficient
            assert above.statistic == pytest.approx(unbound[count - 1], abs=1e-9)


def test_what_is_lost_stays_finite():
    lost = path([-float(n) for n in range(MAX_VALUES)], slopes=(1.5,))
    assert lost[-1] == pytest.approx(math.log(5e-324))
