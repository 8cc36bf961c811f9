"""An arm of a probe that counts no copies: records of several ranks, in whatever order they come."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.making import capture

from capture_canary.model import Capture
from capture_canary.probe.arm import Arm
from capture_canary.probe.messages import Captured, Kind
from capture_canary.probe.settings import ProbeSettings
from capture_canary.trend.timed import SeriesTest, alpha_each

RANKS, ROUNDS = 2, 25
KINDS = (
    Kind(collective="AllReduce", graphs="destroyed"),
    Kind(collective="AllGather", graphs="destroyed"),
)
SETTINGS = ProbeSettings(preload=False, rounds=ROUNDS, kinds=KINDS)
Place = tuple[int, int]
"""Kind and rank."""


def captures(growth: float, seed: int) -> list[Capture]:
    rng = random.Random(seed)  # noqa: S311 - a seeded simulation
    return [
        capture(
            n + 1,
            None,
            round=n // 3,
            shape=SETTINGS.shapes[n % 3],
            seconds=0.01 + growth * n + rng.gauss(0, 1e-4),
            control_seconds=0.002,
        )
        for n in range(3 * ROUNDS)
    ]


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([0.0, 0.005]))
def test_records_end_it_as_each_series_alone_would_in_whatever_order_they_come(rng, growth):
    places: list[Place] = [(kind, rank) for kind in range(len(KINDS)) for rank in range(RANKS)]
    pending = {
        place: captures(growth * (place == (1, 0)), seed) for seed, place in enumerate(places)
    }
    whole = {place: list(own) for place, own in pending.items()}
    arm, alone = Arm("as_configured", None, SETTINGS), dict[Place, SeriesTest]()
    ended = False
    while left := [place for place in places if pending[place]]:
        place = rng.choice(left)
        one = pending[place].pop(0)
        record = Captured(series=place[0], rank=place[1], mode=None, peers=None, capture=one)
        arm.take(record)
        test = alone.setdefault(
            place,
            SeriesTest(
                SETTINGS.shapes,
                alpha=alpha_each(0, kinds=4, ranks=RANKS),
                floor_seconds=SETTINGS.floor_seconds,
                floor_ratio=SETTINGS.floor_ratio,
            ),
        )
        test.add(one)
        said = [test.decision for test in alone.values()]
        expected = "grows" in said or said == ["flat"] * len(places)
        assert arm.may_end(record) == expected
        ended |= expected
    assert ended  # so it could have differed
    collectives: list[str] = [kind.collective for kind in KINDS]
    assert whole == {
        (collectives.index(one.collective), one.rank): one.captures for one in arm.series()
    }
