"""The robust slope and its bounds, with scipy and plain enumeration as oracles."""

import itertools
import math
import random

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from capture_canary.trend import slope

values = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3))


@given(st.lists(values, min_size=8, max_size=30))
def test_estimate_is_scipys(ys):
    xs = list(range(len(ys)))
    found = slope.theil_sen([list(zip(xs, ys, strict=True))], alpha=0.025)
    assert found is not None
    assert found.estimate == pytest.approx(scipy.stats.theilslopes(ys, xs).slope, abs=1e-9)
    assert found.lower <= found.estimate <= found.upper
    assert found.n == len(ys)


@given(st.lists(values, min_size=10, max_size=60, unique=True))
def test_bounds_are_scipys_but_for_its_normal_approximation(ys):
    xs = list(range(len(ys)))
    ours = slope.theil_sen([list(zip(xs, ys, strict=True))], alpha=0.025)
    theirs = scipy.stats.theilslopes(ys, xs, alpha=0.95)
    assert ours is not None
    slopes = sorted((ys[j] - ys[i]) / (j - i) for i, j in itertools.combinations(xs, 2))
    # scipy rounds a normal quantile; ours counts orders. They may differ by a few places in the list of slopes.
    places = 3
    for bound, reference in ((ours.lower, theirs.low_slope), (ours.upper, theirs.high_slope)):
        near = min(range(len(slopes)), key=lambda i: abs(slopes[i] - reference))
        assert slopes[max(0, near - places)] <= bound <= slopes[min(len(slopes) - 1, near + places)]


@pytest.mark.parametrize("sizes", [[4], [5], [3, 3], [2, 4], [6]])
@pytest.mark.parametrize("alpha", [0.375, 0.2, 0.05, 0.01, 0.0015])
def test_quantile_is_that_of_all_orders(sizes, alpha):
    falls = [
        sum(sum(a > b for a, b in itertools.combinations(order, 2)) for order in orders)
        for orders in itertools.product(*(itertools.permutations(range(n)) for n in sizes))
    ]
    allowed = [d for d in range(max(falls) + 1) if sum(f <= d for f in falls) <= alpha * len(falls)]
    assert slope.discordant_quantile(sizes, alpha) == (max(allowed) if allowed else None)


@pytest.mark.parametrize("sizes", [[30], [12, 12, 12], [4] * 40])
@pytest.mark.parametrize("alpha", [0.025, 1e-3, 1e-6])
def test_normal_tail_is_never_bolder_than_counting(sizes, alpha, monkeypatch):
    monkeypatch.setattr(slope, "EXACT_PAIRS", 10_000)
    exact = slope.discordant_quantile(sizes, alpha)
    monkeypatch.setattr(slope, "EXACT_PAIRS", 0)
    normal = slope.discordant_quantile(sizes, alpha)
    assert exact is not None
    assert normal is not None
    assert 0.9 * exact <= normal <= exact


@given(st.lists(values, min_size=8, max_size=30), st.sampled_from([0.2, 0.025, 1e-3]))
def test_a_fall_is_a_rise_turned_over(ys, alpha):
    rise, fall = (
        slope.theil_sen([[(x, sign * y) for x, y in enumerate(ys)]], alpha=alpha)
        for sign in (1, -1)
    )
    assert rise is not None
    assert fall == slope.Slope(-rise.estimate, -rise.upper, -rise.lower, rise.n)


def test_bounds_cover_the_true_slope_as_often_as_promised():
    rng = random.Random(7)  # noqa: S311 - a seeded simulation
    missed = 0
    runs, alpha = 2000, 0.025
    for _ in range(runs):
        groups = [
            [(x, 5 * g + 0.3 * x + rng.expovariate(1)) for x in range(g, 12, 3)] for g in range(3)
        ]
        found = slope.theil_sen(groups, alpha=alpha)
        assert found is not None
        missed += not found.lower <= 0.3 <= found.upper
    # Binomial at 2 alpha: five deviations above the mean are out of reach of chance.
    assert missed <= runs * 2 * alpha + 5 * math.sqrt(runs * 2 * alpha)


def test_groups_keep_their_intercepts():
    groups = [[(x, 1000 * g + 2 * x) for x in range(g, 20, 2)] for g in range(2)]
    found = slope.theil_sen(groups, alpha=0.025)
    assert found == slope.Slope(2, 2, 2, 20)


@pytest.mark.parametrize("groups", [[], [[]], [[(1, 1)]], [[(1, 1)], [(2, 2)]], [[(1, 1), (2, 2)]]])
def test_too_few_points_have_no_bounds(groups):
    assert slope.theil_sen(groups, alpha=0.025) is None


def test_a_million_to_one_takes_ten_points():
    rise = [(x, float(x)) for x in range(10)]
    assert slope.theil_sen([rise[:9]], alpha=1e-6) is None
    assert slope.theil_sen([rise], alpha=1e-6) == slope.Slope(1, 1, 1, 10)


def test_a_point_alone_takes_no_part_and_a_pair_does():
    rise = [(x, float(x)) for x in range(10)]
    assert slope.theil_sen([rise, [(3, 5.0)]], alpha=0.025) == slope.Slope(1, 1, 1, 10)
    assert slope.theil_sen([rise, rise[:2]], alpha=0.025) == slope.Slope(1, 1, 1, 12)


@pytest.mark.parametrize(("alpha", "cut"), [(0.2, 2), (0.1, 1), (0.05, 0), (0.01, None)])
def test_the_normal_tail_of_few_pairs_may_leave_none(alpha, cut, monkeypatch):
    monkeypatch.setattr(slope, "EXACT_PAIRS", 0)
    assert slope.discordant_quantile([5], alpha) == cut


@pytest.mark.parametrize("sizes", [[300], [60] * 20, [2] * 1000])
@pytest.mark.parametrize("alpha", [0.025, 1e-6])
def test_the_normal_tail_has_the_variance_of_random_orders(sizes, alpha):
    # The k-th of a group falls behind 0 to k - 1 of those before it, each as likely.
    variance = sum((k * k - 1) / 12 for size in sizes for k in range(2, size + 1))
    pairs = sum(math.comb(size, 2) for size in sizes)
    expected = math.floor(pairs / 2 - scipy.stats.norm.isf(alpha) * math.sqrt(variance) - 1)
    assert slope.discordant_quantile(sizes, alpha) == expected
