"""What the charts are told to show."""

import math

import msgspec
import pytest
from tests.builders import make_report, make_series, make_stack

from capture_canary.model import Growth
from capture_canary.report import charts
from capture_canary.store import Event, Probe, Stacks

NOW = 1_790_000_000.0


def probe(number: int, **changes: object) -> Probe:
    report = make_report("degraded")
    assert report.growth.copies is not None
    assert report.growth.seconds is not None
    fields: dict[str, object] = {
        "id": number,
        "at": NOW + number,
        "took": 1.0,
        "stack": "abc",
        "evidence": "probe",
        "emulated": True,
        "verdict": "degraded",
        "cause": "aicpu_resource_list",
        "reason": report.reason,
        "mode": "AI_CPU",
        "copies": report.growth.copies.estimate,
        "copies_lower": report.growth.copies.lower,
        "copies_upper": report.growth.copies.upper,
        "seconds": report.growth.seconds.estimate,
        "seconds_lower": report.growth.seconds.lower,
        "seconds_upper": report.growth.seconds.upper,
        "impact": 0.5,
    }
    return msgspec.convert(fields | changes, Probe)


def test_arms_stand_side_by_side_in_one_chart():
    report = make_report("degraded", captures=5)
    copies, times = charts.captures(report, ("AllGather", "kept"))
    assert [line.colour for line in copies.lines] == ["as_configured", "aiv"]
    assert [x for x, _ in copies.lines[0].points] == [2, 3, 4, 5], "capture 1 is left out"
    configured = next(one for one in report.series if one.collective == "AllGather")
    assert [y for _, y in copies.lines[0].points] == [
        capture.h2d_copies for capture in configured.captures[1:]
    ]
    assert times.unit == "ms"
    assert times.lines[0].points[0][1] == configured.captures[1].seconds * 1e3


def test_the_rank_that_copied_most_stands_for_its_arm():
    report = make_report("degraded")
    worse = make_series(peers=7, rank=5)
    report = msgspec.structs.replace(report, series=[*report.series, worse])
    copies, _ = charts.captures(report, ("AllReduce", "kept"))
    assert copies.lines[0].label == "as configured (AI_CPU), rank 5"


def test_without_counts_time_decides_and_copies_stay_empty():
    slow, quick = make_series(counted=False, rank=1), make_series(counted=False, grows=False)
    report = msgspec.structs.replace(make_report("degraded"), series=[quick, slow])
    copies, times = charts.captures(report, ("AllReduce", "kept"))
    assert times.lines[0].label.endswith("rank 1")
    assert {y for _, y in copies.lines[0].points} == {None}


@pytest.mark.parametrize("worst", [None, 5, 999])
def test_the_worst_kind_comes_first(worst: int | None):
    report = make_report("degraded", ranks=2)
    growth = Growth(copies=None, seconds=None, series=worst)
    kinds = charts.kinds(msgspec.structs.replace(report, growth=growth))
    expected = ("AllGather", "kept") if worst == 5 else ("AllReduce", "kept")
    assert kinds[0] == expected
    assert len(kinds) == len(set(kinds)) == 4


def test_growth_over_days_has_a_course_for_each_subject_and_points_by_verdict():
    probes = [
        probe(3, stack="new", verdict="healthy", cause=None, copies=0.0, seconds=1e-6),
        probe(2, verdict="unknown", cause=None, copies=None, seconds=None),
        probe(1),
    ]
    copies, times = charts.growth(probes, [], [])
    drawn = [(line.drawn, line.label) for line in copies.lines]
    subject = [("band", "upper bound"), ("band", "lower bound"), ("course", "growth")]
    assert drawn == [
        *subject,
        *subject,
        ("points", "healthy"),
        ("points", "degraded"),
        ("points", "unknown"),
    ]
    assert copies.lines[2].points == [(NOW + 1, 256.0), (NOW + 2, None)], "oldest first"
    assert copies.lines[-1].points == [(NOW + 2, 0.0)], "no growth measured: on the ground"
    assert math.isclose(times.lines[-2].points[0][1] or 0, 256 * 3.2e-3 * 1.2)


def test_restarts_and_changes_of_the_stack_are_marked():
    events = [
        Event(id=9, at=NOW + 5, kind="start", detail=""),
        Event(id=8, at=NOW + 4, kind="latch", detail=""),
    ]
    stacks = [
        Stacks(id=2, at=NOW + 6, stacks={"b": make_stack("9.1.0")}),
        Stacks(id=1, at=NOW + 1, stacks={"a": make_stack("8.5.0")}),
    ]
    chart, _ = charts.growth([probe(1)], events, stacks)
    assert [(mark.kind, mark.x, mark.label) for mark in chart.marks] == [
        ("restart", NOW + 5, "restart"),
        ("stack", NOW + 6, "CANN 8.5.0 → 9.1.0"),
    ]


def test_a_restart_loop_does_not_cover_the_curve():
    events = [Event(id=n, at=NOW + n, kind="start", detail="") for n in range(500)]
    chart, _ = charts.growth([probe(0)], events, [])
    assert len(chart.marks) == charts.MAX_MARKS
