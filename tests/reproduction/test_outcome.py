"""What a reproduction shows of its captures: rounds side by side, shares, lines."""

import pytest
from tests.making import capture, series

from capture_canary.model import ArmName, Report, Series
from capture_canary.reproduction import outcome
from capture_canary.trend import law, verdict
from capture_canary.trend.report import report_of

K, SIZES = 5, 11


def of_arm(arm: ArmName, rounds: int, *, grows: bool) -> Series:
    captures = [
        capture(order, law.growing(K, 1, order) if grows else 0, round=(order - 1) // SIZES)
        for order in range(1, rounds * SIZES + 1)
    ]
    return series(captures, arm=arm, k=K, graphs="destroyed")


def report(*found: Series) -> Report:
    judgement = verdict.judge(
        found,
        ranks=1,
        hcomm="8.5.0",
        soc="a3",
        configured_mode=None,
        control=[4],
        arm_failures={},
    )
    return report_of(
        judgement,
        emulated=True,
        mode="AI_CPU",
        mode_source="test",
        stack={},
        control=4,
        series=list(found),
    )


def test_a_hundred_rounds_are_a_straight_line_and_aiv_is_flat():
    own, aiv = outcome.outcomes(
        report(of_arm("as_configured", 100, grows=True), of_arm("aiv", 100, grows=False))
    )

    assert [1, 45, 100] == [one.number for one in own.shown]
    assert {SIZES} == {one.captures for one in own.shown}
    assert own.copies is not None
    assert own.copies.r2 is not None
    assert pytest.approx(K * K, rel=1e-4) == own.copies.slope
    assert own.copies.r2 > 0.9999
    first = own.rounds[0]
    assert sum(law.growing(K, 1, n) for n in range(1, SIZES + 1)) == first.copies
    assert first.copies is not None
    assert pytest.approx(first.copies * 1e-6 / (SIZES * 0.01)) == first.share
    assert aiv.copies is not None
    assert (0, None) == (aiv.copies.slope, aiv.copies.r2)


@pytest.mark.parametrize(
    ("rounds", "shown"),
    [(1, (1,)), (2, (1, 2)), (3, (1, 2, 3)), (99, (1, 50, 99)), (100, (1, 45, 100))],
)
def test_rounds_shown_of_fewer(rounds: int, shown: tuple[int, ...]):
    assert shown == outcome.shown(rounds)


def test_uncounted_copies_have_no_share_and_no_line():
    captures = [capture(order, None) for order in range(1, 5)]

    (own,) = outcome.outcomes(report(series(captures)))

    assert own.copies is None
    assert own.seconds is not None
    assert (None, None) == (own.rounds[0].copies, own.rounds[0].share)


def test_an_arm_that_failed_is_left_out():
    assert [] == outcome.outcomes(report())
