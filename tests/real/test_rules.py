"""The rule file, by Prometheus' own promtool: what fires, what does not, what resolves, and in which words."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from monitoring.alerts import ALERTS
from monitoring.model import seconds
from monitoring.recordings import emulated
from monitoring.render import GAP
from tests.monitoring.promtool import RULES, Sample, Series, case, named, passes, promtool
from tests.monitoring.scenarios import ABC, BEGIN, STACK, WELL, WRONG, Wrong, degraded

BY_NAME = {alert.name: alert for alert in ALERTS}
FIRING = 'ALERTS{alertstate="firing"}'
NODES = 20
HOURS = 4
"""How long the fleet is looked at; asked at the end, with a sample a minute."""


class Course:
    """The minutes of a story: wrong from BEGIN to `end`, the daemon away in between, watched until all is over."""

    def __init__(self, name: str, wrong: Wrong | None = None) -> None:
        alert = BY_NAME[name]
        self.name = name
        self.wrong = wrong or WRONG[name]
        self.begin = BEGIN
        self.counts = BEGIN + self.wrong.lead + seconds(alert.wait) // 60
        self.fires = self.counts + 6
        self.restart = range(self.counts + 8, self.counts + 14)
        self.end = self.counts + 30
        clears = 60 if self.wrong.counter else 0
        long = seconds(alert.wait) >= seconds("1h")
        bridged = seconds(GAP) // 60 if long else 0
        self.over = self.end + bridged + seconds(alert.keep) // 60 + clears + 6
        self.every = "5m" if self.counts > 300 else "1m"

    def series(self, **scrape: str) -> Series:
        """The node's series."""
        return {
            named(metric, self.name, **self.wrong.scrape, **scrape): [
                self._at(metric, minute) for minute in range(self.over + 5)
            ]
            for metric in {**WELL, **self.wrong.changes}
        } | self._beside()

    def lasting(self, until: int, **scrape: str) -> Series:
        """The node's series, wrong without a break until just after it fires."""
        self.begin += until - self.fires
        self.restart, self.end, self.over = range(0), until, until
        return self.series(**scrape)

    def _at(self, metric: str, minute: int) -> Sample:
        bad, well = self.wrong.changes, WELL.get(metric)
        if self.wrong.restarts and minute in self.restart:
            return None
        if metric == self.wrong.counter:
            return float(max(0, min(minute, self.end) - self.begin) // 5)
        if self.begin <= minute < self.end:
            return bad.get(metric, well)
        if "last_run" in metric and self.name == "CaptureCanaryProbeSkipped":
            return 60.0 * minute
        return well

    def _beside(self) -> Series:
        """A second node that is as it is."""
        return {
            named(metric, "beside", **self.wrong.scrape): [value] * (self.over + 5)
            for metric, value in self.wrong.beside.items()
        }


def firing(name: str, wrong: Wrong) -> dict[str, Any]:
    labels = {"alertname": name, "alertstate": "firing", "severity": wrong.severity, **wrong.labels}
    inner = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return {"labels": f"ALERTS{{{inner}}}", "value": 1}


@pytest.mark.real
def test_promtool_takes_the_rules():
    ran = promtool("check", "rules", "--lint-fatal", RULES)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_alert_has_its_story():
    assert {*WRONG, "CaptureCanaryCommonCause"} == set(BY_NAME)


@pytest.mark.real
@pytest.mark.parametrize("name", WRONG)
def test_it_fires_outlives_a_restart_and_resolves(tmp_path: Path, name: str):
    course = Course(name)
    told = [firing(name, course.wrong)]
    during = [(course.restart[-1], FIRING, told)] if course.wrong.restarts else []
    wanted = [
        (BEGIN - 1, FIRING, []),
        (course.counts - 2, FIRING, []),
        (course.fires, FIRING, told),
        *during,
        (course.end - 1, FIRING, told),
        (course.over, FIRING, []),
    ]
    passes(tmp_path, case(course.series(), wanted), every=course.every)


@pytest.mark.real
@pytest.mark.parametrize("name", [a.name for a in ALERTS if seconds(a.wait) >= seconds("1h")])
def test_a_restart_does_not_begin_a_long_wait_anew(tmp_path: Path, name: str):
    course = Course(name)
    course.restart = range(course.counts - 20, course.counts - 14)
    told = [(course.fires, FIRING, [firing(name, course.wrong)])]
    passes(tmp_path, case(course.series(), told), every=course.every)


ALL_FIRE = max(Course(name).fires for name in WRONG)
"""The minute by which every alert fires."""


def everything_wrong(**scrape: str) -> Series:
    """A node for each alert, wrong until all of them fire."""
    found: Series = {}
    for name in WRONG:
        found |= Course(name).lasting(ALL_FIRE, **scrape)
    return found


@pytest.mark.real
def test_nothing_fires_where_nothing_is_wrong(tmp_path: Path):
    well: Series = {
        named(metric, name, **WRONG[name].scrape): [value] * (ALL_FIRE + 1)
        for name in WRONG
        for metric, value in WELL.items()
    }
    asked: list[tuple[int, str, list[dict[str, Any]]]] = [
        (minute, FIRING, []) for minute in range(BEGIN, ALL_FIRE, 60)
    ]
    passes(tmp_path, case(well, asked), every="5m")


@pytest.mark.real
def test_nothing_fires_for_emulated_nodes_unless_asked_to(tmp_path: Path):
    series = {
        key.replace('emulated="false"', 'emulated="true"'): samples
        for key, samples in everything_wrong().items()
    }
    path = tmp_path / "emulated.yml"
    path.write_text(emulated(RULES.read_text()))
    all_of_them = [firing(name, wrong) for name, wrong in WRONG.items()]
    passes(tmp_path, case(series, [(ALL_FIRE - 1, FIRING, [])]), every="5m")
    passes(tmp_path, case(series, [(ALL_FIRE - 1, FIRING, all_of_them)]), rules=path, every="5m")


OUT = {
    "not ready": ('kube_node_status_condition{condition="Ready",status="true"}', 0),
    "cordoned": ("kube_node_spec_unschedulable", 1),
    "in maintenance": ('kube_node_spec_taint{key="example.com/maintenance"}', 1),
    "NPU unhealthy": ('npu_chip_info_health_status{id="3"}', 0),
}


@pytest.mark.real
@pytest.mark.parametrize("why", OUT)
def test_nodes_out_of_service_tell_of_nothing(tmp_path: Path, why: str):
    metric, value = OUT[why]
    out = {named(metric, "exporter", node="worker-1"): [value] * (ALL_FIRE + 1)}
    series = everything_wrong(node="worker-1") | out
    passes(tmp_path, case(series, [(ALL_FIRE - 1, FIRING, [])]), every="5m")


@pytest.mark.real
def test_without_any_daemon_only_absent_fires(tmp_path: Path):
    wanted = {
        "labels": 'ALERTS{alertname="CaptureCanaryAbsent",alertstate="firing",severity="warning"}',
        "value": 1,
    }
    passes(tmp_path, case({}, [(10, FIRING, []), (20, FIRING, [wanted])]))


@pytest.mark.real
def test_a_growth_that_costs_nothing_rings_nobody(tmp_path: Path):
    wrong = Wrong(degraded("aicpu_resource_list", 0.4), ABC)
    course = Course("CaptureCanaryDegraded", wrong)
    passes(tmp_path, case(course.series(), [(course.fires, FIRING, [])]))


@pytest.mark.real
@pytest.mark.parametrize("impact", [None, 0.0], ids=["unknown", "another evidence's"])
def test_a_growth_whose_cost_is_not_known_does(tmp_path: Path, impact: float | None):
    wrong = Wrong(degraded("aicpu_resource_list", impact), ABC)
    course = Course("CaptureCanaryDegraded", wrong)
    wanted = [firing("CaptureCanaryDegraded", wrong)]
    passes(tmp_path, case(course.series(), [(course.fires, FIRING, wanted)]))


@pytest.mark.real
def test_many_nodes_are_one_alert_in_clear_words(tmp_path: Path):
    series: Series = {}
    for number in range(1, 6):
        wrong = degraded("aicpu_resource_list", 10.0 * number)
        for metric, value in (WELL | wrong).items():
            key = named(metric, f"10.0.0.{number}:9877", node=f"worker-{number}", **PLACE)
            series[key] = [value] * 20
    test = case(series, [])
    test["alert_rule_test"] = [
        {
            "eval_time": "10m",
            "alertname": "CaptureCanaryDegraded",
            "exp_alerts": [
                {
                    "exp_labels": {"severity": "warning", **ABC, **PLACE},
                    "exp_annotations": {
                        "summary": "Graph capture gets slower with every graph captured.",
                        "description": "5 nodes (worker-5, worker-4, worker-3, …) of serving/llm: each further "
                        "capture of a graph takes longer, most often as HCCL's AICPU resource lists grow and are "
                        "copied whole to the device. Stack abc (SoC a3, CANN 8.5.0, hcomm 8.5.0). A load of a server "
                        "takes 50s longer, by measured copies. To do: Move the image to CANN 9.1.0 or newer, or set "
                        "HCCL_OP_EXPANSION_MODE=AIV once it is validated with the model. `capture-canary doctor` on a "
                        "node says which. Who acts: The owner of the serving image: the fault is in the image, not in "
                        "the node.",
                        "runbook_url": "docs/runbooks/CaptureCanaryDegraded.md",
                        "dashboard_url": f"{FLEET}?var-problem=CaptureCanaryDegraded",
                    },
                }
            ],
        }
    ]
    passes(tmp_path, test)


FLEET = "/d/capture-canary-fleet/capture-canary-fleet"
PLACE = {"namespace": "serving", "workload": "llm"}


@pytest.mark.real
def test_a_target_that_was_just_replaced_fails_no_rule(tmp_path: Path):
    wrong = WRONG["CaptureCanaryDegraded"]
    course = Course("CaptureCanaryDegraded", wrong)
    twins = course.series(pod="old", node="worker-1") | course.series(pod="new", node="worker-1")
    passes(
        tmp_path,
        case(twins, [(course.fires, FIRING, [firing("CaptureCanaryDegraded", wrong)])]),
    )


def since(hours: float) -> list[Sample]:
    """A series that is 1 from so many hours before the end on, and absent until then."""
    absent = round(60 * (HOURS - hours))
    return [None] * absent + [1.0] * (60 * HOURS - absent + 1)


def fleet(
    onsets: Mapping[int, float],
    *,
    nodes: int = NODES,
    cause: str = "time_only",
    emulated: bool = False,
    scraped: Mapping[int, float] | None = None,
) -> Series:
    """Series of nodes with one stack; `onsets` and `scraped` are hours before the end, by node."""
    series: Series = {}
    for node in range(nodes):
        always = since((scraped or {}).get(node, HOURS))
        instance = f"{'emulated' if emulated else 'node'}-{node}"
        for verdict in ("degraded", "healthy"):
            own = f'verdict{{{STACK},evidence="probe",verdict="{verdict}"}}'
            series[named(own, instance)] = always
        build = f'build_info{{emulated="{str(emulated).lower()}",version="1"}}'
        series[named(build, instance)] = always
        if node in onsets:
            info = f'verdict_info{{{STACK},evidence="probe",cause="{cause}"}}'
            series[named(info, instance)] = since(onsets[node])
    return series


def run(tmp_path: Path, series: Series, share: float | None, *, rings: bool) -> None:
    """Compare with the share of nodes that turned (None: no onset) and with what fires at the end."""
    ratio = "stack:capture_canary_time_only_onset:ratio"
    wanted = [] if share is None else [{"labels": f"{ratio}{{{STACK}}}", "value": share}]
    common = 'ALERTS{alertname="CaptureCanaryCommonCause",alertstate="firing"}'
    told = [{"labels": f'{common[:-1]},severity="info",{STACK}}}', "value": 1}] if rings else []
    passes(tmp_path, case(series, [(60 * HOURS, ratio, wanted), (60 * HOURS, common, told)]))


@pytest.mark.real
@pytest.mark.parametrize("turned", [2, NODES], ids=["two of twenty", "all"])
def test_nodes_that_turn_at_once_have_a_common_cause(tmp_path: Path, turned: int):
    onsets = {node: 0.25 + 0.5 * node / NODES for node in range(turned)}
    run(tmp_path, fleet(onsets), turned / NODES, rings=True)


@pytest.mark.real
@pytest.mark.parametrize(
    ("series", "share"),
    [
        (fleet({}), None),
        (fleet({3: 0.5}), 0.05),
        (fleet({3: 0.5}, nodes=4), 0.25),
        (fleet({3: 0.5, 4: 0.6}, nodes=40), 0.05),
        (fleet({0: 0.5, 1: 1.5, 2: 2.5, 3: 3.5}), 0.05),
        (fleet({0: 1.5, 1: 1.5, 2: 1.5}), None),
        (fleet({0: 0.5, 1: 0.5, 2: 0.5}, cause="aicpu_resource_list"), None),
        (fleet({0: 0.5, 1: 0.5, 2: 0.5}, emulated=True), None),
        (fleet({0: 0.5, 1: 0.5, 2: 0.5}, scraped=dict.fromkeys(range(NODES), 0.9)), None),
    ],
    ids=[
        "none turned",
        "one of twenty",
        "one alone, of four",
        "two of forty",
        "one after the other",
        "longer ago",
        "another cause",
        "emulated",
        "new to Prometheus",
    ],
)
def test_others_have_not(tmp_path: Path, series: Series, share: float | None):
    run(tmp_path, series, share, rings=False)


@pytest.mark.real
def test_emulated_nodes_do_not_dilute_the_fleet(tmp_path: Path):
    emulated_ones = fleet({}, nodes=100, emulated=True)
    run(tmp_path, fleet({0: 0.5, 1: 0.5}) | emulated_ones, 0.1, rings=True)
