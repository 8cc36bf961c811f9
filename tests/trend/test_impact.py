"""What growth costs a load."""

import pytest
from tests.making import capture, flat, grows, series

from capture_canary.model import Impact
from capture_canary.trend import impact as impacts
from capture_canary.trend.impact import impact, negligible, seconds_per_copy


def priced(copies, seconds, **changes):
    return series(
        [capture(n, copies(n), copy_seconds=seconds(copies(n))) for n in range(1, 5)],
        **changes,
    )


def test_growth_is_added_up_over_the_load():
    found = impact([priced(grows, lambda c: c * 2e-6)], graphs_per_load=11)
    # 256 copies more at each of graphs 2 to 11: 256 · (1 + … + 10).
    assert found.seconds_per_load == pytest.approx(256 * 55 * 2e-6)
    assert found.graphs == 11


def test_set_up_copies_do_not_raise_the_price():
    assert seconds_per_copy([priced(grows, lambda c: 5.0 + c * 2e-6)]) == pytest.approx(2e-6)


def test_where_noise_hides_the_price_the_mean_stands_in():
    falling = priced(grows, lambda c: 1.0 / c)
    total = sum(grows(n) for n in (2, 3, 4))
    assert seconds_per_copy([falling]) == pytest.approx(
        sum(1.0 / grows(n) for n in (2, 3, 4)) / total
    )


def test_servers_graphs_weigh_with_the_square_of_their_collectives():
    rising = [priced(grows, lambda c: c * 1e-6)]
    own = impact(rising).seconds_per_load
    assert own is not None
    assert own == pytest.approx(256 * 35 * 34 / 2 * 1e-6)
    assert impact(rising, collectives_per_graph=16).seconds_per_load == own
    assert impact(rising, collectives_per_graph=128).seconds_per_load == pytest.approx(64 * own)


def test_the_steepest_series_counts_and_flat_ones_do_not():
    steep = priced(lambda n: 3 * grows(n), lambda c: c * 1e-6)
    found = impact([priced(flat, lambda _: 9.0), priced(grows, lambda c: c * 1e-6), steep])
    assert found.seconds_per_load == pytest.approx(3 * 256 * 595 * 1e-6)


def test_what_was_not_measured_is_not_known():
    assert impact([]).seconds_per_load is None
    assert impact([priced(flat, lambda c: c * 1e-6)]).seconds_per_load is None
    untimed = series([capture(n, grows(n), copy_seconds=None) for n in (1, 2, 3)])
    assert impact([untimed], graphs_per_load=3) == Impact(seconds_per_load=None, graphs=3)


@pytest.mark.parametrize(
    ("seconds", "small"), [(0.999, True), (1.0, False), (60.0, False), (None, False)]
)
def test_negligible(seconds, small):
    assert negligible(Impact(seconds_per_load=seconds, graphs=35)) is small
    assert not negligible(None)
    assert impacts.NEGLIGIBLE_SECONDS == 1


@pytest.mark.parametrize(
    ("copies", "seconds", "price"),
    [
        ((5, 6), (1.0, 3.0), 2.0),  # what was added
        ((5, 6, 9), (1.0, 3.0, 5.0), 1.0),  # from the first to the last
        ((5, 5), (1.0, 2.0), 0.3),  # no copy was: the mean
        ((5, 6), (1.0, 1.0), 2 / 11),  # no time was
        ((0, 1), (3.0, 1.0), 4.0),
        ((0, 0), (1.0, 1.0), None),
    ],
)
def test_the_price_is_what_was_added_else_the_mean(copies, seconds, price):
    captures = [
        capture(n, count, copy_seconds=took)
        for n, (count, took) in enumerate(zip(copies, seconds, strict=True), 2)
    ]
    assert seconds_per_copy([series(captures)]) == (price and pytest.approx(price))


def test_graphs_of_several_sizes_are_scaled_from_the_last():
    """One peer: a tag copies five blocks and the list that it is put on."""
    captures, before = [], 0
    for n, k in enumerate([2, 2, 2, 2, 4], 1):
        copies = sum(5 + before + own for own in range(1, k + 1))
        captures.append(
            capture(n, copies, copy_seconds=copies * 1e-6, collectives={"AllReduce": k})
        )
        before += k
    plain, scaled = (
        impact([series(captures, k=None)], collectives_per_graph=k).seconds_per_load
        for k in (None, 8)
    )
    assert plain is not None
    assert scaled == pytest.approx(plain * (8 / 4) ** 2)
