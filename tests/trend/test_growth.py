"""From captures to growth of copies and of time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.making import capture, flat, grows, none, series

from capture_canary.model import Series
from capture_canary.trend import growth, law


@pytest.mark.parametrize(
    ("copies", "k", "trend"),
    [
        ([], 16, None),
        ([233, 488], 16, None),
        ([233, 488, 744], 16, "growing"),
        ([233, 488, 488 + 255], 16, None),  # a step below k² is not the law's: wait
        ([8, 8, 9], 1, "growing"),  # k = 1: one copy more is the law
        ([8, 8, 8], 1, "flat"),
        ([8, 8, 7], 1, "flat"),
        ([26, 0, 0], 8, "flat"),
        ([113, 112, 112], 16, "flat"),
        ([113, 112, 113, 112, 113], 16, "flat"),
        ([113, 112, 900, 112, 112], 16, "flat"),  # a burst of somebody else's copies
        ([113, 112, 112, 112, 900], 16, "irregular"),
        ([10, 10, 11, 12], 16, None),
        ([10, 10, 11, 12, 13], 16, "growing"),  # slow, but with every capture
        ([10, 10, 11, 11, 12], 16, "flat"),
        ([10, 10, 138, 138, 266, 266], 16, "irregular"),
        ([8, 8, 9, 9, 9], 1, "irregular"),
        ([5, 5, 6, 7], None, None),
        ([5, 5, 6, 7, 8], None, "growing"),
        ([5, 5, 5], None, "flat"),
        ([5, 5, 6, 6, 7], None, "irregular"),
    ],
)
def test_trend_of_copies(copies, k, trend):
    assert growth.copies_trend(series(copies, k=k)) == trend


def test_capture_one_is_never_judged():
    assert growth.copies_trend(series([10_000, 0, 0])) == "flat"
    assert growth.copies_trend(series([0, 512, 512])) == "flat"
    only_second_and_third = series([capture(2, 488), capture(3, 744)])
    assert growth.copies_trend(only_second_and_third) == "growing"


@pytest.mark.parametrize(
    "change", [{"outcome": "failed"}, {"ambiguous": True}, {"h2d_copies": None}]
)
def test_captures_that_say_nothing_are_left_out(change):
    odd = capture(3, 999_999)
    captures = [capture(1, 233), capture(2, 488), odd, capture(4, grows(4))]
    captures[2] = capture(3, **({"copies": 999_999} | change))
    judged = series(captures)
    assert [point.copies for point in growth.counted(judged)] == [488, grows(4)]
    assert growth.copies_trend(judged) == "growing"
    found = growth.copies_growth(judged)
    assert found is not None
    assert found.estimate == 256


def test_order_of_arrival_does_not_matter():
    captures = [capture(n, grows(n)) for n in (3, 1, 4, 2)]
    assert growth.copies_trend(series(captures)) == "growing"
    assert growth.matches_law(series(captures)) is True


def test_estimate_of_copies_is_exact():
    found = growth.copies_growth(series([grows(n) for n in range(1, 7)]))
    assert found is not None
    assert (found.estimate, found.lower, found.upper) == (256, 256, 256)
    assert (found.n, found.method) == (5, "integer-steps")
    assert growth.copies_growth(series([233, 488])) is None


def test_bounds_of_copies_are_the_steps():
    found = growth.copies_growth(series([0, 10, 12, 15, 11]))
    assert found is not None
    assert (found.estimate, found.lower, found.upper) == (2, -4, 3)


server_sizes = st.lists(st.integers(1, 40), min_size=3, max_size=12)


def server(ks, copies):
    """Captures of graphs of different sizes, as a server makes them."""
    tags, captures = 0, []
    for n, k in enumerate(ks, 1):
        captures.append(capture(n, copies(k, tags) + (n == 1), collectives={"AllReduce": k}))
        tags += k
    return series(captures, k=None)


@given(server_sizes, st.integers(1, 15), st.booleans())
def test_servers_graphs_of_any_size_grow_by_the_law(ks, peers, scratch):
    lists = peers + scratch
    judged = server(
        ks, lambda k, tags: k * (4 + peers) + lists * (k * (1 + tags) + k * (k + 1) // 2)
    )
    assert growth.copies_trend(judged) == "growing"
    assert growth.matches_law(judged) is True


@given(server_sizes, st.integers(0, 60))
def test_servers_graphs_of_any_size_are_flat_when_fixed(ks, each):
    judged = server(ks, lambda k, _: k * each)
    assert growth.copies_trend(judged) == "flat"


@given(
    k=st.integers(1, 64),
    peers=st.integers(1, 15),
    scratch=st.booleans(),
    captures=st.integers(3, 12),
)
def test_three_captures_decide_for_every_size(k, peers, scratch, captures):
    growing = [law.growing(k, peers, n, scratch=scratch) for n in range(1, captures + 1)]
    fixed = [law.fixed_all_gather(k, peers, n, scratch=scratch) for n in range(1, captures + 1)]
    assert growth.copies_trend(series(growing, k=k)) == "growing"
    assert growth.matches_law(series(growing, k=k)) is True
    assert growth.copies_trend(series(fixed, k=k)) == "flat"
    assert growth.matches_law(series(fixed, k=k)) is False


def test_graphs_without_collectives_say_nothing():
    judged = series([capture(n, 100 * n, collectives={"AllReduce": 0}) for n in range(1, 9)])
    assert growth.copies_trend(judged) is None


def test_ring_that_lost_its_oldest_captures_still_grows():
    judged = series([capture(n, grows(n)) for n in range(40, 43)])
    assert growth.copies_trend(judged) == "growing"
    assert growth.matches_law(judged) is True


def timed(seconds, *, shapes=1):
    return series(
        [capture(n, 0, seconds=value, shape=n % shapes) for n, value in enumerate(seconds, 1)]
    )


def test_growth_of_time_keeps_shapes_apart():
    judged = timed([0.01 * (n % 4) + 0.002 * n for n in range(1, 20)], shapes=4)
    found = growth.seconds_growth(judged)
    assert found is not None
    assert found.estimate == pytest.approx(0.002)
    assert found.lower == pytest.approx(0.002)
    assert found.upper == pytest.approx(0.002)
    assert (found.n, found.method) == (18, "theil-sen")


def test_growth_of_time_ignores_capture_one_and_needs_repeats():
    assert growth.seconds_growth(timed([9.0] + [0.01] * 9)) == growth.seconds_growth(
        timed([0.01] * 10)
    )
    assert growth.seconds_growth(timed([0.01] * 10, shapes=10)) is None
    assert growth.seconds_growth(timed([0.01] * 4)) is None


def test_only_the_newest_captures_are_timed():
    seconds = [50.0 - n for n in range(40)] + [0.01 * n for n in range(growth.MAX_TIMED)]
    found = growth.seconds_growth(timed(seconds))
    assert found is not None
    assert (found.n, round(found.lower, 9)) == (growth.MAX_TIMED, 0.01)


def test_worst_is_the_steepest_of_its_arm():
    steep = series([law.growing(16, 2, n) for n in range(1, 4)], rank=1)
    aiv = series([law.growing(16, 9, n) for n in range(1, 4)], arm="aiv")
    everything = [series([grows(n) for n in range(1, 4)]), aiv, steep, series([1])]
    found = growth.worst(everything)
    assert found.series == 2
    assert found.copies is not None
    assert found.copies.estimate == 512
    assert growth.worst(everything, arm="aiv").series == 1
    assert growth.worst(everything, arm="ai_cpu").series is None


def test_worst_falls_back_on_time():
    slow = timed([0.01 * n for n in range(1, 12)])
    uncounted = [
        series([capture(c.order, None, seconds=c.seconds * f) for c in slow.captures])
        for f in (1, 3, 2)
    ]
    found = growth.worst(uncounted)
    assert (found.series, found.copies) == (1, None)
    assert found.seconds is not None
    assert found.seconds.estimate == pytest.approx(0.03)


def test_growing_asks_them_all():
    rising, still, short = (
        series([grows(n) for n in range(1, 4)]),
        series([flat(n) for n in range(1, 4)]),
        series([none(1)]),
    )
    assert growth.growing([still, rising, short]) is True
    assert growth.growing([still, still]) is False
    assert growth.growing([still, short]) is None
    assert growth.growing([]) is None


def mixed(copies: list[int], ks: list[int | None]) -> Series:
    """Graphs of these numbers of collectives (None: not known)."""
    return series(
        [
            capture(n, count, collectives={} if k is None else {"AllReduce": k})
            for n, (count, k) in enumerate(zip(copies, ks, strict=True), 1)
        ],
        k=None,
    )


def test_from_a_graph_of_unknown_size_on_the_law_is_not_asked():
    one = mixed([0, 10, 20, 30], [2, 2, None, 2])
    assert growth.copies_trend(one) is None
    assert growth.matches_law(one) is None
    assert growth.copies_trend(mixed([0, 10, 20, 30, 40], [2, 2, None, 2, 2])) == "growing"


@pytest.mark.parametrize(("last", "trend"), [(30, "flat"), (35, "irregular")])
def test_less_than_a_step_of_the_law_from_first_to_last_is_flat(last, trend):
    """A step from 2 collectives to 4 is 24 copies, both brought to 8: 30 makes 20 more, 35 makes 30."""
    assert growth.copies_trend(mixed([9, 10, 0, 0, last], [2, 2, 16, 16, 4])) == trend


def test_of_series_that_grow_alike_the_first_is_named():
    assert growth.worst([series([0, 8, 16, 24]), series([0, 8, 16, 24], rank=1)]).series == 0
