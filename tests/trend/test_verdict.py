"""The verdict's table, row by row, and what must hold whatever is measured."""
# ruff: noqa: E501 - the table is read by its columns

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.making import arm, capture, flat, grows, none, series

from capture_canary.model import ArmName, GraphsFate, Judgement, Series
from capture_canary.trend import law
from capture_canary.trend.case import PROBE_KINDS
from capture_canary.trend.rows import ROWS
from capture_canary.trend.verdict import judge

A3: dict[str, Any] = {
    "ranks": 2,
    "hcomm": "8.5.0",
    "soc": "Ascend910_9391",
    "configured_mode": None,
    "control": [4, 4],
    "arm_failures": {},
}
OWN: ArmName = "as_configured"


def judged(records: list[Series], **changes: Any) -> Judgement:
    return judge(records, **(A3 | changes))


def slower(n: int) -> float:
    return 0.010 + 0.005 * n


def clocked(copies, *, captures=72, seconds=slower, control: float | None = 0.01):
    """Every kind on both ranks with these times, in rounds of three sizes beside controls."""
    return [
        series(
            [
                capture(
                    n,
                    copies(n) if copies else None,
                    seconds=seconds(n),
                    round=(n - 1) // 3,
                    shape=(n - 1) % 3,
                    control_seconds=control,
                )
                for n in range(1, captures + 1)
            ],
            collective=collective,
            graphs=graphs,
            rank=rank,
        )
        for collective, graphs in PROBE_KINDS
        for rank in (0, 1)
    ]


def only_kept_all_gather_grows(name: ArmName = OWN):
    """hcomm with PR 2405 alone: AllReduce makes no copies, destroyed AllGather constant ones."""
    kinds: tuple[tuple[str, GraphsFate, Callable[[int], int]], ...] = (
        ("AllReduce", "kept", none),
        ("AllReduce", "destroyed", none),
        ("AllGather", "kept", grows),
        ("AllGather", "destroyed", lambda n: law.scratch_only(16, 1, n)),
    )
    return [
        series(
            [copies(n) for n in (1, 2, 3)],
            arm=name,
            collective=collective,
            graphs=graphs,
            rank=rank,
        )
        for collective, graphs, copies in kinds
        for rank in (0, 1)
    ]


def drop_rank(records, rank=1):
    return [one for one in records if one.rank != rank]


TABLE = [
    # id, records, changes, verdict, cause, words of the reason
    ("1 nothing", [], {}, "unknown", None, "nothing was captured"),
    ("1 nothing, and why", [], {"arm_failures": {OWN: "port 16666 is taken"}}, "unknown", None, "port 16666 is taken"),
    ("1 a rank is missing", drop_rank(arm(OWN, grows)), {}, "unknown", None, "of 2 ranks no capture came from 1"),
    ("1 empty series", arm(OWN, grows, captures=0), {}, "unknown", None, "nothing was captured"),
    ("1 two captures", arm(OWN, none, captures=2), {}, "unknown", None, "AllReduce with graphs kept of rank 0 has 2 of 3"),
    ("1 one kind is missing", arm(OWN, none, kinds=PROBE_KINDS[:3]), {}, "unknown", None, "AllGather with graphs destroyed of rank 0 is missing"),
    ("1 ended early", arm(OWN, none), {"arm_failures": {OWN: "hung at destroy"}}, "unknown", None, "ended early: hung at destroy"),
    ("1 a capture failed", [*arm(OWN, none)[1:], series([0, 0, 0, capture(4, 0, outcome="failed")])], {}, "unknown", None, "of rank 0 failed at capture 4"),
    ("1 a capture overlapped", [*arm(OWN, none)[1:], series([0, 0, 0, capture(4, 0, ambiguous=True)])], {}, "unknown", None, "overlapped"),
    ("1 irregular", [*arm(OWN, none)[1:], series([0, 0, 0, 0, 700])], {}, "unknown", None, "rises, but not with every capture"),
    ("1 copies not to be counted", arm(OWN, lambda _: None), {"copies_expected": False, "control": None}, "unknown", None, "not counted"),
    ("2 control saw none", arm(OWN, none), {"control": [0, 0]}, "unknown", "tracer_blind", "was seen by 0 of 2 ranks"),
    ("2 control of one rank", arm(OWN, none), {"control": [4, 0]}, "unknown", "tracer_blind", "was seen by 1 of 2 ranks"),
    ("2 control of one rank only", arm(OWN, none), {"control": [4]}, "unknown", "tracer_blind", "was seen by 1 of 2 ranks"),
    ("2 control did not run", arm(OWN, none), {"control": None}, "unknown", "tracer_blind", "was seen by 0 of 2 ranks"),
    ("2 no tracer", arm(OWN, lambda _: None), {"control": [None, None]}, "unknown", "tracer_blind", "cannot be counted"),
    ("2 stopped at the control", [], {"control": [0, 0]}, "unknown", "tracer_blind", "cannot be counted"),
    ("2 blind in the AIV arm", arm(OWN, grows) + arm("aiv", none), {"control": [4, 4, 0, 0]}, "unknown", "tracer_blind", "2 of 4"),
    ("3 AIV set", arm(OWN, grows), {"configured_mode": "AIV", "mode_source": "pod spec"}, "degraded", "mode_not_effective", "although the expansion mode is AIV (pod spec)"),
    ("3 HOST by default", arm(OWN, grows), {"soc": "a2"}, "degraded", "mode_not_effective", "HOST (the SoC's default)"),
    ("3 set in the process", arm(OWN, grows, mode="AIV"), {}, "degraded", "mode_not_effective", "AIV (as HCCL read it)"),
    ("3 before 4", arm(OWN, grows), {"configured_mode": "AIV", "hcomm": "9.1.0"}, "degraded", "mode_not_effective", "AIV"),
    ("3 a mode that A3 does not know", arm(OWN, grows), {"configured_mode": "HOST_TS"}, "degraded", "mode_not_effective", "HOST_TS"),
    ("4", arm(OWN, grows), {"hcomm": "9.1.0"}, "degraded", "regression", "256 more H2D copies (488→744"),
    ("4 later", arm(OWN, grows), {"hcomm": "9.2.0-beta.1"}, "degraded", "regression", "hcomm 9.2.0-beta.1"),
    ("5 AIV flat", arm(OWN, grows) + arm("aiv", none), {}, "degraded", "aicpu_resource_list", "with AIV it makes none more"),
    ("5 no AIV arm, law met", arm(OWN, grows), {}, "degraded", "aicpu_resource_list", "meet the law"),
    ("5 beta of 9.1.0", arm(OWN, grows) + arm("aiv", none), {"hcomm": "9.1.0-beta.1"}, "degraded", "aicpu_resource_list", ""),
    ("5 version not known", arm(OWN, grows) + arm("aiv", none), {"hcomm": None}, "degraded", "aicpu_resource_list", ""),
    ("5 AI_CPU forced on A2", arm(OWN, grows), {"soc": "a2", "configured_mode": "AI_CPU"}, "degraded", "aicpu_resource_list", ""),
    ("5 PR 2405 alone", only_kept_all_gather_grows() + arm("aiv", none, kinds=(("AllGather", "kept"),)), {"hcomm": "9.1.0-pr2405"}, "degraded", "aicpu_resource_list", "AllGather, graphs kept"),
    ("5 one kind, one rank", [series([233, 488, 744], rank=0), series([233], rank=1)], {}, "degraded", "aicpu_resource_list", "256 more"),
    ("6 AIV grows too", arm(OWN, grows) + arm("aiv", grows), {}, "degraded", "copies_unattributed", "with AIV they grow too"),
    ("6 AIV hangs", arm(OWN, grows), {"arm_failures": {"aiv": "no answer for 20 s"}}, "degraded", "copies_unattributed", "no answer for 20 s"),
    ("6 AIV fails late", arm(OWN, grows) + arm("aiv", none), {"arm_failures": {"aiv": "507009"}}, "degraded", "copies_unattributed", "507009"),
    ("6 AIV cut short", arm(OWN, grows) + arm("aiv", none, captures=2), {}, "degraded", "copies_unattributed", "has 2 of 3 captures"),
    ("6 AIV of one rank", arm(OWN, grows) + drop_rank(arm("aiv", none)), {}, "degraded", "copies_unattributed", "rank 1 is missing"),
    ("6 AIV cut short in two kinds", arm(OWN, grows) + arm("aiv", none, captures=2), {}, "degraded", "copies_unattributed", "with AIV AllReduce with graphs kept of rank 0 has 2 of 3 captures"),
    ("6 another law", arm(OWN, lambda n: 300 * n), {}, "degraded", "copies_unattributed", "not those of HCCL"),
    ("7", clocked(flat), {}, "degraded", "other", "5 ms longer (at least 5 ms"),
    ("9 no controls", clocked(flat, control=None), {}, "unknown", "suspect", "without control captures"),
    ("8", clocked(None), {"copies_expected": False, "control": None, "repeated_after": 3600.0}, "degraded", "time_only", "1.0 h ago"),
    ("9 seen once", clocked(None), {"copies_expected": False, "control": None}, "unknown", "suspect", "5 ms longer"),
    ("9 again too soon", clocked(None), {"copies_expected": False, "control": None, "repeated_after": 3599.0}, "unknown", "suspect", "5 ms longer"),
    ("9 log bars", clocked(None), {"copies_expected": False, "control": None, "evidence": "log", "repeated_after": 7200.0}, "unknown", "suspect", "5 ms longer"),
    ("10 shown", arm(OWN, none) + arm("ai_cpu", grows), {"configured_mode": "AIV"}, "mitigated", None, "in AI_CPU mode each further capture makes 256 more"),
    ("10 shown, version not known", arm(OWN, none) + arm("ai_cpu", grows), {"configured_mode": "HOST", "hcomm": None}, "mitigated", None, "HOST"),
    ("10 trace", arm(OWN, none), {"configured_mode": "AIV", "evidence": "trace"}, "mitigated", None, "unverified"),
    ("10 AI_CPU failed", arm(OWN, none), {"configured_mode": "AIV", "arm_failures": {"ai_cpu": "out of HBM"}}, "mitigated", None, "unverified (out of HBM)"),
    ("1 log bars do not rise", arm(OWN, none), {"evidence": "log"}, "unknown", None, "flat times alone"),
    ("1 no rank", arm(OWN, none), {"ranks": 0}, "unknown", None, "nothing was captured"),
    ("11", arm(OWN, flat), {"hcomm": "9.1.0"}, "healthy", None, "over 3 captures or more of each of 4 kinds of series on 2 ranks"),
    ("11 A2 by default", arm(OWN, none), {"soc": "Ascend910B3"}, "healthy", None, "not exposed: A2"),
    ("11 A2 with AIV", arm(OWN, none), {"soc": "a2", "configured_mode": "AIV"}, "healthy", None, "not exposed: A2"),
    ("11 AIV on a fixed stack", arm(OWN, none), {"configured_mode": "AIV", "hcomm": "9.1.0"}, "healthy", None, "has the fix"),
    ("11 AI_CPU flat as well", arm(OWN, none) + arm("ai_cpu", flat), {"configured_mode": "AIV"}, "healthy", None, ""),
    ("11 950", arm(OWN, none), {"soc": "950", "hcomm": "9.1.0"}, "healthy", None, "no more H2D copies"),
    ("11 a mode that A3 does not know", arm(OWN, flat), {"configured_mode": "HOST_TS"}, "healthy", None, ""),
    ("11 a server's own kind", [series([0, 0, 0], collective="mixed")], {"ranks": 1, "evidence": "trace", "control": [9], "hcomm": "9.1.0"}, "healthy", None, "each of 1 kinds"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("records", "changes", "verdict", "cause", "words"),
    [row[1:] for row in TABLE],
    ids=[str(row[0]) for row in TABLE],
)
def test_table(records, changes, verdict, cause, words):
    found = judged(records, **changes)
    assert (found.verdict, found.cause) == (verdict, cause)
    assert words in found.reason


def test_every_row_and_cause_is_in_the_table():
    assert {re.match(r"\d+", str(row[0]))[0] for row in TABLE} == {str(n) for n in range(1, 12)}  # type: ignore[index]
    assert len(ROWS) == 12  # row 1 is asked at both ends


def test_time_growth_needs_to_pass_both_floors():
    assert judged(clocked(flat), floor_seconds=0.0049).cause == "other"
    assert judged(clocked(flat), floor_seconds=0.0051).verdict == "healthy"
    # The first unit after warm-up takes 35 ms a capture: 0.14 of it are 4.9 ms.
    assert judged(clocked(flat), floor_ratio=0.14).cause == "other"
    assert judged(clocked(flat), floor_ratio=0.15).verdict == "healthy"


def test_time_growth_needs_enough_captures():
    # After warm-up and one unit to compare with, 13 units that all rise: 6! * 7! orders on the sides of a jump are too
    # few for 3 slopes and 8 series at 1e-6, whatever is betted; 18 are enough.
    assert judged(clocked(flat, captures=45)).verdict == "healthy"
    assert judged(clocked(flat, captures=60)).cause == "other"


def test_law_and_impact_come_with_the_verdict():
    found = judged(arm(OWN, grows) + arm("aiv", none), graphs_per_load=11)
    assert found.matches_law is True
    assert found.impact is not None
    assert found.impact.graphs == 11
    assert found.impact.seconds_per_load == pytest.approx(256 * 55 * 1e-6)
    assert found.growth.copies is not None
    assert found.growth.copies.estimate == 256
    healthy = judged(arm(OWN, flat), hcomm="9.1.0")
    assert (healthy.matches_law, healthy.impact) == (None, None)
    assert judged(arm(OWN, lambda n: 300 * n)).matches_law is False


counts = st.lists(st.none() | st.integers(0, 2000), max_size=6)
any_series = st.builds(
    series,
    counts,
    arm=st.sampled_from(["as_configured", "aiv", "ai_cpu"]),
    mode=st.sampled_from([None, "AIV", "AI_CPU", ""]),
    collective=st.sampled_from(["AllReduce", "AllGather", "mixed"]),
    graphs=st.sampled_from(["kept", "destroyed"]),
    k=st.sampled_from([None, 0, 1, 16]),
    rank=st.integers(-1, 2),
)
situations = st.fixed_dictionaries(
    {
        "ranks": st.integers(0, 3),
        "hcomm": st.sampled_from([None, "8.5.0", "9.1.0", "9.1.0-pr2405", "V100R001"]),
        "soc": st.sampled_from([None, "a2", "a3", "950", "310P3", "?"]),
        "configured_mode": st.sampled_from([None, "", "AIV", "HOST", "AI_CPU", "aiv"]),
        "control": st.none() | st.lists(st.none() | st.integers(0, 9), max_size=4),
        "arm_failures": st.dictionaries(
            st.sampled_from(["as_configured", "aiv", "ai_cpu"]), st.just("died")
        ),
        "copies_expected": st.booleans(),
        "evidence": st.sampled_from(["probe", "trace", "log"]),
        "repeated_after": st.none() | st.floats(0, 1e5),
    }
)
flat_everywhere = st.builds(
    lambda name, copies, captures: arm(name, lambda _: copies, captures=captures),
    st.sampled_from(["as_configured", "aiv", "ai_cpu"]),
    st.integers(0, 9),
    st.integers(1, 5),
)
records = st.lists(any_series, max_size=6) | st.lists(flat_everywhere, max_size=3).map(
    lambda arms: [one for records in arms for one in records]
)


@settings(max_examples=1000, deadline=None)
@given(records, situations)
def test_the_unknown_is_never_healthy(measured, situation):
    found = judge(measured, **situation)
    assert found.reason
    if found.verdict in ("healthy", "mitigated"):
        own = [one for one in measured if one.arm == "as_configured"]
        assert own
        assert {one.rank for one in own} >= set(range(situation["ranks"]))
        assert all(
            len(one.captures) >= 3 and all(c.h2d_copies is not None for c in one.captures)
            for one in own
            if one.rank in range(situation["ranks"])
        )
        assert situation["copies_expected"]
        assert situation["control"]
        assert all(situation["control"])
        assert "as_configured" not in situation["arm_failures"]
        assert situation["evidence"] != "log"
    if found.verdict == "degraded":
        assert found.cause not in (None, "suspect", "tracer_blind")


@given(records, situations, st.randoms())
def test_the_order_of_records_does_not_matter(measured, situation, random):
    shuffled = random.sample(measured, len(measured))
    first, second = judge(measured, **situation), judge(shuffled, **situation)
    assert (first.verdict, first.cause, first.matches_law) == (
        second.verdict,
        second.cause,
        second.matches_law,
    )


@given(st.integers(0, 7), st.integers(3, 8), st.integers(1, 8), st.booleans())
def test_one_growing_series_among_flat_ones_is_enough(where, captures, peers, scratch):
    measured = arm(OWN, none, captures=captures)
    odd = measured[where]
    measured[where] = series(
        [law.growing(16, peers, n, scratch=scratch) for n in range(1, captures + 1)],
        collective=odd.collective,
        graphs=odd.graphs,
        rank=odd.rank,
    )
    found = judged(measured)
    assert (found.verdict, found.cause) == ("degraded", "aicpu_resource_list")
    assert found.growth.series == where


@pytest.mark.parametrize("name", ["aiv", "ai_cpu"])
def test_other_arms_alone_are_no_verdict_and_it_says_why(name: ArmName):
    found = judged(arm(name, grows))

    assert ("unknown", None) == (found.verdict, found.cause)
    assert f"only {name} ran" in found.reason
    assert "nothing was captured" not in found.reason


@pytest.mark.parametrize(
    ("captures", "shown"),
    [(3, "(488→744 from"), (4, "(488→744→1000 from"), (5, "(488→744→…→1256 from")],
)
def test_the_first_counts_and_the_last_are_shown(captures: int, shown: str):
    assert shown in judged(arm(OWN, grows, captures=captures)).reason


def test_eight_missing_ranks_are_named():
    found = judged(drop_rank(arm(OWN, grows)), ranks=12, control=[4] * 12)
    assert found.reason.endswith("of 12 ranks no capture came from 1, 2, 3, 4, 5, 6, 7, 8")


@pytest.mark.parametrize(
    ("gone", "more"), [(0, None), (1, ""), (2, " (and 1 more)"), (4, " (and 3 more)")]
)
def test_the_first_gap_is_named_and_the_others_are_counted(gone: int, more: str | None):
    found = judged(arm(OWN, none)[: 8 - gone], hcomm="9.1.0")
    assert found.verdict == ("healthy" if more is None else "unknown")
    if more is not None:
        rank = (8 - gone) % 2
        kind = " with graphs ".join(PROBE_KINDS[(8 - gone) // 2])
        assert found.reason == f"too little was measured: {kind} of rank {rank} is missing{more}"


def test_growth_of_time_is_told_with_its_bound_and_captures():
    found = judged(clocked(flat, seconds=lambda n: 0.01 + 0.00777 * n))
    assert "takes 7.77 ms longer (at least 7.77 ms with 97.5 %, over 69 captures)" in found.reason


def test_a_growth_of_time_is_worth_a_verdict_from_the_greater_floor_on():
    grown = clocked(flat, seconds=lambda n: 0.1 + 0.0009 * n)
    assert judged(grown).cause is None  # below 1 ms, and 1 % of 0.1 s
    assert judged(grown, floor_seconds=1e-4, floor_ratio=1e-3).cause == "other"
    assert judged(grown, floor_seconds=1e-4).cause is None
    assert judged(grown, floor_ratio=1e-3).cause is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"outcome": "failed"}, "failed at capture 2"),
        ({"ambiguous": True}, "overlapped other captures from capture 2 on"),
    ],
)
def test_of_several_flaws_the_first_is_named(changes, words):
    flawed = [capture(n, 0, **(changes if n in {2, 4} else {})) for n in range(1, 6)]
    assert words in judged([*arm(OWN, none)[1:], series(flawed)]).reason


def test_a_series_that_grows_speaks_for_all_however_well_others_were_measured():
    steady = clocked(None, seconds=lambda _n: 0.01)[1:]
    (lone,) = clocked(None, control=None)[:1]
    time = judged([*steady, lone]).time
    assert time is not None
    assert (time.decision, time.paired) == ("grows", False)
