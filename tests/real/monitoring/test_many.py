"""2,000 nodes that turn degraded at once, through the real Prometheus and Alertmanager: who is rung, how often."""

import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from monitoring.model import Pace
from tests.real.monitoring import many
from tests.real.monitoring.watching import alertmanager, hook, prometheus
from tests.running import PATIENCE, until

PACE = Pace(scale=1 / 1800, least=5)
WELL = """\
capture_canary_build_info{emulated="false",version="1"} 1
capture_canary_stack_info{stack="abc",soc="a3",cann="8.5.0",hcomm="8.5.0"} 1
capture_canary_exposed{stack="abc"} 1
capture_canary_servers{stack="abc",mode="AI_CPU",source="servers: trace"} 1
capture_canary_verdict{stack="abc",evidence="probe",verdict="%s"} 1
capture_canary_verdict_settled_info{stack="abc",evidence="probe",verdict="%s",cause="%s"} 1
capture_canary_load_impact_seconds{stack="abc"} %s
capture_canary_mitigation{stack="abc",mode="AI_CPU",source="servers: trace"} 0
"""
MOST = 3
"""Notifications that a fleet's trouble may make."""


@pytest.mark.real
def test_a_fleet_that_degrades_rings_three_times_at_most(tmp_path: Path):
    with ExitStack() as held:
        listening = held.enter_context(hook())
        manager = held.enter_context(alertmanager(tmp_path, listening, PACE))
        fleet = held.enter_context(many.fleet())
        many.fill(fleet, WELL % ("mitigated", "mitigated", "", 0))
        server = held.enter_context(
            prometheus(tmp_path, fleet.scrapes, pace=PACE, alertmanager=manager, interval="2s")
        )
        watched = "count(instance:capture_canary_watched:info)"
        until(lambda: [one["value"][1] for one in server.query(watched)] == [str(many.NODES)])

        many.fill(fleet, WELL % ("degraded", "degraded", "aicpu_resource_list", 30))
        until(lambda: listening.heard("CaptureCanaryDegraded", "firing"), patience=2 * PATIENCE)
        time.sleep(3 * PACE.seconds("4h"))  # three times the example's group_interval

        told = [one for one in listening.told if one.alert == "CaptureCanaryDegraded"]
        assert 5 == len({one.description for one in told}), "one alert a workload"
        assert all("400 nodes (" in one.description for one in told)
        assert len(listening.notifications) <= MOST, listening.told
        assert [] == server.failures()
