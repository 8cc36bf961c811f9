"""What alerts go by: two verdicts that agree ring, two clear, and what is not known does neither."""

from pathlib import Path

import msgspec
import pytest
from tests.making import arm, grows, none

from capture_canary.export.state import State
from capture_canary.model import Cause, Evidence, Fact, Report, VerdictName
from capture_canary.service.remembered import restore
from capture_canary.stack.identity import stack_id
from capture_canary.store import Store
from capture_canary.trend.settle import Settled, settle
from capture_canary.trend.verdict import judge

STACK = {"hcomm": Fact(value="8.5.0", source="a file")}
NAMES: dict[str, VerdictName] = {
    "d": "degraded",
    "h": "healthy",
    "m": "mitigated",
    "u": "unknown",
}


def report(verdict: VerdictName, cause: Cause | None = None, **changes: object) -> Report:
    records = arm("as_configured", grows) + arm("aiv", none)
    found = judge(
        records,
        ranks=2,
        hcomm="8.5.0",
        soc="a3",
        configured_mode=None,
        control=[4, 4],
        arm_failures={},
    )
    whole = Report(
        emulated=False,
        verdict=found.verdict,
        cause=found.cause,
        reason=found.reason,
        impact=found.impact,
        mode="AI_CPU",
        mode_source="default of the SoC",
        matches_law=found.matches_law,
        growth=found.growth,
        stack=STACK,
        control=4,
        series=records,
    )
    return msgspec.structs.replace(whole, verdict=verdict, cause=cause, **changes)


def settled(course: str, evidence: Evidence = "probe") -> str:
    now = None
    for letter in course:
        now = settle(now, report(NAMES[letter]), stack="abc", evidence=evidence)
    return now.verdict if now else "unknown"


@pytest.mark.parametrize(
    ("course", "wanted"),
    [
        ("d", "unknown"),
        ("dd", "degraded"),
        ("hd", "unknown"),
        ("ddh", "degraded"),
        ("ddhh", "healthy"),
        ("ddhdh", "degraded"),
        ("ddmm", "mitigated"),
        ("ddmh", "degraded"),
        ("dud", "degraded"),
        ("dduuu", "degraded"),
        ("hhd", "healthy"),
        ("hhdhd", "healthy"),
        ("u", "unknown"),
    ],
)
def test_two_verdicts_that_agree_settle(course: str, wanted: str):
    assert wanted == settled(course)


@pytest.mark.parametrize(
    ("course", "wanted"), [("d", "degraded"), ("dh", "healthy"), ("du", "degraded")]
)
def test_a_trace_settles_at_once(course: str, wanted: str):
    assert wanted == settled(course, "trace")


def test_the_newest_cause_counts():
    now = None
    for cause in ("other", "other", "aicpu_resource_list"):
        now = settle(now, report("degraded", cause), stack="abc", evidence="probe")
    assert now == Settled(stack="abc", verdict="degraded", cause="aicpu_resource_list")


def test_another_stack_begins_anew():
    now = settle(None, report("degraded"), stack="abc", evidence="probe")
    now = settle(now, report("degraded"), stack="abc", evidence="probe")
    assert settle(now, report("degraded"), stack="xyz", evidence="probe").verdict == "unknown"


@pytest.mark.parametrize(
    ("course", "wanted"), [("d", "unknown"), ("ddh", "degraded"), ("ddhh", "healthy")]
)
def test_a_restart_settles_and_clears_nothing(tmp_path: Path, course: str, wanted: str):
    store = Store(tmp_path)
    name = stack_id(STACK)
    state = State(version="1", emulated=False, stack=STACK)
    for at, letter in enumerate(course):
        one = report(NAMES[letter])
        store.add_probe(one, at=float(at), stack=name)
        state = state.after(one, evidence="probe", ended=float(at))
    assert wanted == state.settled["probe"].verdict
    restored = restore(State(version="1", emulated=False, stack=STACK), store)
    store.close()
    assert state.settled == restored.settled
