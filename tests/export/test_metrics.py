"""The metrics of a state: names, labels, and that what is not known never looks healthy."""

import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest
from tests.making import arm, capture, flat, grows, none, series

from capture_canary.export.metrics import StateCollector
from capture_canary.export.operation import OperationCollector
from capture_canary.export.state import BUCKETS, State
from capture_canary.kubernetes.exchange import Life
from capture_canary.model import ArmName, Cause, Evidence, Fact, Report, Series, VerdictName
from capture_canary.service.board import View
from capture_canary.stack.identity import stack_id
from capture_canary.trend.verdict import judge

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"
OWN: ArmName = "as_configured"
STACK = {
    name: Fact(value=value, source="a file")
    for name, value in (("cann", "8.5.0"), ("hcomm", "8.5.0"), ("soc", "Ascend910_9391"))
}
NAME = stack_id(STACK)
START = State(version="0.1.0", emulated=True, stack=STACK)


def report(records: list[Series], **changes: Any) -> Report:
    situation: dict[str, Any] = {
        "ranks": 2,
        "hcomm": "8.5.0",
        "soc": "a3",
        "configured_mode": None,
        "control": [4, 4],
        "arm_failures": {},
    }
    found = judge(records, **(situation | changes))
    return Report(
        emulated=True,
        verdict=found.verdict,
        cause=found.cause,
        reason=found.reason,
        impact=found.impact,
        mode=changes.get("configured_mode") or "AI_CPU",
        mode_source="default of the SoC",
        matches_law=found.matches_law,
        growth=found.growth,
        stack=STACK,
        control=4,
        series=records,
    )


def scrape(state: State) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in StateCollector(lambda: state).collect()
        for sample in family.samples
    }


def value(state: State, name: str, **labels: str) -> float | None:
    return scrape(state).get((f"capture_canary_{name}", frozenset(labels.items())))


DEGRADED = msgspec.structs.replace(START, about_servers=False).after(
    report(arm(OWN, grows) + arm("aiv", none)),
    evidence="probe",
    ended=1_700_000_000.0,
    seconds=1.5,
    devices=2,
)


def verdicts(state: State, evidence: Evidence = "probe") -> dict[str, float | None]:
    return {
        name: value(state, "verdict", stack=NAME, evidence=evidence, verdict=name)
        for name in get_args(VerdictName)
    }


def test_before_the_first_probe_nothing_is_healthy():
    assert verdicts(START) == {"unknown": 1, "healthy": 0, "degraded": 0, "mitigated": 0}
    names = {name for name, _ in scrape(START)}
    assert "capture_canary_load_impact_seconds" not in names
    assert "capture_canary_probe_last_run_timestamp_seconds" not in names
    assert "capture_canary_exposed" not in names
    assert value(START, "probe_failures_total", reason="tracer_blind") == 0
    assert value(START, "rtmemcpy_total", evidence="probe") == 0


def test_degraded():
    assert verdicts(DEGRADED) == {"unknown": 0, "healthy": 0, "degraded": 1, "mitigated": 0}
    own = {"stack": NAME, "arm": "as_configured", "evidence": "probe"}
    assert value(DEGRADED, "rtmemcpy_growth", **own) == 256
    assert value(DEGRADED, "rtmemcpy_first", **own) == 488
    assert value(DEGRADED, "rtmemcpy_last", **own) == 744
    assert value(DEGRADED, "rtmemcpy_growth", **(own | {"arm": "aiv"})) == 0
    assert value(DEGRADED, "rtmemcpy_growth", **(own | {"arm": "ai_cpu"})) is None
    assert value(DEGRADED, "load_impact_seconds", stack=NAME) == pytest.approx(256 * 595 * 1e-6)
    assert value(DEGRADED, "exposed", stack=NAME) == 1
    assert (
        value(DEGRADED, "mitigation", stack=NAME, mode="AI_CPU", source="default of the SoC") == 0
    )


def test_counters_of_a_probe():
    copies = 8 * (233 + 488 + 744)
    assert value(DEGRADED, "probe_runs_total") == 1
    assert value(DEGRADED, "probe_captures_total") == 48
    assert value(DEGRADED, "probe_device_seconds_total") == 3
    assert value(DEGRADED, "probe_duration_seconds") == 1.5
    assert value(DEGRADED, "rtmemcpy_total", evidence="probe") == copies
    assert value(DEGRADED, "rtmemcpy_seconds_total", evidence="probe") == pytest.approx(
        copies * 1e-6
    )
    assert value(DEGRADED, "capture_duration_seconds_count") == 48
    assert value(DEGRADED, "capture_duration_seconds_sum") == pytest.approx(0.48)
    assert value(DEGRADED, "capture_duration_seconds_bucket", le="0.005") == 0
    assert value(DEGRADED, "capture_duration_seconds_bucket", le="0.01") == 48
    assert value(DEGRADED, "probe_last_run_timestamp_seconds") == 1_700_000_000
    assert value(DEGRADED, "probe_last_success_timestamp_seconds") == 1_700_000_000
    twice = DEGRADED.after(DEGRADED.reports["probe"], evidence="probe", ended=1_700_000_600.0)
    assert value(twice, "rtmemcpy_total", evidence="probe") == 2 * copies
    assert value(twice, "capture_duration_seconds_bucket", le="+Inf") == 96


def test_a_probe_without_verdict_is_a_failure_and_the_old_verdict_goes():
    blind = DEGRADED.after(
        report(arm(OWN, none), control=[0, 0]),
        evidence="probe",
        ended=1_700_000_600.0,
        failure="tracer_blind",
    )
    assert verdicts(blind) == {"unknown": 1, "healthy": 0, "degraded": 0, "mitigated": 0}
    assert value(blind, "probe_failures_total", reason="tracer_blind") == 1
    assert value(blind, "probe_last_run_timestamp_seconds") == 1_700_000_600
    assert value(blind, "probe_last_success_timestamp_seconds") == 1_700_000_000
    assert value(blind, "load_impact_seconds", stack=NAME) is None


def test_a_healthy_stack_costs_a_load_nothing():
    state = START.after(report(arm(OWN, flat), hcomm="9.1.0"), evidence="probe", ended=1.0)
    assert verdicts(state)["healthy"] == 1
    assert value(state, "load_impact_seconds", stack=NAME) == 0


def causes(state: State) -> dict[str, float]:
    return {
        dict(labels)["cause"]: found
        for (name, labels), found in scrape(state).items()
        if name == "capture_canary_verdict_info"
    }


@pytest.mark.parametrize("cause", get_args(Cause))
def test_the_cause_is_that_of_the_verdict_in_force(cause: Cause):
    assert causes(START) == {}
    assert causes(DEGRADED) == {"aicpu_resource_list": 1}
    found = msgspec.structs.replace(DEGRADED.reports["probe"], cause=cause)
    caused = DEGRADED.after(found, evidence="probe", ended=2.0)
    assert causes(caused) == {cause: 1}
    assert value(caused, "verdict_info", stack=NAME, evidence="probe", cause=cause) == 1
    healthy = report(arm(OWN, flat), hcomm="9.1.0")
    assert causes(caused.after(healthy, evidence="probe", ended=3.0)) == {}


def test_a_servers_trace_is_no_probe():
    state = START.after(
        report(arm(OWN, none), configured_mode="AIV", evidence="trace"), evidence="trace", ended=9.0
    )
    assert verdicts(state)["unknown"] == 1
    assert verdicts(state, "trace")["mitigated"] == 1
    assert value(state, "mitigation", stack=NAME, mode="AIV", source="default of the SoC") == 1
    assert value(state, "probe_runs_total") == 0
    assert value(state, "probe_captures_total") == 0
    assert value(state, "probe_last_run_timestamp_seconds") is None


def test_skips_and_settings():
    state = START.after_skip("busy").after_skip("busy").after_skip("hbm")
    assert value(state, "probe_skips_total", reason="busy") == 2
    assert value(state, "probe_skips_total", reason="hbm") == 1
    assert value(START, "config_last_reload_successful") == 1
    bad = State(version="1", emulated=False, stack={}, config_ok=False)
    assert value(bad, "config_last_reload_successful") == 0
    assert value(bad, "build_info", version="1", emulated="false") == 1
    assert value(START, "build_info", version="0.1.0", emulated="true") == 1


def test_stack_info_says_what_the_hash_stands_for():
    labels = dict.fromkeys(
        ("hccl", "runtime", "driver", "torch_npu", "vllm", "vllm_ascend", "image"), ""
    )
    known = {"stack": NAME, "cann": "8.5.0", "hcomm": "8.5.0", "soc": "Ascend910_9391"}
    assert value(START, "stack_info", **labels, **known) == 1


def test_hostile_values_stay_short_and_few():
    state = START
    for n in range(100):
        state = state.after_skip(f"reason-{n}" + "x" * 1000)
    samples = scrape(state)
    assert len([1 for name, _ in samples if name == "capture_canary_probe_skips_total"]) == 20
    assert max(len(text) for _, labels in samples for _, text in labels) == 64


def documented() -> set[str]:
    return set(re.findall(r"^\| `(capture_canary_\w+)`", DOCS.read_text(), re.MULTILINE))


def test_every_metric_is_documented_and_every_documented_one_exported():
    view = View(state=DEGRADED, next_probe=1.0, kubernetes=Life(at=1.0))
    families = [
        *StateCollector(lambda: DEGRADED).collect(),
        *OperationCollector(lambda: view).collect(),
    ]
    suffix = {"counter": "_total", "info": "_info"}
    assert {family.name + suffix.get(family.type, "") for family in families} == documented()
    assert all(family.documentation.endswith(".") for family in families)


def test_labels_are_the_documented_ones():
    rows = re.findall(
        r"^\| `(capture_canary_\w+)` \| \w+ \|([^|]*)\|", DOCS.read_text(), re.MULTILINE
    )
    wanted = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    for name, labels in scrape(DEGRADED.after_skip("busy")):
        family = re.sub(r"_(bucket|count|sum)$", "", name)
        assert {label for label, _ in labels} - {"le"} == wanted[family], name


def test_a_full_node_stays_within_150_series():
    state = DEGRADED
    for evidence in ("trace", "log"):
        other = report(arm(OWN, grows) + arm("aiv", grows) + arm("ai_cpu", grows))
        state = state.after(other, evidence=evidence, ended=1.0)
    for n in range(20):
        state = state.after_skip(str(n))
    assert len(scrape(state)) <= 150


@given(st.lists(st.sampled_from([grows, flat, none]), max_size=3), st.booleans())
def test_exactly_one_verdict_holds_and_the_text_is_openmetrics(copies, blind):
    state = START
    for count in copies:
        state = state.after(
            report(arm(OWN, count), control=[0, 0] if blind else [4, 4]),
            evidence="probe",
            ended=1.0,
        )
    held = verdicts(state)
    assert sum(v or 0 for v in held.values()) == 1
    assert not (blind and held["healthy"])
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StateCollector(lambda: state))
    assert generate_latest(registry).endswith(b"# EOF\n")


@given(st.lists(st.floats(0, 100), max_size=20))
def test_buckets_count_as_prometheus_does(seconds):
    timed = series([capture(n, 0, seconds=value) for n, value in enumerate(seconds, 1)])
    state = START.after(report([timed]), evidence="probe", ended=1.0)
    for bound in BUCKETS:
        wanted = sum(s <= bound for s in seconds)
        assert value(state, "capture_duration_seconds_bucket", le=repr(bound)) == wanted
