"""Captures of a traced process as series: a communicator's own, or all together with no k."""

from collections.abc import Sequence

from tests.making import capture

from capture_canary.trace.record import TracedCapture
from capture_canary.trace.series import series_of
from capture_canary.trend import growth, law

K = 5


def traced(
    order: int, communicators: dict[int, int], copies: int, *, complete: bool = True
) -> TracedCapture:
    k = sum(communicators.values())
    return TracedCapture(
        capture=capture(order, copies, collectives={"AllReduce": k} if k else {}),
        device=0,
        thread=1,
        code=0,
        overlapped=False,
        other_copies=(0,) * 8,
        communicators=communicators,
        communicators_complete=complete,
        graphs_alive=1,
    )


def laws(captures: Sequence[TracedCapture]) -> list[bool | None]:
    return [growth.matches_law(one) for one in series_of(captures, rank=0, mode=None)]


def test_one_communicator_keeps_the_numbers_of_the_process():
    captures = [traced(n, {1: K}, law.growing(K, 1, n)) for n in range(7, 12)]

    (series,) = series_of(captures, rank=1, mode="AI_CPU")

    assert [7, 8, 9, 10, 11] == [one.order for one in series.captures]
    assert (1, "AI_CPU", "AllReduce", K) == (
        series.rank,
        series.mode,
        series.collective,
        series.collectives,
    )
    assert [True] == laws(captures)


def test_communicators_that_take_turns_meet_the_law_each_by_itself():
    captures = [
        traced(order, {1 + order % 2: K}, law.growing(K, 1, (order + 1) // 2))
        for order in range(1, 11)
    ]

    assert [True, True] == laws(captures)
    assert [[1, 2, 3, 4, 5]] * 2 == [
        [one.order for one in series.captures] for series in series_of(captures, rank=0, mode=None)
    ]


def test_communicators_in_one_capture_meet_no_law_and_grow():
    copies = [law.growing(K, 1, n) + law.growing(2, 1, n) for n in range(1, 9)]
    captures = [traced(n, {1: K, 2: 2}, each) for n, each in enumerate(copies, 1)]

    (series,) = series_of(captures, rank=0, mode=None)

    assert [None] == laws(captures)
    assert "growing" == growth.copies_trend(series)
    assert series.collectives is None


def test_more_communicators_than_a_record_names_are_not_told_apart():
    captures = [traced(n, {1: K}, 10 * n, complete=False) for n in range(1, 6)]

    assert [None] == laws(captures)


def test_captures_without_collectives_are_left_out_where_others_have_some():
    captures = [traced(1, {}, 0), *(traced(n, {1: K}, 0) for n in range(2, 6))]

    assert [4] == [len(one.captures) for one in series_of(captures, rank=0, mode=None)]
    assert [1] == [len(one.captures) for one in series_of(captures[:1], rank=0, mode=None)]
