"""When a probe may stop, and which arm comes next."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.making import arm, flat, grows, none, series

from capture_canary.model import ArmName
from capture_canary.trend import stop
from capture_canary.trend.case import PROBE_KINDS
from capture_canary.trend.verdict import judge

OWN: ArmName = "as_configured"
A3: dict[str, Any] = {"configured_mode": None, "soc": "a3", "hcomm": "8.5.0", "arm_failures": {}}
A3_AIV: dict[str, Any] = A3 | {"configured_mode": "AIV"}


def test_growth_in_one_kind_decides_once_every_rank_has_spoken():
    records = [series([grows(n) for n in (1, 2, 3)], rank=0)]
    assert not stop.decided(records, ranks=2)
    records.append(series([grows(n) for n in (1, 2)], rank=1))
    assert not stop.decided(records, ranks=2)
    records[1] = series([grows(n) for n in (1, 2, 3)], rank=1)
    assert stop.decided(records, ranks=2)


def test_flat_is_decided_only_in_every_kind():
    assert stop.decided(arm(OWN, flat), ranks=2)
    assert not stop.decided(arm(OWN, flat), ranks=3)
    assert not stop.decided(arm(OWN, flat, captures=2), ranks=2)
    assert not stop.decided(arm(OWN, flat)[:-1], ranks=2)
    assert not stop.decided([], ranks=2)


def test_arms_are_decided_apart_and_in_the_kinds_asked_for():
    records = arm(OWN, grows) + arm("aiv", none, kinds=PROBE_KINDS[2:3])
    assert not stop.decided(records, ranks=2, arm="aiv")
    assert stop.decided(records, ranks=2, arm="aiv", kinds=PROBE_KINDS[2:3])
    assert not stop.decided(records, ranks=2, arm="ai_cpu")


def test_kinds_that_grow_are_those_the_aiv_arm_needs():
    records = arm(OWN, none, kinds=PROBE_KINDS[:2]) + arm(OWN, grows, kinds=PROBE_KINDS[2:3])
    assert stop.growing_kinds(records) == [("AllGather", "kept")]
    assert stop.growing_kinds(records, arm="aiv") == []


@pytest.mark.parametrize(
    ("copies", "changes", "wanted"),
    [
        (grows, {}, "aiv"),
        (grows, {"soc": None, "hcomm": None}, "aiv"),
        (grows, {"hcomm": "9.1.0-pr2405"}, "aiv"),
        (grows, {"hcomm": "9.1.0"}, None),
        (grows, {"configured_mode": "AIV"}, None),
        (grows, {"configured_mode": "AI_CPU", "soc": "a2"}, "aiv"),
        (grows, {"soc": "a2"}, None),
        (grows, {"arm_failures": {"aiv": "hung"}}, None),
        (none, {"configured_mode": "AIV"}, "ai_cpu"),
        (none, {"configured_mode": "HOST"}, "ai_cpu"),
        (none, {"configured_mode": "AIV", "hcomm": None}, "ai_cpu"),
        (none, {"configured_mode": "AIV", "hcomm": "9.1.0"}, None),
        (none, {"configured_mode": "AIV", "soc": "a2"}, None),
        (none, {"soc": "a2"}, None),
        (none, {}, None),
        (none, {"configured_mode": "AIV", "arm_failures": {"ai_cpu": "hung"}}, None),
        (lambda _: None, {}, None),
    ],
)
def test_next_arm(copies, changes, wanted):
    situation: dict[str, Any] = A3 | changes
    assert stop.next_arm(arm(OWN, copies), **situation) == wanted


def test_an_arm_that_ran_is_not_run_again():
    assert stop.next_arm(arm(OWN, grows) + arm("aiv", none), **A3) is None
    assert stop.next_arm(arm(OWN, none) + arm("ai_cpu", grows), **A3_AIV) is None


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(st.sampled_from([grows, flat, none]), min_size=8, max_size=8), st.integers(3, 6))
def test_more_captures_do_not_change_a_decided_verdict(copies, more):
    def measured(captures):
        return [
            one
            for kind, (first, second) in zip(
                PROBE_KINDS, zip(copies[::2], copies[1::2], strict=True), strict=True
            )
            for rank, count in enumerate((first, second))
            for one in arm(OWN, count, captures=captures, kinds=[kind], ranks=rank + 1)[rank:]
        ]

    situation: dict[str, Any] = {"ranks": 2, "control": [4, 4], **A3}
    assert stop.decided(measured(3), ranks=2)
    early, late = (judge(measured(n), **situation) for n in (3, more))
    assert (early.verdict, early.cause) == (late.verdict, late.cause)
