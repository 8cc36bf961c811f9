"""The least-squares line against scipy's, and where there is none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from capture_canary.trend import line

VALUES = st.integers(-1000, 1000)


@given(st.lists(VALUES, min_size=7, max_size=60), st.integers(-50, 50))
def test_it_is_scipys(noise: list[int], slope: int):
    points = [(float(x), float(slope * x + y)) for x, y in enumerate(noise)]
    found = line.fit(points)
    expected: Any = stats.linregress([x for x, _ in points], [y for _, y in points])

    assert found is not None
    assert pytest.approx(expected.slope, abs=1e-6) == found.slope
    assert pytest.approx(expected.intercept, abs=1e-4) == found.intercept
    half = 0.0 if found.r2 is None else stats.t.ppf(0.975, len(points) - 2) * expected.stderr
    assert pytest.approx(half, rel=1e-6, abs=1e-6) == found.upper - found.slope
    if found.r2 is not None and found.slope:
        assert pytest.approx(expected.rvalue**2, abs=1e-6) == found.r2


def test_a_straight_line_has_no_width():
    found = line.fit([(float(x), 25.0 * x + 7) for x in range(1, 1101)])

    assert found is not None
    assert pytest.approx((25.0, 25.0, 25.0, 1.0)) == (
        found.slope,
        found.lower,
        found.upper,
        found.r2,
    )


@pytest.mark.parametrize(
    "points", [[], [(1.0, 2.0)] * 2, [(1.0, 2.0), (2.0, 3.0)], [(1.0, 2.0)] * 5]
)
def test_no_line(points: list[tuple[float, float]]):
    assert line.fit(points) is None


def test_flat_points_have_no_r2():
    found = line.fit([(float(x), 3.0) for x in range(5)])

    assert found is not None
    assert (0.0, None) == (found.slope, found.r2)


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 8, 20, 101, 1000])
def test_few_points_have_the_interval_of_students_t(n: int):
    points = [(float(x), float(3 * x + x * x % 7)) for x in range(n)]
    found = line.fit(points)
    expected: Any = stats.linregress([x for x, _ in points], [y for _, y in points])

    assert found is not None
    half = stats.t.ppf(0.975, n - 2) * expected.stderr
    assert pytest.approx(half, rel=1e-7) == found.upper - found.slope
    assert pytest.approx(half, rel=1e-7) == found.slope - found.lower
