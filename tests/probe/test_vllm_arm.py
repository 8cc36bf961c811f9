"""An arm of vLLM: when it ends, what is said of graphs that differ, and of names that were missing."""

import msgspec
from tests.making import capture

from capture_canary.probe.arm import Arm
from capture_canary.probe.messages import Captured, Noted
from capture_canary.probe.settings import ProbeSettings, of_vllm
from capture_canary.trend import growth

ROUNDS, PIECES = 2, (1, 2, 2)
"""All-reduces in the pieces of a model of two layers."""
SETTINGS = of_vllm(
    ProbeSettings(workload="vllm", rounds=ROUNDS, devices=(0,)), layers=2, graph_mode="PIECEWISE"
)


def run(arm: Arm) -> list[bool]:
    """Give the arm the captures of all rounds, by the law; return when it would have ended."""
    ends, tags, order = [], 1, 0
    for round_ in range(ROUNDS):
        for size in SETTINGS.shapes:
            for k in PIECES:
                order += 1
                copies = 5 * k + tags * k + k * (k + 1) // 2 + (order == 1)
                tags += k
                made = capture(
                    order, copies, round=round_, shape=size, collectives={"AllReduce": k}
                )
                record = Captured(rank=0, series=0, mode=None, peers=None, capture=made)
                arm.take(record)
                ends.append(arm.may_end(record))
    return ends


def test_it_is_not_ended_when_as_many_captures_as_sizes_came():
    arm = Arm("as_configured", None, SETTINGS)

    assert not any(run(arm))

    (series,) = arm.series()
    assert ROUNDS * len(SETTINGS.shapes) * len(PIECES) == len(series.captures)


def test_pieces_meet_the_law_each_with_its_own_k():
    arm = Arm("as_configured", None, SETTINGS)
    run(arm)

    (series,) = arm.series()

    assert series.collectives is None
    assert growth.copies_trend(series) == "growing"
    assert growth.matches_law(series) is True


def test_captures_before_the_first_round_count_as_those_of_a_round():
    """vLLM's own start was one; its tags are listed, whatever k the first capture recorded has."""
    arm = Arm("as_configured", None, SETTINGS)
    run(arm)
    (series,) = arm.series()
    first = len(series.captures) // 2

    points = growth.counted(msgspec.structs.replace(series, captures=series.captures[first:]))

    assert first // len(PIECES) * sum(PIECES) == points[0].tags_before


def test_notes_are_kept():
    arm = Arm("as_configured", None, SETTINGS)

    arm.take(Noted(text="no such name"))

    assert ["no such name"] == arm.notes
